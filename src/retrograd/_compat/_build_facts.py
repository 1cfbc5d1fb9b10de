"""What torch says of how it was built: the flags `torch.has_lapack` and the like. NumPy and SciPy do the work here."""

from __future__ import annotations

has_lapack = has_spectral = True
has_mkl = has_openmp = False


def init_num_threads() -> None:
    """Do nothing: the number of threads is read when an operation begins."""
