"""Named tensors as a safetensors file."""

from collections.abc import Mapping
from pathlib import Path
from stat import S_IMODE

from safetensors import SafetensorError
from safetensors.torch import save_file
from torch import Tensor


def write_tensors(tensors: Mapping[str, Tensor], path: Path, notes: Mapping[str, str] | None = None) -> None:
    """The file with these tensors and notes; raises OSError where it cannot be written."""
    whole = {name: tensor.detach().cpu().contiguous() for name, tensor in tensors.items()}
    whole = {name: tensor.clone() if _is_shared(tensor, whole) else tensor for name, tensor in whole.items()}
    path.touch()
    usual = S_IMODE(path.stat().st_mode)
    try:
        save_file(whole, path, metadata=dict(notes) if notes else None)
    except SafetensorError as error:  # the only way the library reports a full or read-only disk
        raise OSError(str(error)) from error
    # safetensors lets only the owner read: a model could not be served by another account than trained it.
    path.chmod(usual)


def _is_shared(tensor: Tensor, others: Mapping[str, Tensor]) -> bool:
    """Whether it has its memory in common with another of these, or is a part of more: neither is written."""
    own = tensor.untyped_storage()
    sharing = sum(other.untyped_storage().data_ptr() == own.data_ptr() for other in others.values())
    return sharing > 1 or own.nbytes() != tensor.nbytes
