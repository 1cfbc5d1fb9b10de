"""torch.optim.lr_scheduler: rates that change from epoch to epoch."""

from __future__ import annotations

import functools
import math
import weakref
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .._modes import read_mode
from .._public import set_all
from .._tracebacks import guard_methods, guard_own
from .._warnings import warn
from ..tensor._tensor import Tensor
from .optimizer import Optimizer

EPOCH_DEPRECATION_WARNING = (
    "The epoch parameter in `scheduler.step()` was not necessary and is being deprecated where possible. Please use "
    "`scheduler.step()` to step the scheduler. During the deprecation, if epoch is different from None, the closed form "
    "is used instead of the new chainable form, where available."
)
_MORE = "See more details at https://pytorch.org/docs/stable/optim.html#how-to-adjust-learning-rate"
_NOT_RESUMED = (
    "param '{key}' is not specified in param_groups[{number}] when resuming scheduler with last_epoch >= 0.\n"
    "This typically happens when:\n"
    "1. You're trying to resume training from a checkpoint but haven't properly loaded the optimizer state\n"
    "2. You're using last_epoch >= 0 for a fresh training run (not recommended)"
)


def _copied(value: Any) -> Any:
    """Return a rate that later writes do not change."""
    return value.clone() if isinstance(value, Tensor) else value


def _set_option(group: dict[str, Any], name: str, value: Any) -> None:
    """Set an option of a group; one that is a Tensor is written."""
    if isinstance(group[name], Tensor):
        group[name].fill_(value)
    else:
        group[name] = value


def _rates_of(optimizer: Optimizer) -> list[Any]:
    """Return the rates of an optimizer's groups."""
    return [_copied(group["lr"]) for group in optimizer.param_groups]


def _check_optimizer(optimizer: Any) -> None:
    """Refuse what is not an optimizer."""
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is not an Optimizer")


def _for_each_group(value: Any, optimizer: Optimizer, name: str) -> list[Any]:
    """Return one value for each group of an optimizer."""
    groups = optimizer.param_groups
    if not isinstance(value, (list, tuple)):
        return [_copied(value) for _ in groups]
    if len(value) != len(groups):
        raise ValueError(
            f"{name} must have the same length as optimizer.param_groups. {name} has {len(value)} values, param_groups "
            f"has {len(groups)}."
        )
    return list(value)


def _after_programs(step: Callable[..., None]) -> Callable[..., None]:
    """Make a step that, while `torch.compile` records, is noted: it is taken after the program has run."""

    @functools.wraps(step)
    def call(self: LRScheduler, *args: Any, **kwargs: Any) -> None:
        recording = None if (mode := read_mode()) is None else mode.recording
        if recording is None:
            return step(self, *args, **kwargs)
        return recording.call_after(call, (self, *args), kwargs, (self, self.optimizer))  # type: ignore[no-any-return]

    return call


class LRScheduler:
    """Sets the rates of an optimizer at every step; `get_lr` computes them.

    Args:
        optimizer: the optimizer
        last_epoch: the epoch to go on from; -1 begins

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> isinstance(torch.optim.lr_scheduler.StepLR(optimizer, 5), torch.optim.lr_scheduler.LRScheduler)
        True
    """

    _get_lr_called_within_step = False
    _is_initial = False

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "step" in cls.__dict__:
            cls.step = _after_programs(cls.step)  # type: ignore[method-assign]
        guard_own(cls, "__init__", "step", "load_state_dict")

    def __init__(self, optimizer: Optimizer, last_epoch: int = -1) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        for number, group in enumerate(optimizer.param_groups):
            if last_epoch == -1:
                group.setdefault("initial_lr", _copied(group["lr"]))
            elif "initial_lr" not in group:
                raise KeyError(_NOT_RESUMED.format(key="initial_lr", number=number))
        self.base_lrs = [_copied(group["initial_lr"]) for group in optimizer.param_groups]
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
        """Return the rates of this epoch."""
        rates = self._rates()
        self._warn_outside_step()
        return rates

    def _rates(self) -> list[Any]:
        """Return the rates of this epoch, most often from those of the last."""
        raise NotImplementedError

    def _warn_outside_step(self) -> None:
        if not self._get_lr_called_within_step:
            warn("To get the last learning rate computed by the scheduler, please use `get_last_lr()`.")

    def _current(self) -> list[Any]:
        """Return the rates as they are."""
        return [group["lr"] for group in self.optimizer.param_groups]

    @_after_programs
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
        with _enable_get_lr_call(self):
            if epoch is None:
                self.last_epoch += 1
                values = self.get_lr()
            else:
                self.last_epoch = epoch
                closed = getattr(self, "_get_closed_form_lr", None)
                values = self.get_lr() if closed is None else closed()
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
            _set_option(group, "lr", value)
        self._last_lr = _rates_of(self.optimizer)


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
        if (mode := read_mode()) is None or mode.recording is None:  # else the step is still to come
            alive._opt_called = True  # type: ignore[union-attr]
        return function(alive, *args, **kwargs)

    wrapper._wrapped_by_lr_sched = True  # type: ignore[attr-defined]
    optimizer.step = wrapper  # type: ignore[method-assign]


