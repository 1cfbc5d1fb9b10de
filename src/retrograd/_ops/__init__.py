"""The operations, declared: importing this package fills the table of primitives."""

from . import elementwise, index, levels, linalg, reduce, shape, spread

__all__ = ["elementwise", "index", "levels", "linalg", "reduce", "shape", "spread"]
