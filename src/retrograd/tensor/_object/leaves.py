"""Leaves: which tensors are, and switching `requires_grad`."""

from __future__ import annotations

from typing import Any

from ... import _errors
from ..._dtypes import CPP_NAMES
from ..._dtypes import dtype as dtype_type
from ..._modes import current_mode
from .._aliasing.views import NOWHERE, _edge_slot, sync, sync_views
from .._base import LEAF, TensorBase, dtype_of

NOT_A_LEAF = "you can only change requires_grad flags of leaf variables."
DETACH_INSTEAD = (
    " If you want to use a computed variable in a subgraph that doesn't require differentiation use var_no_grad = "
    "var.detach()."
)


class LeafDtypes:
    """Whether any leaf of this process wants gradients of another dtype than its own: only then does the engine look."""

    wanted = False


def is_leaf(tensor: Any) -> bool:
    """Tell whether a tensor has no node, even where reading `grad_fn` would raise."""
    edge = _edge_slot.__get__(tensor)
    return edge is None or edge is LEAF or edge is NOWHERE or getattr(edge, "stands_for_leaf", False)


def refuse_inference_leaf(tensor: Any) -> None:
    """Refuse to follow a tensor of inference mode outside that mode."""
    storage = tensor._storage
    if storage is not None and storage.inference and not current_mode().inference:
        raise RuntimeError("Setting requires_grad=True on inference tensor outside InferenceMode is not allowed.")


USED_BY = " (or perhaps using torch.autograd.functional.* APIs)"


def refuse_inside(what: str, other: str = "", kinds: tuple[str, ...] = ("vmap", "grad", "vjp", "jvp")) -> None:
    """Raise torch's error for a method that changes what autograd follows, inside a transform."""
    if (transforms := current_mode().transforms) and any(one.kind in kinds for one in transforms):
        raise RuntimeError(
            f"You are attempting to call Tensor.{what}{other} inside of a function being transformed by a functorch transform. "
            "This is unsupported, please attempt to use the functorch transforms (e.g. grad, vjp, jacrev, jacfwd, hessian) or "
            f"call {what} outside of a function being transformed instead."
        )


def set_requires_grad(tensor: Any, value: bool, kinds: str = "floating point dtype") -> None:
    """Change whether autograd follows a leaf; its views follow it."""
    if value and tensor._array.dtype.kind not in "fcV":
        raise RuntimeError(f"only Tensors of {kinds} can require gradients")
    storage = tensor._storage
    if value:
        refuse_inference_leaf(tensor)
    if value and _edge_slot.__get__(tensor) is None:
        refuse_inside("requires_grad_()", USED_BY, ("grad", "vjp"))
    _edge_slot.__set__(tensor, LEAF if value else None)
    if tensor._extra is not None and tensor._extra.view is not None:
        sync(tensor, storage.version)
    elif storage is not None and storage.views is not None:
        sync_views(storage)


# ---- the dtype of gradients ----
def grad_dtype_of(tensor: Any) -> Any:
    """Return the dtype of a leaf's gradient, None if it may be any: that of the leaf unless another was chosen."""
    extra = tensor._extra
    return dtype_of(tensor) if extra is None or extra.grad_dtype is LEAF else extra.grad_dtype


def choose_grad_dtype(tensor: Any, value: Any) -> None:
    """Choose the dtype to which gradients that arrive at a leaf are brought; None: they stay as they are."""
    if not is_leaf(tensor):
        raise RuntimeError("grad_dtype can only be set on leaf tensors.")
    if value is not None and not isinstance(value, dtype_type):
        raise RuntimeError(f"grad_dtype must be a torch.dtype or None, but got {type(value).__name__}")
    extra = tensor._need_extra()
    if value is not None and extra.grad is not None and dtype_of(extra.grad) is not value:
        raise RuntimeError(
            f"Cannot set grad_dtype to '{value._scalar_name}' because there is already a gradient with dtype "
            f"'{_cpp_name(extra.grad)}'. Please clear the gradient (.grad = None) before changing grad_dtype, or ensure the "
            "new grad_dtype matches the existing gradient's dtype."
        )
    extra.grad_dtype = value
    LeafDtypes.wanted = True


def check_grad_dtype(tensor: Any, grad: Any) -> None:
    """Refuse a gradient of another dtype than a tensor's gradient has."""
    wanted = grad_dtype_of(tensor)
    if wanted is not None and wanted is not dtype_of(grad):
        raise RuntimeError(
            f"attempting to assign a gradient with dtype '{_cpp_name(grad)}' to a tensor with grad_dtype "
            f"'{wanted._scalar_name}'. The gradient must match the tensor's grad_dtype (defaults to the tensor's dtype). "
            "You can set the tensor's grad_dtype attribute with a specific dtype, or None to allow any dtype. Set "
            "grad_dtype with caution. Diverging the dtypes of a tensor and its gradient may break downstream systems "
            "that assume they match."
        )


def _cpp_name(tensor: Any) -> str:
    return CPP_NAMES[dtype_of(tensor).name]


def check_parameter(data: Any, requires_grad: bool) -> None:
    """Raise torch's errors for what no parameter can be made of."""
    if not isinstance(data, TensorBase):
        hint = "a Parameter is made of a Tensor: Parameter(torch.tensor(...))."
        raise AttributeError(f"'{type(data).__name__}' object has no attribute 'detach'\nHint: {hint}")
    if requires_grad:
        refuse_inference_leaf(data)
        if data._array.dtype.kind not in "fcV":
            raise RuntimeError(_errors.ONLY_FLOATS)


def marked_parameter(data: Any, requires_grad: bool) -> Any:
    """Return an instance of a subclass that passes for a Parameter and keeps its class."""
    result = data.detach().requires_grad_(requires_grad)
    if type(result) is not type(data):
        raise RuntimeError(
            f"Creating a Parameter from an instance of type {type(data).__name__} requires that detach() returns an instance "
            f"of the same type, but return type {type(result).__name__} was found instead. To use the type as a Parameter, "
            "please correct the detach() semantics defined by its __torch_dispatch__() implementation."
        )
    result._is_param = True
    return result
