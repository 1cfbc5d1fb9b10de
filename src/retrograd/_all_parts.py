"""The parts that every program uses, loaded together while the garbage collector waits.

Almost everything that an import makes stays: the collector would look through thousands of objects a dozen times and find nothing,
which takes 6 of 50 ms. The package imports this file before the others.
"""

from __future__ import annotations

import gc

_collects = gc.isenabled()
gc.disable()
try:
    from . import _layer_names, _ops, autograd
finally:
    if _collects:
        gc.enable()

__all__ = ["_layer_names", "_ops", "autograd"]
