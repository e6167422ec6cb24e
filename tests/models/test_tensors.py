from pathlib import Path

import pytest
import torch
from safetensors.torch import load_file, save_file

from towpath.models.tensors import write_tensors


def test_the_file_is_what_safetensors_writes_of_copies(tmp_path: Path) -> None:
    table = torch.arange(12.0).reshape(3, 4)
    tensors = {"table": table, "same": table, "part": table[1:], "turned": table.T, "number": torch.ones(())}
    write_tensors(tensors, tmp_path / "ours", {"note": "yes"})
    copies = {name: tensor.contiguous().clone() for name, tensor in tensors.items()}
    save_file(copies, tmp_path / "theirs", {"note": "yes"})
    assert (tmp_path / "ours").read_bytes() == (tmp_path / "theirs").read_bytes()
    assert torch.equal(load_file(tmp_path / "ours")["part"], table[1:])


def test_a_tensor_of_its_own_is_not_copied(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(self: torch.Tensor) -> torch.Tensor:
        raise AssertionError("copied")

    monkeypatch.setattr(torch.Tensor, "clone", refuse)
    write_tensors({"a": torch.ones(3), "b": torch.zeros(2, 2)}, tmp_path / "file")
    assert (tmp_path / "file").stat().st_size > 28