def _kept(function: Any) -> Any:
    """Return what a state_dict keeps of a function: the attributes of a callable object, nothing of a plain function."""
    return None if function is None or hasattr(function, "__code__") else function.__dict__.copy()


# ---- a formula of the epoch ----
class _ByFunctions(LRScheduler):
    """A schedule with a function for every group."""

    def __init__(self, optimizer: Optimizer, lr_lambda: Any, last_epoch: int = -1) -> None:
        self.optimizer = optimizer
        groups = len(optimizer.param_groups)
        if isinstance(lr_lambda, (list, tuple)):
            if len(lr_lambda) != groups:
                raise ValueError(f"Expected {groups} lr_lambdas, but got {len(lr_lambda)}")
            self.lr_lambdas = list(lr_lambda)
        else:
            self.lr_lambdas = [lr_lambda] * groups
        self._check_functions()
        super().__init__(optimizer, last_epoch)

    def _check_functions(self) -> None:
        """Refuse what is no function, where calling it would not."""

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and plain functions."""
        state = super().state_dict()
        state["lr_lambdas"] = [_kept(function) for function in state.pop("lr_lambdas")]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; plain functions stay."""
        for function, kept in zip(self.lr_lambdas, state_dict["lr_lambdas"], strict=False):
            if kept is not None:
                function.__dict__.update(kept)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "lr_lambdas"})


