"""torch's functions of linear algebra that are written in C++, by the names that pickles have for them."""

from __future__ import annotations

from . import public_names

__getattr__ = public_names(".linalg", "linalg_")
