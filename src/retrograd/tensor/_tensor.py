"""The Tensor class: torch's face over the slots of `TensorBase`."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, Self, TypeVar, overload
from weakref import ref

import numpy as np

from .. import _dtypes, _size
from .._core.arrays import LevelArray
from .._core.numpy_namespace import _NUMPY_TYPES
from .._device import device as device_type
from .._device import strided
from .._errors import wrap_dim
from .._graph.cuts import note_cut
from .._graph.node import Slot
from .._modes import NO_GRAD, PLAIN, current_mode, read_mode, using
from .._tracebacks import guarded, hide
from .._warnings import warn
from ..overrides import arguments, refuse_function_of_other_torch, refuse_other_torch
from . import _base
from ._aliasing.entering import NO_POINTER, data_inside, data_of, memory_under, share_birth
from ._aliasing.inplace import set_data
from ._aliasing.view_nodes import detached
from ._aliasing.views import NOWHERE
from ._base import LEAF, TensorBase, TensorMeta, signed_types, storage_of, wrap
from ._functions.casting import device_of
from ._functions.creation import from_numpy
from ._functions.shape import alias
from ._object import old_attributes as old_attributes
from ._object.formats import is_laid_out_in
from ._object.layout import geometry, is_contiguous, strides
from ._object.leaves import (
    DETACH_INSTEAD,
    NOT_A_LEAF,
    check_grad_dtype,
    check_parameter,
    choose_grad_dtype,
    grad_dtype_of,
    is_leaf,
    marked_parameter,
    refuse_inside,
    set_requires_grad,
)
from ._object.old_attributes import slot_of

CPU = device_type("cpu")
Kind = TypeVar("Kind", bound="Tensor")


if TYPE_CHECKING:
    from ..autograd.graph import RemovableHandle
    from ._methods import TensorMethods  # what `_table.py` gives the class, for type checkers

    read_only = property
else:
    TensorMethods = TensorBase

    class read_only(property):  # noqa: N801 - a decorator
        """A property that refuses writing in torch's words."""

        def __set__(self, instance: Any, value: Any) -> None:
            raise AttributeError(f"attribute '{self.fget.__name__}' of 'torch._C.TensorBase' objects is not writable")


def dim_given(function: Any, tensor: Any, dim: Any) -> int:
    """Return a dim as a number; what torch does not take for one is refused."""
    if type(dim) is not int:
        arguments().check(function, (tensor, dim), {})
    return operator.index(dim)