class LambdaLR(_ByFunctions):
    """The first rate times a function of the epoch.

    Args:
        optimizer: the optimizer
        lr_lambda: the function, or one for each group of parameters
        last_epoch: the epoch to go on from; -1 begins

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.LambdaLR(optimizer, lambda epoch: 0.5**epoch)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def _rates(self) -> list[Any]:
        return [base * function(self.last_epoch) for function, base in zip(self.lr_lambdas, self.base_lrs, strict=True)]


class MultiplicativeLR(_ByFunctions):
    """The last rate times a function of the epoch."""

    def _check_functions(self) -> None:
        for function in self.lr_lambdas:  # none of them is called at the start
            if not callable(function):
                raise TypeError(f"lr_lambda should be a function, but got {type(function).__name__}")

    def _rates(self) -> list[Any]:
        if self._is_initial:
            return self._current()
        return [lr * function(self.last_epoch) for function, lr in zip(self.lr_lambdas, self._current(), strict=True)]


class StepLR(LRScheduler):
    """A factor every `step_size` epochs.

    Args:
        optimizer: the optimizer
        step_size: how many epochs
        gamma: the factor
        last_epoch: the epoch to go on from; -1 begins

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.StepLR(optimizer, step_size=2, gamma=0.5)
        >>> for _ in range(4):
        ...     optimizer.step()
        ...     schedule.step()
        >>> schedule.get_last_lr()
        [0.25]
    """

    def __init__(self, optimizer: Optimizer, step_size: int, gamma: float = 0.1, last_epoch: int = -1) -> None:
        self.step_size = step_size
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0 or self.last_epoch % self.step_size:
            return self._current()
        return [lr * self.gamma for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma ** (self.last_epoch // self.step_size) for base in self.base_lrs]


class MultiStepLR(LRScheduler):
    """A factor at every milestone."""

    def __init__(
        self, optimizer: Optimizer, milestones: Iterable[int], gamma: float = 0.1, last_epoch: int = -1
    ) -> None:
        self.milestones = Counter(milestones)
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch not in self.milestones:
            return self._current()
        return [lr * self.gamma ** self.milestones[self.last_epoch] for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        passed = bisect_right(sorted(self.milestones.elements()), self.last_epoch)
        return [base * self.gamma**passed for base in self.base_lrs]


class ConstantLR(LRScheduler):
    """A factor for the first epochs."""

    def __init__(
        self, optimizer: Optimizer, factor: float = 1.0 / 3, total_iters: int = 5, last_epoch: int = -1
    ) -> None:
        if factor > 1.0 or factor < 0:
            raise ValueError("Constant multiplicative factor expected to be between 0 and 1.")
        self.factor = factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return [lr * self.factor for lr in self._current()]
        if self.last_epoch != self.total_iters:
            return self._current()
        return [lr * (1.0 / self.factor) for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        factor = self.factor + (self.last_epoch >= self.total_iters) * (1 - self.factor)
        return [base * factor for base in self.base_lrs]


class LinearLR(LRScheduler):
    """A factor that goes from one number to another in a straight line."""

    def __init__(
        self,
        optimizer: Optimizer,
        start_factor: float = 1.0 / 3,
        end_factor: float = 1.0,
        total_iters: int = 5,
        last_epoch: int = -1,
    ) -> None:
        if start_factor > 1.0 or start_factor <= 0:
            raise ValueError("Starting multiplicative factor expected to be greater than 0 and less or equal to 1.")
        if end_factor > 1.0 or end_factor < 0:
            raise ValueError("Ending multiplicative factor expected to be between 0 and 1.")
        self.start_factor = start_factor
        self.end_factor = end_factor
        self.total_iters = total_iters
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self.last_epoch == 0:
            return [lr * self.start_factor for lr in self._current()]
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        rise = self.end_factor - self.start_factor
        factor = 1.0 + rise / (self.total_iters * self.start_factor + (self.last_epoch - 1) * rise)
        return [lr * factor for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        part = min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * (self.start_factor + (self.end_factor - self.start_factor) * part) for base in self.base_lrs]


class ExponentialLR(LRScheduler):
    """A factor at every epoch.

    Args:
        optimizer: the optimizer
        gamma: the factor
        last_epoch: the epoch to go on from; -1 begins

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ExponentialLR(optimizer, gamma=0.5)
        >>> optimizer.step()
        >>> schedule.step()
        >>> schedule.get_last_lr()
        [0.5]
    """

    def __init__(self, optimizer: Optimizer, gamma: float, last_epoch: int = -1) -> None:
        self.gamma = gamma
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial:
            return self._current()
        return [lr * self.gamma for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        return [base * self.gamma**self.last_epoch for base in self.base_lrs]


class PolynomialLR(LRScheduler):
    """Down to zero, by a power of what is left of the way."""

    def __init__(self, optimizer: Optimizer, total_iters: int = 5, power: float = 1.0, last_epoch: int = -1) -> None:
        self.total_iters = total_iters
        self.power = power
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial or self.last_epoch > self.total_iters:
            return self._current()
        left = 1.0 - self.last_epoch / self.total_iters
        before = 1.0 - (self.last_epoch - 1) / self.total_iters
        return [lr * (left / before) ** self.power for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        left = 1.0 - min(self.total_iters, self.last_epoch) / self.total_iters
        return [base * left**self.power for base in self.base_lrs]


class CosineAnnealingLR(LRScheduler):
    """Down to `eta_min` along half a wave in `T_max` epochs, and up again in as many.

    Args:
        optimizer: the optimizer
        T_max: how many epochs it takes to get down
        eta_min: the smallest rate
        last_epoch: the epoch to go on from; -1 begins

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.CosineAnnealingLR(optimizer, T_max=2)
        >>> optimizer.step()
        >>> schedule.step()
        >>> round(schedule.get_last_lr()[0], 6)
        0.5
    """

    def __init__(self, optimizer: Optimizer, T_max: int, eta_min: float = 0.0, last_epoch: int = -1) -> None:  # noqa: N803
        self.T_max = T_max
        self.eta_min = eta_min
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        if self._is_initial:
            return self._current()
        if self._step_count == 1 and self.last_epoch > 0:  # moved from outside, before the first step
            return self._get_closed_form_lr()
        lowest, angle = self.eta_min, math.pi / self.T_max
        if (self.last_epoch - 1 - self.T_max) % (2 * self.T_max) == 0:
            return [
                lr + (base - lowest) * (1 - math.cos(angle)) / 2
                for base, lr in zip(self.base_lrs, self._current(), strict=True)
            ]
        ratio = (1 + math.cos(angle * self.last_epoch)) / (1 + math.cos(angle * (self.last_epoch - 1)))
        return [ratio * (lr - lowest) + lowest for lr in self._current()]

    def _get_closed_form_lr(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.last_epoch / self.T_max)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]


# ---- up and down ----
NO_MOMENTUM = "optimizer must support momentum or beta1 with `cycle_momentum` option enabled"


def _set_momentum(group: dict[str, Any], value: Any, beta1: bool) -> None:
    """Set the momentum of a group, or its first beta."""
    if beta1:
        group["betas"] = (value, *group["betas"][1:])
    else:
        group["momentum"] = value


def _begin_momenta(optimizer: Optimizer, least: Any, most: Any, first: bool) -> tuple[bool, list[Any], list[Any]]:
    """Tell whether an optimizer's momentum is its first beta; return the bounds of each group, set in it at `first`."""
    if "momentum" not in optimizer.defaults and "betas" not in optimizer.defaults:
        raise ValueError(NO_MOMENTUM)
    beta1 = "betas" in optimizer.defaults
    lows = _for_each_group(least, optimizer, "base_momentum")
    highs = _for_each_group(most, optimizer, "max_momentum")
    if first:
        for low, high, group in zip(lows, highs, optimizer.param_groups, strict=True):
            _set_momentum(group, high, beta1)
            group["max_momentum"] = high
            group["base_momentum"] = low
    return beta1, lows, highs


