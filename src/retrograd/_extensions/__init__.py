"""Compiled libraries of operations: what `torch.ops.load_library` makes of a file that was compiled for torch's C++.

Its machine code cannot run here. Where a module of this folder computes the same operations in Python, loading the file
defines those. Any other file is refused as torch refuses one that does not fit; libraries with a way of their own for that
case then take it.
"""

from __future__ import annotations

import importlib
from pathlib import Path

# The modules of this folder, and a name that only their file has in it.
KNOWN = {"torchvision": b"torchvision::nms"}


def load(path: str) -> None:
    """Define the operations of a compiled library, or raise OSError."""
    try:
        content = Path(path).read_bytes()
    except OSError as error:
        raise OSError(f"Could not load this library: {path}") from error
    for name, mark in KNOWN.items():
        if mark in content:
            importlib.import_module(f".{name}", __package__)
            return
    raise OSError(
        f"Could not load this library: {path}\nHint: it was compiled for torch's C++; retrograd is written in Python and cannot run it."
    )
