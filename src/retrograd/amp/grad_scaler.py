"""`GradScaler`: a loss is scaled up before backward, gradients are scaled down before the step."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator
from enum import Enum
from functools import reduce
from operator import and_
from typing import Any

import numpy as np

from .._dtypes import float16, float32
from .._modes import current_mode
from .._tracebacks import guard_methods
from .._warnings import warn
from ..autograd.grad_mode import no_grad
from ..cuda import is_available as _has_cuda
from ..tensor import Tensor
from ..tensor._functions.creation import full
from ..tensor._functions.elementwise import isfinite


class OptState(Enum):
    """Where an optimizer stands since the last update."""

    READY = 0
    UNSCALED = 1
    STEPPED = 2


_READY, _UNSCALED, _STEPPED = OptState


def _refresh_per_optimizer_state() -> dict[str, Any]:
    """Return what torch's scalers know of an optimizer at first; their pickles name this function."""
    return {"stage": OptState.READY, "found_inf_per_device": {}}


class _Progress:
    """What has been done with one optimizer since the last update, and whether its gradients were infinite."""

    def __init__(self) -> None:
        self.stage = _READY
        self.found_inf: bool | None = None


class GradScaler:
    """Keeps small gradients from vanishing in half precision; steps with infinite gradients are left out.

    Args:
        device: "cuda" or "cpu"
        init_scale: the first factor
        growth_factor: by how much it grows after many good steps
        backoff_factor: by how much it shrinks after a bad one
        growth_interval: how many good steps that is
        enabled: False makes it do nothing

    Example:
        >>> scaler, model = torch.amp.GradScaler("cpu"), nn.Linear(2, 1)
        >>> optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        >>> scaler.scale(model(torch.ones(3, 2)).sum()).backward()
        >>> scaler.step(optimizer)
        >>> scaler.update()
        >>> scaler.get_scale()
        65536.0
    """

    def __init__(
        self,
        device: str = "cuda",
        init_scale: float = 65536.0,
        growth_factor: float = 2.0,
        backoff_factor: float = 0.5,
        growth_interval: int = 2000,
        enabled: bool = True,
    ) -> None:
        self._device = device
        self._enabled = enabled
        if enabled and device == "cuda" and not _has_cuda():
            warn("torch.cuda.amp.GradScaler is enabled, but CUDA is not available.  Disabling.")
            self._enabled = False
        if not self._enabled:
            return
        if growth_factor <= 1.0:
            raise AssertionError("The growth factor must be > 1.0.")
        if backoff_factor >= 1.0:
            raise AssertionError("The backoff factor must be < 1.0.")
        self._init_scale = init_scale
        self._init_growth_tracker = 0
        self._growth_factor = growth_factor
        self._backoff_factor = backoff_factor
        self._growth_interval = growth_interval
        self._scale: Tensor | None = None
        self._growth_tracker = 0
        self._progress: dict[int, _Progress] = {}

    # ---- scaling ----
    def scale(self, outputs: Any) -> Any:
        """Return a tensor, or the tensors of an iterable, times the scale."""
        if not self._enabled:
            return outputs
        if isinstance(outputs, Tensor):
            if (recording := _recording()) is not None:
                return outputs * recording.scale_of(self)
            if self._scale is None:
                self._set_scale(self._init_scale)
                self._growth_tracker = self._init_growth_tracker
            return outputs * self._on(outputs.device)
        if isinstance(outputs, Iterable):
            scaled = map(self.scale, outputs)
            return type(outputs)(scaled) if isinstance(outputs, (list, tuple)) else scaled
        raise ValueError("outputs must be a Tensor or an iterable of Tensors")

    def unscale_(self, optimizer: Any) -> None:
        """Divide the gradients of an optimizer by the scale, for instance before they are clipped."""
        if not self._enabled:
            return
        self._check_scale("unscale_")
        progress = self._progress_of(optimizer)
        if progress.stage == _UNSCALED:
            raise RuntimeError("unscale_() has already been called on this optimizer since the last update().")
        if progress.stage == _STEPPED:
            raise RuntimeError("unscale_() is being called after step().")
        grads = list(_gradients(optimizer))
        if any(grad.dtype is float16 for grad in grads):
            raise ValueError("Attempting to unscale FP16 gradients.")
        recording = _recording()
        inverse = 1.0 / (self.get_scale() if recording is None else recording.number_of(self))
        with no_grad():
            if recording is not None and grads:  # one question for all
                progress.found_inf = not bool(reduce(and_, [isfinite(grad).all() for grad in grads]))
            for grad in grads:
                if recording is None:
                    progress.found_inf = bool(progress.found_inf) or not bool(isfinite(grad).all())
                grad.mul_(inverse)
        progress.stage = _UNSCALED

    def step(self, optimizer: Any, *args: Any, **kwargs: Any) -> Any:
        """Unscale if need be, and step unless a gradient is infinite or NaN; return what the step returns."""
        if not self._enabled:
            return optimizer.step(*args, **kwargs)
        if "closure" in kwargs:
            raise RuntimeError("Closure use is not currently supported if GradScaler is enabled.")
        self._check_scale("step")
        progress = self._progress_of(optimizer)
        if progress.stage == _STEPPED:
            raise RuntimeError("step() has already been called since the last update().")
        if progress.stage == _READY:
            self.unscale_(optimizer)
        if progress.found_inf is None:
            raise AssertionError("No inf checks were recorded for this optimizer.")
        result = None if progress.found_inf else optimizer.step(*args, **kwargs)
        progress.stage = _STEPPED
        return result

    def update(self, new_scale: Any = None) -> None:
        """Lower the scale after an infinite gradient, raise it after many steps without; or set it."""
        if not self._enabled:
            return
        self._check_scale("update")
        recording = _recording()
        if new_scale is not None:
            if recording is not None:
                recording.refuse("a scaler is given a scale")
            self._set_scale(_new_scale(new_scale))
        else:
            found = [one.found_inf for one in self._progress.values() if one.found_inf is not None]
            if not found:
                raise AssertionError("No inf checks were recorded prior to update.")
            if recording is None:
                self._adapt(any(found))
            else:
                recording.call_after(GradScaler._adapt, (self, any(found)), {}, (self,))
        self._progress = {}

    def _adapt(self, found_inf: bool) -> None:
        if found_inf:
            self._set_scale(self.get_scale() * self._backoff_factor)
            self._growth_tracker = 0
            return
        self._growth_tracker += 1
        if self._growth_tracker == self._growth_interval:
            grown = np.float32(self.get_scale() * self._growth_factor)
            if np.isfinite(grown):
                self._set_scale(float(grown))
            self._growth_tracker = 0

    # ---- what it knows ----
    def is_enabled(self) -> bool:
        """Tell whether it scales."""
        return self._enabled

    def get_scale(self) -> float:
        """Return the scale, 1 if disabled."""
        if not self._enabled:
            return 1.0
        return self._init_scale if self._scale is None else float(self._scale.item())

    def _get_growth_tracker(self) -> int:
        return self._growth_tracker if self._enabled else 0

    def get_growth_factor(self) -> float:
        """Return by what the scale grows."""
        return self._growth_factor

    def set_growth_factor(self, new_factor: float) -> None:
        """Set by what the scale grows."""
        self._growth_factor = new_factor

    def get_backoff_factor(self) -> float:
        """Return by what the scale shrinks."""
        return self._backoff_factor

    def set_backoff_factor(self, new_factor: float) -> None:
        """Set by what the scale shrinks."""
        self._backoff_factor = new_factor

    def get_growth_interval(self) -> int:
        """Return after how many good steps the scale grows."""
        return self._growth_interval

    def set_growth_interval(self, new_interval: int) -> None:
        """Set after how many good steps the scale grows."""
        self._growth_interval = new_interval

    def state_dict(self) -> dict[str, Any]:
        """Return scale, factors and counter; nothing if disabled."""
        if not self._enabled:
            return {}
        return {
            "scale": self.get_scale(),
            "growth_factor": self._growth_factor,
            "backoff_factor": self._backoff_factor,
            "growth_interval": self._growth_interval,
            "_growth_tracker": self._growth_tracker,
        }

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` gave; a disabled scaler takes nothing."""
        if not self._enabled:
            return
        if not state_dict:
            raise RuntimeError(
                "The source state dict is empty, possibly because it was saved from a disabled instance of GradScaler."
            )
        self._init_scale = state_dict["scale"]
        if self._scale is not None:
            self._set_scale(state_dict["scale"])
        self._growth_factor = state_dict["growth_factor"]
        self._backoff_factor = state_dict["backoff_factor"]
        self._growth_interval = state_dict["growth_interval"]
        self._init_growth_tracker = self._growth_tracker = state_dict["_growth_tracker"]

    def __getstate__(self) -> dict[str, Any]:
        """Return what torch's scalers keep in a pickle, between two iterations."""
        if not self._enabled:
            return dict(self.__dict__)
        if self._progress:
            raise AssertionError(
                "A GradScaler instance may only be pickled at the beginning of an iteration, or at the end after "
                "scaler.update()."
            )
        kept = {name: value for name, value in self.__dict__.items() if name != "_progress"}
        kept |= {"_init_scale": self.get_scale(), "_scale": None}
        kept |= {"_init_growth_tracker": self._growth_tracker, "_growth_tracker": None}
        return kept | {"_per_optimizer_states": defaultdict(_refresh_per_optimizer_state)}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        if self._enabled:
            del self.__dict__["_per_optimizer_states"]
            self._growth_tracker = self._init_growth_tracker
            self._progress = {}

    # ---- its parts ----
    def _go_on(self, progress: dict[int, tuple[Any, Any]]) -> None:
        """Be where a compiled program has left optimizers: by their ids, their stage and whether gradients were infinite."""
        for key, (stage, found_inf) in progress.items():
            one = self._progress[key] = _Progress()
            one.stage, one.found_inf = stage, found_inf

    def _set_scale(self, value: float) -> None:
        self._scale = full((), value, dtype=float32)

    def _on(self, device: Any) -> Any:
        assert self._scale is not None
        return self._scale.to(device)

    def _check_scale(self, name: str) -> None:
        if self._scale is None:
            raise AssertionError(
                f"Attempted {name} but _scale is None.  This may indicate your script did not use scaler.scale(loss or "
                "outputs) earlier in the iteration."
            )

    def _progress_of(self, optimizer: Any) -> _Progress:
        if (recording := _recording()) is not None:
            recording.number_of(self)  # which refuses it after an update
        return self._progress.setdefault(id(optimizer), _Progress())


def _recording() -> Any:
    """Return what `torch.compile` records with, if it does."""
    return current_mode().recording


def _new_scale(value: Any) -> float:
    """Return a scale that a program gives: a float, or a tensor of one."""
    if isinstance(value, float):
        return value
    if not isinstance(value, Tensor):
        raise AttributeError(
            f"'{type(value).__name__}' object has no attribute 'device'\nHint: pass a float or a tensor that holds one."
        )
    if value.numel() != 1 or value.requires_grad:
        raise AssertionError(
            "new_scale should be a float or a 1-element torch.cuda.FloatTensor or torch.FloatTensor with "
            "requires_grad=False."
        )
    if value.dim():
        shape = ", ".join(map(str, value.shape))
        raise RuntimeError(f"output with shape [] doesn't match the broadcast shape [{shape}]")
    return float(value.item())


def _gradients(optimizer: Any) -> Iterator[Any]:
    for group in optimizer.param_groups:
        for parameter in group["params"]:
            if parameter.grad is not None:
                yield parameter.grad


__all__ = ["GradScaler", "OptState", "_refresh_per_optimizer_state"]


guard_methods(GradScaler)
