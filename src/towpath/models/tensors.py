"""Named tensors as a safetensors file."""

from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def write_tensors(tensors: Mapping[str, Tensor], path: Path, notes: Mapping[str, str] | None = None) -> None:
    """The file with these tensors and notes; raises OSError where it cannot be written."""
    # Copies, since safetensors refuses tensors that share memory.
    whole = {name: tensor.detach().cpu().contiguous().clone() for name, tensor in tensors.items()}
    path.touch()
    usual = S_IMODE(path.stat().st_mode)
    try:
        save_file(whole, path, metadata=dict(notes) if notes else None)
    except SafetensorError as error:  # the only way the library reports a full or read-only disk
        raise OSError(str(error)) from error
    # safetensors lets only the owner read: a model could not be served by another account than trained it.
    path.chmod(usual)
