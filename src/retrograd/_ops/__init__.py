"""The operations, declared: importing this package fills the table of primitives."""

from .._core.primitive import primitives
from . import along, cumulative, elementwise, index, levels, linalg, norms, order, reduce, shape, softmax, spread

for _name in ("mean", "prod", "logsumexp", "softmax", "log_softmax", "norm", "var", "std"):
    primitives[_name].widens = True

__all__ = [
    "along",
    "cumulative",
    "elementwise",
    "index",
    "levels",
    "linalg",
    "norms",
    "order",
    "reduce",
    "shape",
    "softmax",
    "spread",
]
