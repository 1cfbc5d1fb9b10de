"""The operations, declared: importing this package fills the table of primitives."""

from . import (  # noqa: F401 - importing them declares their operations
    along,
    cumulative,
    elementwise,
    index,
    levels,
    matrix_products,
    norms,
    order,
    reduce,
    shape,
    softmax,
    variance,
)


def __getattr__(name: str) -> object:
    """Return what torch's module of the same name has."""
    from importlib import import_module

    found = vars(import_module("..ops", __package__)).get(name)
    if found is None or name.startswith("__"):
        raise AttributeError(f"module 'torch._ops' has no attribute '{name}'")
    return found