class CyclicLR(LRScheduler):
    """Up and down between two rates, again and again."""

    def __init__(
        self,
        optimizer: Optimizer,
        base_lr: Any,
        max_lr: Any,
        step_size_up: int = 2000,
        step_size_down: int | None = None,
        mode: str = "triangular",
        gamma: float = 1.0,
        scale_fn: Callable[[float], float] | None = None,
        scale_mode: str = "cycle",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.8,
        max_momentum: Any = 0.9,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        base_lrs = _for_each_group(base_lr, optimizer, "base_lr")
        if last_epoch == -1:
            for lr, group in zip(base_lrs, optimizer.param_groups, strict=True):
                _set_option(group, "lr", lr)
        self.max_lrs = _for_each_group(max_lr, optimizer, "max_lr")
        up = float(step_size_up)
        self.total_size = up + (up if step_size_down is None else float(step_size_down))
        self.step_ratio = up / self.total_size
        if mode not in ("triangular", "triangular2", "exp_range") and scale_fn is None:
            raise ValueError("mode is invalid and scale_fn is None")
        self.mode = mode
        self.gamma = gamma
        self._scale_fn_custom = scale_fn
        self.scale_mode = scale_mode if scale_fn is not None else "iterations" if mode == "exp_range" else "cycle"
        self._init_scale_fn()
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            begun = _begin_momenta(optimizer, base_momentum, max_momentum, last_epoch == -1)
            self.use_beta1, self.base_momentums, self.max_momentums = begun
        super().__init__(optimizer, last_epoch)
        self.base_lrs = base_lrs

    def _init_scale_fn(self) -> None:
        if self._scale_fn_custom is None:  # the names are torch's: whole schedules are saved with this function
            function = getattr(self, f"_{self.mode}_scale_fn")
            self._scale_fn_ref = functools.partial(function, self.gamma) if self.mode == "exp_range" else function

    def scale_fn(self, x: float) -> float:
        """Return the height of a cycle, or at an iteration."""
        return self._scale_fn_ref(x) if self._scale_fn_custom is None else self._scale_fn_custom(x)

    @staticmethod
    def _triangular_scale_fn(x: float) -> float:
        return 1.0

    @staticmethod
    def _triangular2_scale_fn(x: float) -> float:
        return float(1 / (2.0 ** (x - 1)))

    @staticmethod
    def _exp_range_scale_fn(gamma: float, x: float) -> float:
        return float(gamma**x)

    def _rates(self) -> list[Any]:
        """Return the rates of this epoch; the momenta are set."""
        cycle = math.floor(1 + self.last_epoch / self.total_size)
        x = 1.0 + self.last_epoch / self.total_size - cycle
        height = x / self.step_ratio if x <= self.step_ratio else (x - 1) / (self.step_ratio - 1)
        scale = self.scale_fn(cycle if self.scale_mode == "cycle" else self.last_epoch)
        if self.cycle_momentum:
            momenta = zip(self.base_momentums, self.max_momentums, self.optimizer.param_groups, strict=False)
            for low, high, group in momenta:
                _set_momentum(group, high - (high - low) * height * scale, self.use_beta1)
        base = self.base_lrs
        return [low + (high - low) * height * scale for low, high in zip(base, self.max_lrs, strict=True)]

    def state_dict(self) -> dict[str, Any]:
        """Return everything but the optimizer and a plain function."""
        state = super().state_dict()
        state.pop("_scale_fn_ref", None)
        state["_scale_fn_custom"] = _kept(state.pop("_scale_fn_custom"))
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned; a plain function stays."""
        kept = state_dict.get("_scale_fn_custom")
        if kept is not None and self._scale_fn_custom is not None:
            self._scale_fn_custom.__dict__.update(kept)
        super().load_state_dict({name: value for name, value in state_dict.items() if name != "_scale_fn_custom"})
        self._init_scale_fn()


class CosineAnnealingWarmRestarts(LRScheduler):
    """Down along half a wave, then from the top again; each way down `T_mult` times as long."""

    def __init__(
        self,
        optimizer: Optimizer,
        T_0: int,  # noqa: N803
        T_mult: int = 1,  # noqa: N803
        eta_min: float = 0.0,
        last_epoch: int = -1,
    ) -> None:
        if T_0 <= 0 or not isinstance(T_0, int):
            raise ValueError(f"Expected positive integer T_0, but got {T_0}")
        if T_mult < 1 or not isinstance(T_mult, int):
            raise ValueError(f"Expected integer T_mult >= 1, but got {T_mult}")
        if not isinstance(eta_min, (float, int)):
            raise ValueError(f"Expected float or int eta_min, but got {eta_min} of type {type(eta_min)}")
        self.T_0 = T_0
        self.T_i = T_0
        self.T_mult = T_mult
        self.eta_min = eta_min
        self.T_cur: Any = last_epoch
        super().__init__(optimizer, last_epoch)

    def _rates(self) -> list[Any]:
        height = (1 + math.cos(math.pi * self.T_cur / self.T_i)) / 2
        return [self.eta_min + (base - self.eta_min) * height for base in self.base_lrs]

    def step(self, epoch: Any = None) -> None:
        """Go to the next epoch, or to a given one, which may have a fraction."""
        if epoch is None and self.last_epoch < 0:
            epoch = 0
        if epoch is None:
            epoch = self.last_epoch + 1
            self.T_cur += 1
            if self.T_cur >= self.T_i:
                self.T_cur %= self.T_i
                self.T_i *= self.T_mult
        else:
            if epoch < 0:
                raise ValueError(f"Expected non-negative epoch, but got {epoch}")
            self._find(epoch)
        self.last_epoch = math.floor(epoch)
        with _enable_get_lr_call(self):
            values = self.get_lr()
        self._set(values)

    def _find(self, epoch: Any) -> None:
        """Find the way down on which an epoch is, and how far along it."""
        if epoch < self.T_0:
            self.T_i, self.T_cur = self.T_0, epoch
        elif self.T_mult == 1:
            self.T_cur = epoch % self.T_0
        else:
            n = int(math.log(epoch / self.T_0 * (self.T_mult - 1) + 1, self.T_mult))
            self.T_cur = epoch - self.T_0 * (self.T_mult**n - 1) / (self.T_mult - 1)
            self.T_i = self.T_0 * self.T_mult**n


class OneCycleLR(LRScheduler):
    """Up to a largest rate and down to a much smaller one, in a fixed number of steps."""

    def __init__(
        self,
        optimizer: Optimizer,
        max_lr: Any,
        total_steps: int | None = None,
        epochs: int | None = None,
        steps_per_epoch: int | None = None,
        pct_start: float = 0.3,
        anneal_strategy: str = "cos",
        cycle_momentum: bool = True,
        base_momentum: Any = 0.85,
        max_momentum: Any = 0.95,
        div_factor: float = 25.0,
        final_div_factor: float = 1e4,
        three_phase: bool = False,
        last_epoch: int = -1,
    ) -> None:
        _check_optimizer(optimizer)
        self.optimizer = optimizer
        self.total_steps = _steps(total_steps, epochs, steps_per_epoch)
        if pct_start < 0 or pct_start > 1 or not isinstance(pct_start, float):
            raise ValueError(f"Expected float between 0 and 1 pct_start, but got {pct_start}")
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f"anneal_strategy must be one of 'cos' or 'linear', instead got {anneal_strategy}")
        self._schedule_phases = _phases(pct_start * self.total_steps, self.total_steps, three_phase)
        self._anneal_func_type = anneal_strategy
        highest = _for_each_group(max_lr, optimizer, "max_lr")
        if last_epoch == -1:
            for lr, group in zip(highest, optimizer.param_groups, strict=True):
                group["initial_lr"] = lr / div_factor
                group["max_lr"] = lr
                group["min_lr"] = group["initial_lr"] / final_div_factor
        self.cycle_momentum = cycle_momentum
        if cycle_momentum:
            self.use_beta1 = _begin_momenta(optimizer, base_momentum, max_momentum, last_epoch == -1)[0]
        super().__init__(optimizer, last_epoch)

    def _anneal(self, start: Any, end: Any, part: float) -> Any:
        if self._anneal_func_type == "linear":
            return (end - start) * part + start
        return end + (start - end) / 2.0 * (math.cos(math.pi * part) + 1)

    def _rates(self) -> list[Any]:
        """Return the rates of this step; the momenta are set."""
        step = self.last_epoch
        if step > self.total_steps:
            raise ValueError(f"Tried to step {step} times. The specified number of total steps is {self.total_steps}")
        begin: float = 0
        for phase in self._schedule_phases:
            if step <= phase["end_step"] or phase is self._schedule_phases[-1]:
                break
            begin = phase["end_step"]
        part = (step - begin) / (phase["end_step"] - begin)
        rates = []
        for group in self.optimizer.param_groups:
            rates.append(self._anneal(group[phase["start_lr"]], group[phase["end_lr"]], part))
            if self.cycle_momentum:
                value = self._anneal(group[phase["start_momentum"]], group[phase["end_momentum"]], part)
                _set_momentum(group, value, self.use_beta1)
        return rates


def _steps(total_steps: Any, epochs: Any, steps_per_epoch: Any) -> int:
    given = {"total_steps": total_steps}
    if total_steps is None:
        if epochs is None or steps_per_epoch is None:
            raise ValueError("You must define either total_steps OR (epochs AND steps_per_epoch)")
        given = {"epochs": epochs, "steps_per_epoch": steps_per_epoch}
    for name, value in given.items():
        if value <= 0 or not isinstance(value, int):
            raise ValueError(f"Expected positive integer {name}, but got {value}")
    return math.prod(given.values())


def _phases(rise: float, total: int, three: bool) -> list[dict[str, Any]]:
    """Return the parts of the cycle: up and down, or up, down to the start, and further down."""
    lows = ["initial_lr", "max_lr", "initial_lr", "min_lr"] if three else ["initial_lr", "max_lr", "min_lr"]
    momenta = ["max_momentum", "base_momentum", "max_momentum", "max_momentum"]
    ends = [float(rise) - 1, float(2 * rise) - 2, total - 1] if three else [float(rise) - 1, total - 1]
    return [
        {
            "end_step": end,
            "start_lr": lows[at],
            "end_lr": lows[at + 1],
            "start_momentum": momenta[at],
            "end_momentum": momenta[at + 1],
        }
        for at, end in enumerate(ends)
    ]


# ---- waiting until a measure has stopped getting better ----
class ReduceLROnPlateau(LRScheduler):
    """A smaller rate after too many epochs without progress.

    Args:
        optimizer: the optimizer
        mode: "min" if the measure shall fall, "max" if it shall rise
        factor: the factor of the rate
        patience: how many epochs without progress are accepted
        threshold: how much counts as progress
        threshold_mode: "rel" or "abs"
        cooldown: how many epochs to wait after a change
        min_lr: the smallest rate
        eps: the smallest change of the rate

    Example:
        >>> optimizer = torch.optim.SGD([torch.zeros(1)], lr=1.0)
        >>> schedule = torch.optim.lr_scheduler.ReduceLROnPlateau(optimizer, patience=1)
        >>> for loss in (1.0, 1.0, 1.0, 1.0):
        ...     schedule.step(loss)
        >>> schedule.get_last_lr()
        [0.1]
    """

    def __init__(
        self,
        optimizer: Optimizer,
        mode: str = "min",
        factor: float = 0.1,
        patience: int = 10,
        threshold: float = 1e-4,
        threshold_mode: str = "rel",
        cooldown: int = 0,
        min_lr: Any = 0,
        eps: float = 1e-8,
    ) -> None:
        if factor >= 1.0:
            raise ValueError("Factor should be < 1.0.")
        _check_optimizer(optimizer)
        if mode not in ("min", "max"):
            raise ValueError(f"mode {mode} is unknown!")
        if threshold_mode not in ("rel", "abs"):
            raise ValueError(f"threshold mode {threshold_mode} is unknown!")
        groups = len(optimizer.param_groups)
        if isinstance(min_lr, (list, tuple)) and len(min_lr) != groups:
            raise ValueError(f"expected {groups} min_lrs, got {len(min_lr)}")
        self.factor = factor
        self.optimizer = optimizer
        several = isinstance(min_lr, (list, tuple))
        self.default_min_lr = None if several else min_lr
        self.min_lrs = list(min_lr) if several else [min_lr] * groups
        self.patience = patience
        self.cooldown = cooldown
        self.eps = eps
        self.last_epoch = 0
        self._last_lr = _rates_of(optimizer)
        self.mode_worse = math.inf if mode == "min" else -math.inf
        self.mode = mode
        self.threshold = threshold
        self.threshold_mode = threshold_mode
        self._reset()

    def _reset(self) -> None:
        self.best: float = self.mode_worse
        self.cooldown_counter = 0
        self.num_bad_epochs = 0

    def step(self, metrics: Any, epoch: int | None = None) -> None:
        """Go to the next epoch, measured by `metrics`."""
        current = float(metrics)
        if epoch is None:
            epoch = self.last_epoch + 1
        else:
            warn(EPOCH_DEPRECATION_WARNING)
        self.last_epoch = epoch
        if self.is_better(current, self.best):
            self.best = current
            self.num_bad_epochs = 0
        else:
            self.num_bad_epochs += 1
        if self.in_cooldown:
            self.cooldown_counter -= 1
            self.num_bad_epochs = 0
        if self.num_bad_epochs > self.patience:
            self._reduce_lr()
            self.cooldown_counter = self.cooldown
            self.num_bad_epochs = 0
        self._last_lr = _rates_of(self.optimizer)

    def _reduce_lr(self) -> None:
        groups = self.optimizer.param_groups
        if len(groups) != len(self.min_lrs):
            if self.default_min_lr is None:
                raise RuntimeError(
                    "The number of param groups in the `optimizer` "
                    f"({len(groups)}) differs from when `ReduceLROnPlateau` was initialized ({len(self.min_lrs)}), "
                    "usually due to a new param group being added to the optimizer. Please modify the `min_lrs` field to "
                    "match the length of the `optimizer` param groups."
                )
            self.min_lrs = [self.default_min_lr] * len(groups)
        for group, least in zip(groups, self.min_lrs, strict=True):
            old = float(group["lr"])
            new = max(old * self.factor, least)
            if old - new > self.eps:
                _set_option(group, "lr", new)

    @property
    def in_cooldown(self) -> bool:
        """Whether bad epochs do not count yet."""
        return self.cooldown_counter > 0

    def is_better(self, a: float, best: float) -> bool:
        """Tell whether a measure is better than the best by more than the threshold."""
        smaller = self.mode == "min"
        if self.threshold_mode == "rel":
            return a < best * (1.0 - self.threshold) if smaller else a > best * (1.0 + self.threshold)
        return a < best - self.threshold if smaller else a > best + self.threshold


# ---- made of schedules: one after another, or all at once ----
def _check_schedulers(kind: str, schedulers: Sequence[Any], optimizer: Any) -> Any:
    """Refuse schedules that cannot work together; return the optimizer they share."""
    for at, one in enumerate(schedulers):
        if not hasattr(one, "optimizer"):
            raise TypeError(f"{kind} at index {at} should have `optimizer` as its attribute.")
        if isinstance(one, ReduceLROnPlateau):
            raise ValueError(
                f"{kind} does not support `ReduceLROnPlateau` scheduler as it requires additional kwargs to be specified "
                f"when calling `step`, but got one at index {at} in the given schedulers sequence."
            )
        optimizer = optimizer or one.optimizer
        if one.optimizer is not optimizer:
            raise ValueError(
                f"{kind} expects all schedulers to belong to the same optimizer, but got scheduler "
                f"{type(one).__name__} at index {at} has {one.optimizer}, which is different from "
                f"{type(optimizer).__name__}."
            )
    return optimizer


class _Composed(LRScheduler):
    """Keeps schedules, and saves them with itself."""

    _schedulers: list[Any]

    def state_dict(self) -> dict[str, Any]:
        """Return the state of every schedule, and their order."""
        state = {name: value for name, value in self.__dict__.items() if name not in ("optimizer", "_schedulers")}
        state["_schedulers"] = [one.state_dict() for one in self._schedulers]
        return state

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned."""
        self.__dict__.update({name: value for name, value in state_dict.items() if name != "_schedulers"})
        for one, state in zip(self._schedulers, state_dict["_schedulers"], strict=False):
            one.load_state_dict(state)


class SequentialLR(_Composed):
    """One schedule after another; each begins at its milestone."""

    def __init__(
        self, optimizer: Optimizer, schedulers: list[LRScheduler], milestones: list[int], last_epoch: int = -1
    ) -> None:
        if not schedulers:
            raise ValueError("SequentialLR expects at least one scheduler, but got no scheduler.")
        _check_schedulers("SequentialLR", schedulers, optimizer)
        if len(milestones) != len(schedulers) - 1:
            raise ValueError(
                "Sequential Schedulers expects number of schedulers provided to be one more than the number of milestone "
                f"points, but got number of schedulers {len(schedulers)} and the number of milestones to be equal to "
                f"{len(milestones)}"
            )
        self._schedulers = schedulers
        self._milestones = milestones
        self.last_epoch = last_epoch + 1
        self.optimizer = optimizer
        for group in optimizer.param_groups:  # undo what the schedules have set when they were made
            _set_option(group, "lr", _copied(group["initial_lr"]))
        for one in schedulers:
            self._undo_first_step(one)
        first = schedulers[bisect_right(milestones, 0)]  # milestones at or before the start are past
        first._initial_step()
        self._last_lr = first.get_last_lr()

    def _undo_first_step(self, scheduler: Any) -> None:
        if isinstance(scheduler, _Composed):
            for one in scheduler._schedulers:
                self._undo_first_step(one)
        elif hasattr(scheduler, "last_epoch"):
            scheduler.last_epoch -= 1

    def step(self) -> None:
        """Go to the next epoch."""
        self.last_epoch += 1
        at = bisect_right(self._milestones, self.last_epoch)
        scheduler = self._schedulers[at]
        if at > 0 and self._milestones[at - 1] == self.last_epoch:
            scheduler._update_lr(0)
        else:
            scheduler.step()
        self._last_lr = scheduler.get_last_lr()


class ChainedScheduler(_Composed):
    """Several schedules at once: each changes what the one before has set."""

    def __init__(self, schedulers: Sequence[LRScheduler], optimizer: Optimizer | None = None) -> None:
        if not schedulers:
            raise ValueError("ChainedScheduler expects at least one scheduler to be chained, but got no scheduler.")
        optimizer = _check_schedulers("ChainedScheduler", schedulers, optimizer)
        self._schedulers = list(schedulers)
        self.optimizer = optimizer
        self._last_lr = _rates_of(self._schedulers[-1].optimizer)

    def step(self) -> None:
        """Go to the next epoch."""
        for scheduler in self._schedulers:
            scheduler.step()
        self._last_lr = _rates_of(self._schedulers[-1].optimizer)


set_all(globals())


guard_methods(LRScheduler, "__init__", "step")
