"""Tensors that a module owns: parameters and buffers, also those whose shape is not known yet."""

from __future__ import annotations

from typing import Any, Self

from .._public import set_all
from ..overrides import disable_torch_function
from ..tensor import _base
from ..tensor._base import TensorMeta
from ..tensor._functions.creation import empty
from ..tensor._tensor import Parameter, Tensor
from ..tensor._tensor import ParameterMeta as _ParameterMeta  # noqa: F401 - torch's name

make_parameter: Any = Parameter  # its metaclass constructs it, which type checkers do not see


class _BufferMeta(TensorMeta):
    """Lets tensors marked `_is_buffer` pass for Buffers."""

    def __instancecheck__(cls, instance: Any) -> bool:  # noqa: N805 - of a metaclass
        return super().__instancecheck__(instance) or (
            cls.__name__ == "Buffer" and isinstance(instance, Tensor) and getattr(instance, "_is_buffer", False)
        )


class Buffer(Tensor, metaclass=_BufferMeta):
    """A Tensor that is a module's state but no parameter; `persistent` says whether the state_dict holds it."""

    __slots__ = ()
    __torch_function__ = _base.disabled_torch_function  # type: ignore[assignment]
    persistent: bool

    def __new__(cls, data: Tensor | None = None, *, persistent: bool = True) -> Self:
        """Build a buffer on a tensor's memory."""
        given = Tensor() if data is None else data
        result: Any = given.detach().requires_grad_(given.requires_grad)
        result.persistent = persistent
        result._is_buffer = True
        return result  # type: ignore[no-any-return]


# ---- without a shape ----
CASTS = ("half", "float", "double", "char", "short", "int", "long", "cuda", "cpu", "to")  # and moves
_ALLOWED = frozenset(
    [
        *CASTS,
        *(
            "size",
            "copy_",
            "is_complex",
            "is_floating_point",
            "get_device",
            "materialize",
            "share_memory_",
            "cls_to_become",
        ),
    ]
)


def _refuse(self: Any, *args: Any) -> Any:
    raise _refusal(type(self), "__getitem__")


def _refusal(kind: type, name: str) -> ValueError:
    return ValueError(
        f"Attempted to use an uninitialized parameter in <method '{name}' of 'torch._C.TensorBase' objects>. This error "
        f"happens when you are using a `LazyModule` or explicitly manipulating `torch.nn.parameter.{kind.__name__}` objects. "
        "When using LazyModules Call `forward` with a dummy batch to initialize the parameters before calling torch functions"
    )


class UninitializedTensorMixin:
    """What can be done with a tensor that has no shape: cast it, move it, and give it one."""

    __slots__ = ()
    _is_lazy = True
    cls_to_become: Any
    data: Any
    requires_grad: bool

    def materialize(self, shape: Any, device: Any = None, dtype: Any = None) -> None:
        """Take a shape and become an ordinary parameter or tensor; the values are whatever memory holds."""
        was = self.data
        self.data = empty(
            shape, device=was.device if device is None else device, dtype=was.dtype if dtype is None else dtype
        )
        self.__class__ = self.cls_to_become

    @property
    def shape(self) -> Any:
        raise RuntimeError(
            "Can't access the shape of an uninitialized parameter or buffer. This error usually happens in "
            "`load_state_dict` when trying to load an uninitialized parameter into an initialized one. Call `forward` to "
            "initialize the parameters before accessing their attributes."
        )

    def share_memory_(self) -> Any:
        raise RuntimeError(
            "Can't share memory on an uninitialized parameter or buffer. Call `forward` to initialize the parameters before "
            "calling `module.share_memory()`."
        )

    def __getattribute__(self, name: str) -> Any:
        if name[0] != "_" and name not in _ALLOWED and callable(getattr(type(self), name, None)):
            raise _refusal(type(self), name)
        return super().__getattribute__(name)

    # What Python looks up in the class itself.
    __len__ = __getitem__ = __setitem__ = __float__ = __int__ = __bool__ = __matmul__ = __rmatmul__ = _refuse

    def __repr__(self) -> str:
        return f"<{type(self).__name__}>"

    def __reduce_ex__(self, protocol: Any) -> Any:
        return type(self), (self.requires_grad,)

    def __deepcopy__(self, memo: dict[int, Any]) -> Any:
        if id(self) not in memo:
            memo[id(self)] = type(self)(self.requires_grad, self.data.device, self.data.dtype)  # type: ignore[call-arg]
        return memo[id(self)]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        if getattr(func, "__name__", "") in _ALLOWED:
            with disable_torch_function():
                return func(*args, **(kwargs or {}))
        raise _refusal(cls, getattr(func, "__name__", str(func)))


class UninitializedParameter(UninitializedTensorMixin, Parameter):  # type: ignore[misc]
    """A parameter without a shape; `materialize` makes it a Parameter."""

    __slots__ = ()
    cls_to_become = Parameter

    def __new__(cls, requires_grad: bool = True, device: Any = None, dtype: Any = None) -> Any:
        """Build a parameter that has a dtype and a device."""
        return Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)


class UninitializedBuffer(UninitializedTensorMixin, Tensor):  # type: ignore[misc]
    """A buffer without a shape; `materialize` makes it a Tensor."""

    __slots__ = ()
    cls_to_become = Tensor

    def __new__(
        cls, requires_grad: bool = False, device: Any = None, dtype: Any = None, persistent: bool = True
    ) -> Any:
        """Build a buffer that has a dtype and a device."""
        made = Tensor._make_subclass(cls, empty(0, device=device, dtype=dtype), requires_grad)
        made.persistent = persistent
        made._is_buffer = True
        return made


def _still_uninitialised(name: str) -> Any:
    """Return a method of Tensor that casts or moves, and leaves the class as it was."""

    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        made = getattr(Tensor, name)(self, *args, **kwargs)
        return made if made is self else made.as_subclass(type(self))

    return method


for _name in CASTS:
    setattr(UninitializedBuffer, _name, _still_uninitialised(_name))


def is_lazy(param: Any) -> bool:
    """Tell whether a parameter or buffer has no shape yet."""
    return isinstance(param, UninitializedTensorMixin)


later_parameter: Any = UninitializedParameter  # as for `make_parameter`
later_buffer: Any = UninitializedBuffer


set_all(globals(), but="later_buffer later_parameter make_parameter")
