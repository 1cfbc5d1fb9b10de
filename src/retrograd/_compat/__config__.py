"""torch.__config__: what this build is made of."""

from __future__ import annotations

import numpy as np

from retrograd._settings import get_num_interop_threads, get_num_threads
from retrograd.version import __version__


def show() -> str:
    """Return a description of the libraries behind the arrays."""
    return f"retrograd built with:\n  - NumPy {np.__version__}\n  - retrograd {__version__}\n"


def parallel_info() -> str:
    """Return what is known of threads."""
    return f"retrograd parallel info:\n\tget_num_threads() : {get_num_threads()}\n\tinterop : {get_num_interop_threads()}\n"


__all__ = ["parallel_info", "show"]
