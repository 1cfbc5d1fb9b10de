"""torch.distributed.checkpoint.format_utils: from a folder to a file of `torch.save`, and back."""

from __future__ import annotations

from typing import Any

from ...serialization import load as load_file
from ...serialization import save as save_file
from .default_planner import _EmptyStateDictLoadPlanner
from .filesystem import FileSystemReader
from .state_dict_loader import _load_state_dict
from .state_dict_saver import save


def dcp_to_torch_save(dcp_checkpoint_dir: Any, torch_save_path: Any) -> None:
    """Write the state in a folder as one file."""
    state: dict[str, Any] = {}
    _load_state_dict(state, FileSystemReader(dcp_checkpoint_dir), planner=_EmptyStateDictLoadPlanner(), no_dist=True)
    save_file(state, torch_save_path)


def torch_save_to_dcp(torch_save_path: Any, dcp_checkpoint_dir: Any) -> None:
    """Write the state in a file as a folder."""
    save(load_file(torch_save_path, weights_only=False), checkpoint_id=dcp_checkpoint_dir, no_dist=True)


__all__ = ["_EmptyStateDictLoadPlanner", "_load_state_dict", "dcp_to_torch_save", "torch_save_to_dcp"]
