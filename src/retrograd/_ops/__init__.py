"""The operations, declared: importing this package fills the table of primitives."""

from .._core.primitive import primitives
from . import elementwise, index, levels, linalg, reduce, shape, spread

for _name in ("mean", "prod", "logsumexp", "softmax", "log_softmax", "norm", "var", "std"):
    primitives[_name].widens = True

__all__ = ["elementwise", "index", "levels", "linalg", "reduce", "shape", "spread"]