class Tensor(TensorMethods):
    """A multi-dimensional array that autograd can follow. `torch.tensor` makes one of data.

    Args:
        *args: sizes, or data; the old form, which always makes float32
        **kwargs: `device`

    Example:
        >>> x = torch.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
        >>> x.shape, x.dtype, x[0, 1]
        (torch.Size([2, 2]), torch.float32, tensor(2., grad_fn=<SelectBackward0>))
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([[2., 4.],
                [6., 8.]])
    """

    __slots__ = ()
    __array_priority__ = 1000

    __module__ = "retrograd"  # where pickle finds it; the class prints as torch.Tensor

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        default: Any = Tensor.__torch_function__
        is_default = getattr(cls.__torch_function__, "__func__", None) is default.__func__
        if is_default and cls.__torch_dispatch__ is not _base.disabled_torch_dispatch:
            # like torch: what sees operations does not see functions by default
            cls.__torch_function__ = _base.disabled_torch_function  # type: ignore[method-assign]
        if (
            cls.__module__.partition(".")[0] != "retrograd"
            and cls.__torch_function__ is not _base.disabled_torch_function
        ):
            from ._object.overriding import take_over

            take_over(cls, Tensor)

    def __new__(cls, *args: Any, **kwargs: Any) -> Self:
        """Build a tensor as `torch.Tensor(...)` does: from sizes or from data, in the default dtype."""
        from ._object.old_types import construct

        try:
            made = construct(None, *args, **kwargs)
        except Exception as error:
            hide(error)
            raise
        return made if cls is Tensor else made.as_subclass(cls)  # type: ignore[no-any-return]

    @staticmethod
    def _make_subclass(cls: Any, data: Any, require_grad: bool = False) -> Any:
        result = object.__new__(cls)
        result._array = _base.materialise(data)
        result._storage = storage_of(data)
        result._extra = None
        result._edge = LEAF if require_grad else None
        if (mode := read_mode()) is not PLAIN and mode is not NO_GRAD and current_mode().transforms:
            _base.mark_born(result)
        return result

    def as_subclass(self, cls: type[Kind]) -> Kind:
        """Return the same tensor, seen as an instance of a subclass."""
        try:
            if not isinstance(cls, type):
                raise TypeError(f"cls must be a type (got {type(cls).__name__})")
            if not issubclass(cls, Tensor):
                raise TypeError("as_subclass(): argument 'cls' must be a subclass of Tensor")
        except Exception as error:
            hide(error)
            raise
        result = object.__new__(cls)
        result._array = self._array
        result._storage = storage_of(self)
        result._extra = None
        if self._edge is None:
            result._edge = None
        else:
            result._edge = alias(self)._edge
        return share_birth(result, self)  # type: ignore[no-any-return]

    @classmethod
    def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Run a function on subclasses and give its result their class."""
        kwargs = kwargs or {}
        refuse_other_torch(args)
        refuse_function_of_other_torch(func)
        if not all(issubclass(cls, kind) for kind in types):
            return NotImplemented
        with using(torch_function=False):
            result = func(*args, **kwargs)
        return result if cls is Tensor else _as_class(result, cls)

    # ---- what it is ----
    @property
    def shape(self) -> _size.Size:
        """The sizes of the dimensions.

        Example:
            >>> torch.ones(2, 3).shape
            torch.Size([2, 3])
        """
        return _size._trusted(self._array.shape)

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Example:
            >>> torch.ones(2, 3).ndim
            2
        """
        return self._array.ndim  # type: ignore[no-any-return]

    def dim(self) -> int:
        """Return the number of dimensions.

        Example:
            >>> torch.ones(2, 3).dim()
            2
        """
        return self._array.ndim  # type: ignore[no-any-return]

    ndimension = dim

    @overload
    def size(self, dim: None = ...) -> _size.Size: ...

    @overload
    def size(self, dim: int) -> int: ...

    def size(self, dim: int | None = None) -> int | _size.Size:
        """Return the shape, or the size of one dimension.

        Args:
            dim: the dimension

        Example:
            >>> torch.ones(2, 3).size(), torch.ones(2, 3).size(-1)
            (torch.Size([2, 3]), 3)
        """
        try:
            shape = self._array.shape
            if dim is None:
                return _size._trusted(shape)
            if type(dim) is int and -len(shape) <= dim < len(shape):
                return shape[dim]  # type: ignore[no-any-return]
            dim = dim_given(type(self).size, self, dim)
            if not self._array.ndim:
                shown = 0 if dim in (0, -1) else dim
                raise IndexError(f"Dimension specified as {shown} but tensor has no dimensions")
            return self._array.shape[wrap_dim(dim, self._array.ndim)]  # type: ignore[no-any-return]
        except Exception as error:
            hide(error)
            raise

    def numel(self) -> int:
        """Return the number of elements."""
        return int(self._array.size)

    nelement = numel

    @property
    def dtype(self) -> _dtypes.dtype:
        """The type of the elements.

        Example:
            >>> torch.tensor([1, 2]).dtype
            torch.int64
        """
        return _dtypes.from_numpy(self._array.dtype)

    @property
    def device(self) -> device_type:
        """Where the elements are.

        Example:
            >>> torch.ones(2).device
            device(type='cpu')
        """
        if type(self._array) in _NUMPY_TYPES:
            return CPU
        return device_of(self)  # type: ignore[no-any-return]

    layout = strided
    is_sparse = is_sparse_csr = is_quantized = is_mkldnn = is_nested = False
    is_mps = is_xpu = is_xla = is_hpu = is_mtia = is_maia = is_vulkan = is_ipu = False

    @property
    def is_cuda(self) -> bool:
        return self.device.type == "cuda"

    @property
    def is_cpu(self) -> bool:
        return self.device.type == "cpu"

    @property
    def is_meta(self) -> bool:
        return type(self._array) is not np.ndarray and self.device.type == "meta"

    def get_device(self) -> int:
        return -1 if self.device.index is None else self.device.index

    @property
    def itemsize(self) -> int:
        return self._array.dtype.itemsize  # type: ignore[no-any-return]

    def element_size(self) -> int:
        """Return the bytes of one element."""
        return self._array.dtype.itemsize  # type: ignore[no-any-return]

    @property
    def nbytes(self) -> int:
        return self.numel() * self.itemsize

    def is_floating_point(self) -> bool:
        """Tell whether the dtype is one of floating-point numbers."""
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Tell whether the dtype is complex."""
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Tell whether the dtype has negative numbers."""
        return self.dtype.is_signed

    def is_conj(self) -> bool:
        """Tell whether conjugation is left for later: never, `conj()` computes."""
        return False

    is_neg = is_conj

    @overload
    def stride(self, dim: None = ...) -> tuple[int, ...]: ...

    @overload
    def stride(self, dim: int) -> int: ...

    def stride(self, dim: int | None = None) -> int | tuple[int, ...]:
        """Return how many elements further in memory the next one of each dimension is.

        Args:
            dim: one dimension

        Example:
            >>> torch.ones(2, 3).stride(), torch.ones(2, 3).t().stride()
            ((3, 1), (1, 3))
        """
        try:
            found = strides(self._array) if self._array.size else geometry(self)[0]
            if dim is None:
                return found
            dim = dim_given(type(self).stride, self, dim)
            if not found:
                raise IndexError(f"Dimension specified as {dim} but tensor has no dimensions")
            return found[wrap_dim(dim, len(found))]
        except Exception as error:
            hide(error)
            raise

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Tell whether the elements lie in memory in their order.

        Args:
            memory_format: another order, such as `torch.channels_last`

        Example:
            >>> torch.ones(2, 3).is_contiguous(), torch.ones(2, 3).t().is_contiguous()
            (True, False)
        """
        try:
            return is_contiguous(self._array) if memory_format is None else is_laid_out_in(self._array, memory_format)
        except Exception as error:
            hide(error)
            raise

    def storage_offset(self) -> int:
        """Return how many elements of the storage lie before the first."""
        return geometry(self)[1]

    @guarded
    def data_ptr(self) -> int:
        """Return the address of the first element."""
        if isinstance(array := memory_under(self), LevelArray):
            raise RuntimeError(NO_POINTER)
        return 0 if self.is_meta or hasattr(array, "place") else array.__array_interface__["data"][0]

    def __len__(self) -> int:
        try:
            if not self._array.ndim:
                raise TypeError("len() of a 0-d tensor")
            return self._array.shape[0]  # type: ignore[no-any-return]
        except Exception as error:
            hide(error)
            raise

    @guarded
    def __iter__(self) -> Iterator[Tensor]:
        if not self._array.ndim:
            raise TypeError("iteration over a 0-d tensor")
        return iter(self.unbind(0))

    def __reversed__(self) -> Tensor:
        return self.flip(0) if self._array.ndim else self

    @guarded
    def __contains__(self, element: Any) -> bool:
        if isinstance(element, (Tensor, int, float, complex, bool)):
            return bool(self.eq(element).any().item())
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(element)}.")

    # ---- autograd ----
    @property
    def requires_grad(self) -> bool:
        return self._edge is not None

    @requires_grad.deleter
    @guarded
    def requires_grad(self) -> None:
        raise RuntimeError("requires_grad must be a bool")

    @requires_grad.setter
    @guarded
    def requires_grad(self, value: bool) -> None:
        if type(value) is not bool:
            raise RuntimeError("requires_grad must be a bool")
        if not is_leaf(self):
            raise RuntimeError(NOT_A_LEAF + ("" if value else DETACH_INSTEAD))
        set_requires_grad(self, value, "floating point and complex dtype")

    @read_only
    def is_leaf(self) -> bool:
        """Whether the tensor was made by the program, not by an operation that is recorded.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> x.is_leaf, (x * 2).is_leaf
            (True, False)
        """
        edge = self._edge
        return edge is None or edge is LEAF or edge is NOWHERE or getattr(edge, "stands_for_leaf", False)

    @read_only
    def grad_fn(self) -> Any:
        """The node of the operation that made this tensor; None for a leaf.

        Example:
            >>> (torch.ones(2, requires_grad=True) * 2).grad_fn.name()
            'MulBackward0'
        """
        edge = self._edge
        if edge is None or edge is LEAF or edge is NOWHERE:
            return None
        if type(edge) is Slot:
            return edge.node
        return None if edge.stands_for_leaf else edge

    @read_only
    def output_nr(self) -> int:
        return self._edge.index if type(self._edge) is Slot else 0

    @property
    def grad(self) -> Tensor | None:
        extra = self._extra
        if extra is not None and extra.grad is not None:
            return extra.grad  # type: ignore[no-any-return]
        if not is_leaf(self) and (extra is None or not extra.retains_grad):
            warn(
                "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute "
                "won't be populated during autograd.backward(). If you indeed want the .grad field to be populated for "
                "a non-leaf Tensor, use .retain_grad() on the non-leaf Tensor. If you access the non-leaf Tensor by "
                "mistake, make sure you access the leaf Tensor instead."
            )
        return None

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is None:
            if (extra := self._extra) is not None and extra.grad is not None:
                extra.grad = None
            return
        try:
            if not isinstance(value, Tensor):
                raise TypeError(
                    f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}"
                )
            if value is self:
                raise RuntimeError("can't assign Variable as its own grad")
            own = self._extra
            if value._array.dtype != self._array.dtype or (own is not None and own.grad_dtype is not LEAF):
                check_grad_dtype(self, value)
            if tuple(value._array.shape) != tuple(self._array.shape):
                raise RuntimeError(
                    f"attempting to assign a gradient of size '{list(value._array.shape)}' to a tensor of size "
                    f"'{list(self._array.shape)}'. Please ensure that the gradient and the tensor are the same size"
                )
        except Exception as error:
            hide(error)
            raise
        self._need_extra().grad = value

    @grad.deleter
    def grad(self) -> None:
        self.grad = None

    @property
    @guarded
    def grad_dtype(self) -> _dtypes.dtype | None:
        """The dtype to which gradients of this leaf are brought; None: they keep theirs."""
        if not is_leaf(self):
            raise RuntimeError("grad_dtype can only be accessed on leaf tensors.")
        return grad_dtype_of(self)  # type: ignore[no-any-return]

    @grad_dtype.setter
    @guarded
    def grad_dtype(self, value: _dtypes.dtype | None) -> None:
        choose_grad_dtype(self, value)

    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: bool | None = None,
        create_graph: bool = False,
        inputs: Tensor | Sequence[Tensor] | None = None,
    ) -> None:
        """Compute the gradients of this tensor with respect to the graph's leaves.

        Args:
            gradient: the gradient that arrives here; 1 for a tensor with one element if it is not given
            retain_graph: keep the graph for a second walk
            create_graph: record the walk, so that gradients can be differentiated again
            inputs: the leaves that get gradients; all if it is not given

        Example:
            >>> x = torch.tensor([1.0, 2.0], requires_grad=True)
            >>> (x**2).sum().backward()
            >>> x.grad
            tensor([2., 4.])
        """
        try:
            _base.backward_from((self,), (gradient,), retain_graph, create_graph, inputs)
        except Exception as error:
            hide(error)
            raise

    def detach(self) -> Tensor:
        """Return a tensor on the same memory, outside the graph.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> x.detach()
            tensor([1., 1.])
        """
        result = detached(self)
        if (edge := _base._edge_slot.__get__(self)) is not None:  # as it is: reading a lost view's raises
            note_cut("detach()", self, edge, result)
        return result  # type: ignore[no-any-return]

    @property
    def data(self) -> Tensor:
        result = data_inside(self) if current_mode().transforms else wrap(data_of(self), None, None)
        if (edge := _base._edge_slot.__get__(self)) is not None:
            note_cut(".data", self, edge, result)
        return result if result._extra is None else share_birth(result, self)  # type: ignore[no-any-return]

    @data.setter
    def data(self, value: Tensor) -> None:
        try:
            set_data(self, value)
        except Exception as error:
            hide(error)
            raise

    @data.deleter
    @guarded
    def data(self) -> None:
        raise RuntimeError("Deleting tensor data is not allowed. Delete tensor instead!")

    _grad_fn, _backward_hooks, volatile = old_attributes.grad_fn, old_attributes.backward_hooks, old_attributes.volatile
    name = old_attributes.name

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` when this tensor's gradient is computed; it may return a new gradient.

        Args:
            hook: a function of the gradient

        Returns:
            A handle; `handle.remove()` removes the hook.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> handle = x.register_hook(lambda grad: grad * 10)
            >>> x.sum().backward()
            >>> x.grad
            tensor([10., 10.])
        """
        try:
            from ..autograd._hooks import of_transform
            from ..autograd.graph import RemovableHandle

            if self._edge is None:
                raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
            if self._edge is LEAF or self._edge is NOWHERE:
                extra = self._need_extra()
                extra.hooks = OrderedDict() if extra.hooks is None else extra.hooks
                extra.hooked = True
                return RemovableHandle.add(extra.hooks, hook if extra.transform is None else of_transform(hook))
            hook = of_transform(hook) if current_mode().transforms else hook
            node, slot = slot_of(self._edge)
            of_node = node.need_extra()
            of_node.tensor_hooks = {} if of_node.tensor_hooks is None else of_node.tensor_hooks
            return RemovableHandle.add(of_node.tensor_hooks.setdefault(slot, OrderedDict()), hook)
        except Exception as error:
            hide(error)
            raise

    @guarded
    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(param)` after a gradient has been added to `.grad`."""
        from ..autograd.graph import RemovableHandle

        if self._edge is None:
            raise RuntimeError("cannot register a hook on a tensor that doesn't require gradient")
        if self._edge is not LEAF and self._edge is not NOWHERE:
            raise RuntimeError("post accumulate grad hooks cannot be registered on non-leaf tensors")
        extra = self._need_extra()
        extra.post_hooks = OrderedDict() if extra.post_hooks is None else extra.post_hooks
        extra.hooked = True
        return RemovableHandle.add(extra.post_hooks, hook)

    @guarded
    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf tensor.

        Example:
            >>> x = torch.ones(2, requires_grad=True)
            >>> y = x * 2
            >>> y.retain_grad()
            >>> y.sum().backward()
            >>> y.grad
            tensor([1., 1.])
        """
        if self._edge is None:
            raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
        refuse_inside("retain_grad()")
        if self._edge is LEAF or self._edge is NOWHERE:
            return
        extra = self._need_extra()
        if extra.retains_grad:
            return
        extra.retains_grad = True
        node, slot = slot_of(self._edge)
        node_extra = node.need_extra()
        node_extra.retained = {} if node_extra.retained is None else node_extra.retained
        node_extra.retained[slot] = ref(self)

    @property
    def retains_grad(self) -> bool:
        return self._extra is not None and self._extra.retains_grad

    @property
    def _version(self) -> int:
        storage = self._storage
        if storage is None:
            return 0
        if storage.inference:
            raise RuntimeError("Inference tensors do not track version counter.")
        return storage.version

    def is_inference(self) -> bool:
        """Tell whether the tensor was made in inference mode."""
        return self._storage is not None and bool(self._storage.inference)

    _base, _is_view = old_attributes.base, old_attributes.is_view
    _grad, _use_count = old_attributes.grad, old_attributes.use_count

    def is_shared(self) -> bool:
        """Tell whether other processes see the memory."""
        from ._storage.sharing import is_shared

        return is_shared(self)

    # ---- leaving ----
    def __repr__(self, *, tensor_contents: Any = None) -> str:
        return tensor_text(self, contents=tensor_contents)

    def __format__(self, spec: str) -> str:
        from ._object.printing import scalar_format

        if isinstance(self._array, LevelArray):
            return repr(self) if self._array.ndim else format(self.item(), spec)
        return scalar_format(
            self._array if self.is_meta or hasattr(self._array, "place") else np.asarray(self._array),
            spec,
            otherwise=lambda: repr(self),
            type_name=type(self).__name__,
            is_plain_tensor=type(self) is Tensor,
        )

    def __array_wrap__(self, array: Any, context: Any = None, return_scalar: bool = False) -> Any:
        """Make a tensor of what one of NumPy's functions computed from tensors; truths are uint8, as torch's."""
        return from_numpy(np.asarray(array.astype(np.uint8) if array.dtype == bool else array))

    @guarded
    def __array__(self, dtype: Any = None, copy: Any = None) -> Any:
        return np.array(self.numpy(), dtype=dtype, copy=copy)

    def __dir__(self) -> list[str]:
        return sorted({*dir(type(self)), *self.__dict__})

    def __reduce_ex__(self, protocol: Any) -> Any:
        from ._files.pickling import reduced

        return reduced(self)

    @guarded
    def __deepcopy__(self, memo: Any) -> Any:
        from ._storage.deep_copies import deepcopy

        return deepcopy(self, memo)


def _as_class(result: Any, cls: Any) -> Any:
    if isinstance(result, Tensor) and not isinstance(result, cls):
        return result.as_subclass(cls)
    if isinstance(result, (tuple, list)):  # torch's named results take their parts in one sequence, too
        return type(result)([_as_class(one, cls) for one in result])
    return result


def tensor_text(tensor: Any, prefix: str | None = None, contents: str | None = None) -> str:
    """Write a tensor as torch does; `contents` stand for its elements if they are given."""
    from ._object.printing import tensor_repr

    array = tensor._array
    extra: list[str] = []
    if current_mode().transforms or isinstance(array, LevelArray):
        from ._object.wrapped_text import text_of_ended, wrapped_text

        found = wrapped_text(tensor, tensor_text)
        if found is None:
            found = array = text_of_ended(array, extra, tensor_text)
        if isinstance(found, str):
            return found
    if not isinstance(array, (np.ndarray, np.generic)):
        array = array.get()
    device = tensor.device
    kind = type(tensor)
    name: str | None
    try:
        grad_fn = tensor.grad_fn
        name = None if grad_fn is None else type(grad_fn).__name__
        if (labels := getattr(grad_fn, "labels", None)) is not None:  # of a compiled call: one node for several
            name = labels[tensor.output_nr]
    except RuntimeError:  # a ForbiddenView
        name, kind = "Invalid", Tensor
    parameter = isinstance(tensor, Parameter)
    is_marked = parameter and not issubclass(kind, Parameter)  # of another class, which has been made a parameter
    text = tensor_repr(
        array if hasattr(array, "standin") else np.asarray(array),
        class_name="tensor"
        if kind is Tensor or (parameter and not is_marked) or kind in signed_types
        else kind.__name__,
        dtype_text=str(tensor.dtype),
        default_float_text=str(_dtypes.get_default_dtype()),
        device_text=None if device.type == "cpu" else str(device),
        requires_grad=tensor.requires_grad,
        grad_fn_name=name,
        extra_suffixes=tuple(extra),
        is_parameter=parameter and not is_marked,
        contents=contents,
    )
    return f"Parameter({text})" if is_marked else text


class ParameterMeta(TensorMeta):
    """Lets tensors marked `_is_param` pass for Parameters."""

    def __instancecheck__(cls, instance: Any) -> bool:  # noqa: N805 - of a metaclass
        return super().__instancecheck__(instance) or (
            cls.__name__ == "Parameter" and isinstance(instance, Tensor) and getattr(instance, "_is_param", False)
        )


class Parameter(Tensor, metaclass=ParameterMeta):
    """A Tensor that is a module's parameter: it requires grad by default.

    Args:
        data: its values
        requires_grad: whether it is learned

    Example:
        >>> nn.Parameter(torch.zeros(2))
        Parameter containing:
        tensor([0., 0.], requires_grad=True)
    """

    __slots__ = ()
    __module__ = "retrograd.nn.parameter"

    def __new__(cls, data: Tensor | None = None, requires_grad: bool = True) -> Self:
        """Build a parameter on a tensor's memory."""
        try:
            if data is None:
                data = Tensor()
            check_parameter(data, requires_grad)
            if type(data) not in (Tensor, Parameter, cls) and type(data) not in signed_types:
                return marked_parameter(data, requires_grad)  # type: ignore[no-any-return]
            result = Tensor._make_subclass(cls, detached(data), requires_grad)
            if (edge := _base._edge_slot.__get__(data)) is not None:
                note_cut(f"{cls.__name__}(...)", data, edge, result)
            return result  # type: ignore[no-any-return]
        except Exception as error:
            hide(error)
            raise

    __torch_function__ = _base.disabled_torch_function  # type: ignore[assignment]


_base.install(Tensor, Parameter)


__all__ = ["Parameter", "Tensor", "tensor_text"]
