"""torch.optim.swa_utils: averages of a model's weights over training."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from .._dtypes import int64
from .._modes import using
from .._public import set_all
from ..nn.modules.batchnorm import _BatchNorm
from ..nn.modules.module import Module
from ..tensor._functions.creation import tensor as make_tensor
from .lr_scheduler import LRScheduler, _for_each_group
from .optimizer import Optimizer


def _check_decay(decay: float) -> None:
    if decay < 0.0 or decay > 1.0:
        raise ValueError(f"Invalid decay value {decay} provided. Please provide a value in [0,1] range.")


def get_ema_multi_avg_fn(decay: float = 0.999) -> Callable[..., None]:
    """Return the function that lets averages follow weights, each step by 1 - decay of the way."""
    _check_decay(decay)

    def ema_update(ema_param_list: Any, current_param_list: Any, _: Any) -> None:
        _go(ema_param_list, current_param_list, 1 - decay)

    return ema_update


def get_swa_multi_avg_fn() -> Callable[..., None]:
    """Return the function that keeps averages of all weights so far, each with the same weight."""

    def swa_update(averaged_param_list: Any, current_param_list: Any, num_averaged: Any) -> None:
        _go(averaged_param_list, current_param_list, 1 / (int(num_averaged) + 1))

    return swa_update


def _go(averages: Any, values: Any, part: float) -> None:
    """Let averages go a part of the way to values; whole numbers are rounded toward zero."""
    with using(grad=False):
        for average, now in zip(averages, values, strict=True):
            if average.is_floating_point() or average.is_complex():
                average.lerp_(now, part)
            else:
                average.copy_(average * (1 - part) + now * part)


def get_ema_avg_fn(decay: float = 0.999) -> Callable[..., Any]:
    """Return the function that computes one average as `get_ema_multi_avg_fn` does many."""
    _check_decay(decay)

    def ema_update(ema_param: Any, current_param: Any, num_averaged: Any) -> Any:
        with using(grad=False):
            return decay * ema_param + (1 - decay) * current_param

    return ema_update


def get_swa_avg_fn() -> Callable[..., Any]:
    """Return the function that computes one average as `get_swa_multi_avg_fn` does many."""

    def swa_update(averaged_param: Any, current_param: Any, num_averaged: Any) -> Any:
        with using(grad=False):
            return averaged_param + (current_param - averaged_param) / (num_averaged + 1)

    return swa_update


class AveragedModel(Module):
    """A copy of a model whose weights are averages of the model's."""

    n_averaged: Any

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Callable[..., Any] | None = None,
        multi_avg_fn: Callable[..., None] | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise AssertionError("Only one of avg_fn and multi_avg_fn should be provided")
        self.module = deepcopy(model)
        if device is not None:
            self.module = self.module.to(device)
        self.register_buffer("n_averaged", make_tensor(0, dtype=int64, device=device))
        self.avg_fn = avg_fn
        self.multi_avg_fn = multi_avg_fn
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the copy."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the weights of the model, as they are now, into the averages."""
        mine, theirs = self._averaged(self), self._averaged(model)
        averages = [one.detach() for one in mine]
        values = [now.detach().to(average.device) for average, now in zip(averages, theirs, strict=False)]
        if self.n_averaged == 0:
            for average, now in zip(averages, values, strict=True):
                average.copy_(now)
        elif self.avg_fn is not None:
            for average, now in zip(averages, values, strict=True):
                average.copy_(self.avg_fn(average, now, self.n_averaged.to(average.device)))
        else:
            (self.multi_avg_fn or get_swa_multi_avg_fn())(averages, values, self.n_averaged)
        if not self.use_buffers:
            for own, other in zip(self.module.buffers(), model.buffers(), strict=False):
                own.detach().copy_(other.detach().to(own.device))
        self.n_averaged += 1

    def _averaged(self, model: Module) -> Iterable[Any]:
        if isinstance(model, AveragedModel):
            model = model.module
        return itertools.chain(model.parameters(), model.buffers()) if self.use_buffers else model.parameters()


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Recompute the running statistics of a model's batch norms from all batches of a loader."""
    momenta: dict[Any, Any] = {}
    for module in model.modules():
        if isinstance(module, _BatchNorm):
            module.reset_running_stats()
            momenta[module] = module.momentum
            module.momentum = None
    if not momenta:
        return
    was_training = model.training
    model.train()
    with using(grad=False):
        for batch in loader:
            given = batch[0] if isinstance(batch, (list, tuple)) else batch
            model(given if device is None else given.to(device))
    for module, momentum in momenta.items():
        module.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """From the rate of training to the rate at which averages are taken."""

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        for lr, group in zip(_for_each_group(swa_lr, optimizer, "swa_lr"), optimizer.param_groups, strict=True):
            group["swa_lr"] = lr
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        if not isinstance(anneal_epochs, int) or anneal_epochs < 0:
            raise ValueError(f"anneal_epochs must be equal or greater than 0, got {anneal_epochs}")
        self._anneal_strategy = anneal_strategy
        self.anneal_epochs = anneal_epochs
        super().__init__(optimizer, last_epoch)

    def _part(self, step: int) -> float:
        """Return how much of the way is gone at a step."""
        t = max(0.0, min(1.0, step / max(1, self.anneal_epochs)))
        return t if self._anneal_strategy == "linear" else (1 - math.cos(math.pi * t)) / 2

    def _rates(self) -> list[Any]:
        step = self._step_count - 1
        if self.anneal_epochs == 0:
            step = max(1, step)
        before, now = self._part(step - 1), self._part(step)
        found = []
        for group in self.optimizer.param_groups:
            end = group["swa_lr"]
            start = end if before == 1 else (group["lr"] - before * end) / (1 - before)
            found.append(end * now + start * (1 - now))
        return found


set_all(globals())
