"""torch.version: which release this is, and what it was built with."""

from __future__ import annotations

from . import __version__

cuda: str | None = None
hip: str | None = None
rocm: str | None = None
xpu: str | None = None
debug = False
git_version = "retrograd"

__all__ = ["__version__", "cuda", "debug", "git_version", "hip", "rocm", "xpu"]
