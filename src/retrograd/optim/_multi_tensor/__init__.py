"""torch.optim._multi_tensor: the optimizers with `foreach=True`, which old programs import under this name."""

from __future__ import annotations

from functools import partialmethod
from typing import Any

from ..adadelta import Adadelta as _Adadelta
from ..adagrad import Adagrad as _Adagrad
from ..adam import Adam as _Adam
from ..adamax import Adamax as _Adamax
from ..adamw import AdamW as _AdamW
from ..asgd import ASGD as _ASGD
from ..nadam import NAdam as _NAdam
from ..radam import RAdam as _RAdam
from ..rmsprop import RMSprop as _RMSprop
from ..rprop import Rprop as _Rprop
from ..sgd import SGD as _SGD


def _foreach(base: Any) -> Any:
    options = {"__init__": partialmethod(base.__init__, foreach=True), "__module__": __name__, "__doc__": base.__doc__}
    return type(base.__name__, (base,), options)


Adadelta, Adagrad, Adam, Adamax = _foreach(_Adadelta), _foreach(_Adagrad), _foreach(_Adam), _foreach(_Adamax)
AdamW, ASGD, NAdam, RAdam = _foreach(_AdamW), _foreach(_ASGD), _foreach(_NAdam), _foreach(_RAdam)
RMSprop, Rprop, SGD = _foreach(_RMSprop), _foreach(_Rprop), _foreach(_SGD)

__all__ = ["ASGD", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop"]
