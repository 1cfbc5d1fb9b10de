"""torch.utils.model_zoo: the older names of `torch.hub`."""

from __future__ import annotations

from typing import Any

from ..hub import load_state_dict_from_url as load_url


def __getattr__(name: str) -> Any:
    if name == "tqdm":  # which torch takes from the library of that name
        from tqdm.auto import tqdm

        return tqdm
    raise AttributeError(f"module 'torch.utils.model_zoo' has no attribute '{name}'")


__all__ = ["load_url"]
