"""torch's functions of Fourier transforms that are written in C++, by the names that pickles have for them."""

from __future__ import annotations

from . import public_names

__getattr__ = public_names(".fft", "fft_")
