"""`higher_order.wrap_with_set_grad_enabled` and `wrap_with_autocast`: calls of a function under modes, as graphs contain them."""

from __future__ import annotations

from typing import Any

from .amp.autocast_mode import autocast
from .autograd.grad_mode import set_grad_enabled
from .ops import HigherOrderOperator, higher_order


class WrapWithSetGradEnabled(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_set_grad_enabled`."""

    def __call__(self, enable_grad: bool, wrapped_func: Any, *args: Any, **kwargs: Any) -> Any:
        with set_grad_enabled(enable_grad):
            return wrapped_func(*args, **kwargs)


class WrapWithAutocast(HigherOrderOperator):
    """`torch.ops.higher_order.wrap_with_autocast`."""

    def __call__(
        self,
        device_type: str,
        dtype: Any,
        enabled: bool,
        cache_enabled: bool | None,
        wrapped_func: Any,
        *args: Any,
        **kwargs: Any,
    ) -> Any:
        with autocast(device_type, dtype, enabled, cache_enabled):
            return wrapped_func(*args, **kwargs)


wrap_with_set_grad_enabled = higher_order.add(WrapWithSetGradEnabled("wrap_with_set_grad_enabled"))
wrap_with_autocast = higher_order.add(WrapWithAutocast("wrap_with_autocast"))
