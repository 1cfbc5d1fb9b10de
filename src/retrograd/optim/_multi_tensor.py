"""torch.optim._multi_tensor: the optimizers with `foreach=True`, which old programs import under this name."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from . import ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop


def _foreach(base: Any) -> Any:
    options = {"__init__": partialmethod(base.__init__, foreach=True), "__module__": __name__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), options)


_bases = (ASGD, SGD, Adadelta, Adagrad, Adam, Adamax, AdamW, NAdam, RAdam, RMSprop, Rprop)
globals().update({base.__name__: _foreach(base) for base in _bases})

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]
