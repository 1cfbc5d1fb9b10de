"""What every schedule shares: the count of epochs, the rates it sets, and the order of steps."""

from __future__ import annotations

import functools
import weakref
from typing import Any

from ..._warnings import warn
from ...tensor._tensor import Tensor
from ..optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form "
    "is used instead of the new chainable form, where available. Please open an issue if you are unable to replicate "
    "your use case: https://github.com/pytorch/pytorch/issues/new/choose."
)
_MORE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_NOT_RESUMED = (
    "param '{key}' is not specified in param_groups[{number}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


def copied(value: Any) -> Any:
    """Return a rate that later writes do not change."""
    return value.clone() if isinstance(value, Tensor) else value


def set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; one that is a Tensor is written."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def rates_of(optimizer: Optimizer) -> list[Any]:
    """Return the rates of an optimizer's groups."""
    return [copied(group["lr"]) for group in optimizer.param_groups]


def check_optimizer(optimizer: Any) -> None:
    """Refuse what is not an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def for_each_group(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    """Return one value for each group of an optimizer."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [copied(value) for _ in groups]
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {len(groups)}."
        )
    return list(value)


class LRScheduler:
    """Sets the rates of an optimizer at every step; `get_lr` computes them."""

    _get_lr_called_within_step = False
    _is_initial = False

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NOT_RESUMED.format(key="initial_lr", number=number))
        self.base_lrs = [copied(group["initial_lr"]) for group in optimizer.param_groups]
        self.last_epoch: Any = last_epoch
        _watch_steps(optimizer)
        self._initial_step()

    def _initial_step(self) -> None:
        self._step_count = 0
        self._is_initial = True
        try:
            self.step()
        finally:
            self._is_initial = False

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer."""
        return {name: value for name, value in self.__dict__.items() if name != "optimizer"}

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update(state_dict)

    def get_last_lr(self) -> list[Any]:
        """Return the rates that were set last."""
        return self._last_lr

    def get_lr(self) -> list[Any]:
        """Return the rates of this epoch from those of the last."""
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")

    def _current(self) -> list[Any]:
        """Return the rates as they are."""
        return [group["lr"] for group in self.optimizer.param_groups]

    def step(self, epoch: int | None = None) -> None:
        """Go to the next epoch, or to a given one."""
        if self._step_count == 1:
            self._warn_of_order()
        self._step_count += 1
        if epoch is not None:
            warn(EPOCH_DEPRECATION_WARNING)
        self._update_lr(epoch)

    def _warn_of_order(self) -> None:
        if not hasattr(self.optimizer.step, "_wrapped_by_lr_sched"):
            warn(
                "Seems like `optimizer.step()` has been overridden after learning rate scheduler initialization. "
                f"Please, make sure to call `optimizer.step()` before `lr_scheduler.step()`. {_MORE}"
            )
        elif not getattr(self.optimizer, "_opt_called", False):
            warn(
                "Detected call of `lr_scheduler.step()` before `optimizer.step()`. In PyTorch 1.1.0 and later, you "
                "should call them in the opposite order: `optimizer.step()` before `lr_scheduler.step()`.  Failure to "
                f"do this will result in PyTorch skipping the first value of the learning rate schedule. {_MORE}"
            )

    def _update_lr(self, epoch: int | None = None) -> None:
        self._get_lr_called_within_step = True
        try:
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
        finally:
            self._get_lr_called_within_step = False
        self._set(values)

    def _set(self, values: list[Any]) -> None:
        groups = self.optimizer.param_groups
        if len(values) != len(groups):
            raise ValueError(
                f"zip() argument 2 is {'shorter' if len(values) < len(groups) else 'longer'} than argument 1\n"
                f"Hint: {type(self).__name__} has rates for {len(values)} groups of parameters, its optimizer has {len(groups)}: "
                "make the schedule after the last add_param_group."
            )
        for group, value in zip(groups, values, strict=True):
            set_option(group, "lr", value)
        self._last_lr = rates_of(self.optimizer)


def _warn_get_lr_called_within_step(lr_scheduler: LRScheduler) -> None:
    """Warn of a call of `get_lr` that is not `step`'s, for schedules written outside this package."""
    lr_scheduler._warn_outside_step()


class _enable_get_lr_call:  # noqa: N801 - torch's name
    """A block in which `get_lr` may be called, for schedules written outside this package."""

    def __init__(self, o: LRScheduler) -> None:
        self.o = o

    def __enter__(self) -> _enable_get_lr_call:
        self.o._get_lr_called_within_step = True
        return self

    def __exit__(self, *exc: object) -> None:
        self.o._get_lr_called_within_step = False


class _LRScheduler(LRScheduler):
    """The old name of `LRScheduler`."""


def _watch_steps(optimizer: Optimizer) -> None:
    """Let an optimizer remember that it has stepped, so that schedules can complain of the order."""
    step: Any = optimizer.step
    if hasattr(step, "_wrapped_by_lr_sched"):
        return
    function, owner = step.__func__, weakref.ref(optimizer)  # a strong reference would be a cycle

    @functools.wraps(function)
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        alive = owner()
        alive._opt_called = True  # type: ignore[union-attr]
        return function(alive, *args, **kwargs)

    wrapper._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = wrapper  # type: ignore[method-assign]


def kept_functions(functions: list[Any]) -> list[Any]:
    """Return what a state_dict keeps of functions: the attributes of callable objects, nothing of plain functions."""
    return [None if hasattr(one, "__code__") else one.__dict__.copy() for one in functions]
