"""torch._subclasses.fake_tensor: tensors that have a shape, a dtype and a device, and no elements.

A `FakeTensor` is a wrapper of a tensor of the meta device, and says that it is on another. Its mode sees every operation, has
it computed on what is wrapped, and wraps what came of it.
"""

from __future__ import annotations

from typing import Any
from weakref import WeakValueDictionary, ref

import retrograd
from retrograd import Tensor
from retrograd._device import device as device_type
from retrograd._dispatch import flat_tensors
from retrograd._dispatch.checking import MetadataMismatchError as MetadataMismatchError
from retrograd._dispatch.wrappers import make_wrapper
from retrograd.nn.parameter import make_parameter
from retrograd.ops import Tag
from retrograd.utils._python_dispatch import TorchDispatchMode
from retrograd.utils._pytree import tree_map_only

META = device_type("meta")
ASKING_FOR_VALUES = ("_local_scalar_dense", "equal", "is_nonzero")
SHAPED_BY_VALUES = frozenset(
    "nonzero masked_select unique_dim unique_consecutive _unique _unique2 bincount histogram".split()  # noqa: SIM905
)


class UnsupportedFakeTensorException(RuntimeError):  # noqa: N818 - torch's names
    """An operation has no shape rule."""


class UnsupportedOperatorException(RuntimeError):  # noqa: N818
    """An operation of a program has no shape rule."""


class DynamicOutputShapeException(RuntimeError):  # noqa: N818
    """The shape of a result depends on values."""


class DataDependentOutputException(RuntimeError):  # noqa: N818
    """A program asked a fake tensor for a value."""


class FakeTensor(Tensor):
    """What a mode has made. `constant` has its value, if that is one number that a program wrote, or is computed of such ones."""

    fake_mode: FakeTensorMode
    fake_device: Any
    constant: Any
    _meta: Any
    _of: Any

    @staticmethod
    def __new__(
        cls: Any, fake_mode: FakeTensorMode, elem: Any, device: Any, constant: Any = None, **_: Any
    ) -> FakeTensor:
        """Wrap a meta tensor, which stands for one on another device."""
        if not elem.is_meta:
            raise AssertionError(f"elem.device.type must be 'meta', got {elem.device.type}")
        made: FakeTensor = make_wrapper(
            cls, elem.shape, elem.stride(), dtype=elem.dtype, device=device, requires_grad=elem.requires_grad
        )
        made.fake_mode, made.fake_device, made.constant = fake_mode, device_type(device), constant
        made._meta = elem.detach() if elem.requires_grad else elem
        made._of = None
        return make_parameter(made, elem.requires_grad) if isinstance(elem, retrograd.nn.Parameter) else made

    def __init__(self, *_: Any, **__: Any) -> None: ...

    def tolist(self) -> Any:
        """Ask for numbers one by one, so that constants are told."""
        return self.item() if not self.dim() else [one.tolist() for one in self]

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        modes = {id(one.fake_mode): one.fake_mode for one in _fakes((args, kwargs or {}))}
        if len(modes) > 1:
            raise AssertionError("Mixing fake modes NYI")
        with next(iter(modes.values())):
            return func(*args, **(kwargs or {}))


def _fakes(values: Any) -> list[Any]:
    args, kwargs = values
    return [one for one in flat_tensors((*args, *kwargs.values())) if isinstance(one, FakeTensor)]


def _tensors_of(made: Any) -> list[Any]:
    return flat_tensors(made if isinstance(made, (list, tuple)) else (made,))


