"""torch._subclasses.fake_tensor: fake tensors, which here are tensors of the meta device.

Torch's say that they are on the device of what they stand for. Ours say "meta"; the device of what `from_tensor` was given is kept as
`fake_device`. A mode makes the meta device the default one; a tensor that is made with a `device=` of its own is a real one.
"""

from __future__ import annotations

from contextvars import ContextVar
from typing import Any

import retrograd
from retrograd._device import device as device_type
from retrograd.overrides import TorchFunctionMode
from retrograd.utils._pytree import tree_map_only

from .meta_utils import MetaConverter

META = device_type("meta")
_running: ContextVar[int] = ContextVar("retrograd_fake_modes", default=0)


class UnsupportedFakeTensorException(RuntimeError):  # noqa: N818 - torch's names
    """An operation has no shape rule."""


class DynamicOutputShapeException(RuntimeError):  # noqa: N818
    """The shape of a result depends on values."""


class DataDependentOutputException(RuntimeError):  # noqa: N818
    """A program asked a fake tensor for a value."""


class _Fakes(type):
    def __instancecheck__(cls, instance: Any) -> bool:
        if not isinstance(instance, retrograd.Tensor) or not instance.is_meta:
            return False
        return hasattr(instance, "fake_mode") or bool(_running.get())


class FakeTensor(metaclass=_Fakes):
    """What a mode has made, and every meta tensor inside of its block."""

    def __new__(cls, fake_mode: FakeTensorMode, elem: Any, device: Any, **_: Any) -> Any:
        """Note what a meta tensor stands for."""
        if not elem.is_meta:
            raise AssertionError("elem must be a meta tensor")
        elem.fake_mode, elem.fake_device = fake_mode, device_type(device)
        return elem


class FakeTensorMode(TorchFunctionMode):
    """Lets functions make and compute with tensors that have no elements."""

    def __init__(
        self,
        *,
        allow_fallback_kernels: bool = True,
        allow_non_fake_inputs: bool = False,
        shape_env: Any = None,
        static_shapes: Any = None,
        **_: Any,
    ) -> None:
        super().__init__()
        if shape_env is not None:
            raise NotImplementedError("FakeTensorMode(shape_env=...): sizes are numbers here, not symbols")
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self.converter = MetaConverter()

    def __enter__(self) -> Any:
        """Make the meta device that of new tensors."""
        entered = super().__enter__()
        META.__enter__()
        _running.set(_running.get() + 1)
        return entered

    def __exit__(self, *error: Any) -> None:
        """Return to the device of before."""
        _running.set(_running.get() - 1)
        META.__exit__(*error)
        super().__exit__(*error)

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a call on meta tensors; what it makes is fake."""
        args, kwargs = tree_map_only(retrograd.Tensor, self._arrived, (args, kwargs or {}))
        made = func(*args, **kwargs)
        tree_map_only(retrograd.Tensor, self._left, made)
        return made

    def _left(self, tensor: Any) -> Any:
        if tensor.is_meta and not hasattr(tensor, "fake_mode"):
            tensor.fake_mode, tensor.fake_device = self, device_type("cpu")
        return tensor

    def _arrived(self, tensor: Any) -> Any:
        if tensor.is_meta or not tensor.dim():
            return tensor
        if not self.allow_non_fake_inputs:
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'."
            )
        return self.from_tensor(tensor)

    def from_tensor(self, tensor: Any, **_: Any) -> Any:
        """Return a fake tensor in the shape, dtype and strides of another."""
        return tensor if tensor.is_meta else FakeTensor(self, self.converter.meta_tensor(tensor), tensor.device)


def is_fake(x: Any) -> bool:
    """Tell whether a value is a fake tensor."""
    return isinstance(x, FakeTensor)


def _is_tensor_constructor(func: Any) -> bool:
    """Tell whether a function makes tensors of sizes and values alone."""
    makers = "arange empty empty_strided eye full linspace logspace ones rand randint randn randperm tensor zeros"
    name = getattr(getattr(func, "overloadpacket", None), "__name__", None)
    return name in makers.split() or any(func is getattr(retrograd, name, None) for name in makers.split())