class FakeTensorMode(TorchDispatchMode):
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
        self.shape_env = None
        self.static_shapes = True
        self.allow_fallback_kernels = allow_fallback_kernels
        self.allow_non_fake_inputs = allow_non_fake_inputs
        self._made: WeakValueDictionary[int, Any] = WeakValueDictionary()
        self._constants: WeakValueDictionary[int, Any] = WeakValueDictionary()

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run an operation on what is wrapped; what it makes is fake."""
        kwargs, name = dict(kwargs or {}), func.overloadpacket.__name__
        if name == "lift_fresh":
            return self._constant(args[0])
        if name in ASKING_FOR_VALUES:
            constants = [getattr(one, "constant", one) for one in args]
            if any(one is None for one in constants):
                raise DataDependentOutputException(func)
            return func(*constants, **kwargs)
        if name in SHAPED_BY_VALUES or (name == "repeat_interleave" and func._overloadname == "Tensor"):
            raise DynamicOutputShapeException(func)
        args, kwargs = tree_map_only(Tensor, lambda one: self._arrived(one, func, args, kwargs), (args, kwargs))
        fakes = _fakes((args, kwargs))
        device = _device_of(kwargs, fakes)
        outer = {id(one._meta): one for one in fakes}
        inner_args, inner_kwargs = tree_map_only(FakeTensor, lambda one: one._meta, (args, kwargs))
        if "device" in kwargs or not fakes:
            inner_kwargs["device"] = META
        try:
            made = func(*inner_args, **inner_kwargs)
        except NotImplementedError as error:
            raise UnsupportedOperatorException(f"{func}: {error}") from error
        values = self._computed_constants(func, args, kwargs, fakes)
        for one in [] if values else _tensors_of(made):
            if (written := outer.get(id(one))) is not None and written.constant is not None:
                self._forget(written.constant)
        left = tree_map_only(Tensor, lambda one: self._left(one, outer.get(id(one)), device), made)
        for fake, value in zip(_tensors_of(left), values, strict=False):
            self._set_constant(fake, value)
        return left

    def _computed_constants(self, func: Any, args: Any, kwargs: Any, fakes: list[Any]) -> list[Any]:
        """Compute what an operation makes of constants; nothing unless each result is one number, which no draw decides."""
        known = fakes and all(one.constant is not None for one in fakes)
        if not known or func.namespace != "aten" or "device" in kwargs or Tag.nondeterministic_seeded in func.tags:
            return []
        args, kwargs = tree_map_only(FakeTensor, lambda one: one.constant, (args, kwargs))
        values = _tensors_of(func(*args, **kwargs))
        if all(one.numel() == 1 for one in values):
            return values
        for one in values:  # through which something may be written from now on
            self._forget(one)
        return []

    def _set_constant(self, fake: Any, value: Any) -> None:
        fake.constant = value
        self._constants[id(fake)] = fake

    def _forget(self, value: Any) -> None:
        """Forget the values of all fake tensors that share a value's memory."""
        memory = value.untyped_storage().data_ptr()
        for one in [*self._constants.values()]:
            if one.constant is not None and one.constant.untyped_storage().data_ptr() == memory:
                one.constant = None

    def _left(self, meta: Any, written: Any, device: Any) -> Any:
        if written is None:
            return FakeTensor(self, meta, device)
        if written.shape != meta.shape or written.stride() != meta.stride():
            written._array = FakeTensor(self, meta, device)._array
        return written

    def _arrived(self, tensor: Any, func: Any, args: Any, kwargs: Any) -> Any:
        if isinstance(tensor, FakeTensor) or tensor.is_meta:
            return tensor if isinstance(tensor, FakeTensor) else FakeTensor(self, tensor, META)
        if not self.allow_non_fake_inputs and tensor.dim():
            shown = [_shown(one) for one in args] + [f"{name}={_shown(one)}" for name, one in kwargs.items()]
            raise AssertionError(
                "Please convert all Tensors to FakeTensors first or instantiate FakeTensorMode with 'allow_non_fake_inputs'. "
                f"Found in {func}({', '.join(shown)})"
            )
        return self.from_tensor(tensor)

    def _constant(self, tensor: Any) -> Any:
        fake = self.from_tensor(tensor)
        if tensor.numel() == 1:
            self._set_constant(fake, tensor)
        return fake

    def from_tensor(self, tensor: Any, **_: Any) -> Any:
        """Return a fake tensor in the shape, dtype, strides and device of another; the same one again for the same tensor."""
        if isinstance(tensor, FakeTensor):
            return tensor
        found = self._made.get(id(tensor))
        if found is not None and found._of() is tensor:
            return found
        with retrograd.utils._python_dispatch._disable_current_modes():
            meta: Any = retrograd.empty_strided(tuple(tensor.shape), tensor.stride(), dtype=tensor.dtype, device=META)
            fake = FakeTensor(self, meta, tensor.device)
            if isinstance(tensor, retrograd.nn.Parameter):
                fake = make_parameter(fake, tensor.requires_grad)
            elif tensor.requires_grad:
                fake.requires_grad_()
        fake._of = ref(tensor)
        self._made[id(tensor)] = fake
        return fake


def _device_of(kwargs: dict[str, Any], fakes: list[Any]) -> Any:
    if kwargs.get("device") is not None:
        return _with_index(device_type(kwargs["device"]))
    found = next((one for one in fakes if one.dim()), fakes[0] if fakes else None)
    return device_type("cpu") if found is None else found.fake_device


def _with_index(device: Any) -> Any:
    return device_type(device.type, 0) if device.type == "cuda" and device.index is None else device


def _shown(value: Any) -> str:
    is_real = isinstance(value, Tensor) and not isinstance(value, FakeTensor)
    return f"tensor([...], size={tuple(value.shape)})" if is_real else repr(value)


def is_fake(x: Any) -> bool:
    """Tell whether a value is a fake tensor."""
    return isinstance(x, FakeTensor)


def _is_tensor_constructor(func: Any) -> bool:
    """Tell whether a function makes tensors of sizes and values alone."""
    makers = "arange empty empty_strided eye full linspace logspace ones rand randint randn randperm tensor zeros"
    name = getattr(getattr(func, "overloadpacket", None), "__name__", None)
    return name in makers.split() or any(func is getattr(retrograd, name, None) for name in makers.split())
