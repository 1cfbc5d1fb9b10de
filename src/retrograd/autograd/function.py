"""Custom functions: `torch.autograd.Function`.

Note [A Function is a primitive]
`apply` is never traced through: forward mode calls the Function's `jvp`, vmap its `vmap` (or runs forward on the batched
values if it says `generate_vmap_rule`), reverse mode its `backward`. A straight-through estimator stays one in every
mode. The node of the graph is `ctx` itself (_function_node.py, _function_run.py).
"""

from __future__ import annotations

import functools
from typing import Any

from .. import _errors
from .._graph.node import Node
from .._modes import current_mode, using
from .._tracebacks import hide
from .._warnings import warn
from ..tensor._base import wrap
from ..tensor._tensor import Tensor
from . import _function_node, _function_run
from ._function_node import BackwardCFunction, FunctionCtx
from ._function_run import VmapInfo, run


class FunctionMeta(type):
    """Gives every Function its node class."""

    def __init__(cls, name: str, bases: Any, namespace: Any) -> None:
        super().__init__(name, bases, namespace)
        cls._backward_cls = type(f"{name}Backward", (BackwardCFunction,), {"_forward_cls": cls})


class Function(FunctionCtx, metaclass=FunctionMeta):
    """A differentiable function with a backward of your own. See Note [A Function is a primitive].

    Example:
        >>> class Cube(torch.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x**3
        ...
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x**2
        >>> x = torch.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad
        tensor(12.)
    """

    generate_vmap_rule = False
    clear_saved_tensors_on_access = False
    boxed_grads_call = False  # backward gets its gradients as one list, and can release them one by one

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        warn(
            f"{type(self)} should not be instantiated. Methods on autograd functions are all static, so you should "
            "invoke them on the class itself. Instantiating an autograd function will raise an error in a future "
            "version of PyTorch.",
            DeprecationWarning,
        )

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError(
            "Legacy autograd function with non-static forward method is deprecated. Please use new-style autograd "
            "function with static forward method. (Example: "
            "https://pytorch.org/docs/stable/autograd.html#torch.autograd.Function)"
        )

    @staticmethod
    def forward(*args: Any, **kwargs: Any) -> Any:
        """Compute the output; `forward(ctx, ...)`, or `forward(...)` with `setup_context`."""
        raise NotImplementedError("You must implement the forward function for custom autograd.Function.")

    @staticmethod
    def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Any) -> Any:
        """Save what backward needs."""
        raise NotImplementedError("setup_context is not implemented.")

    backward = staticmethod(_function_node.backward)
    vjp = backward

    @staticmethod
    def jvp(ctx: Any, *grad_inputs: Any) -> Any:
        """Compute the tangents of the outputs."""
        raise NotImplementedError(
            "You must implement the jvp function for custom autograd.Function to use it with forward mode AD."
        )

    vmap = staticmethod(_function_run.vmap)

    @classmethod
    def apply(cls, *args: Any, **kwargs: Any) -> Any:
        """Run the function."""
        try:
            two_part = cls.setup_context is not Function.setup_context
            if kwargs:
                _refuse_named_tensors(kwargs)
                import inspect

                ctx = () if two_part else (None,)
                bound = inspect.signature(cls.forward).bind(*ctx, *args, **kwargs)
                bound.apply_defaults()
                args = bound.args[len(ctx) :]
            if two_part:
                args = _with_defaults(cls.forward, args)
            if current_mode().transforms and not two_part and _in_transform():
                raise _errors.no_setup_context(cls)
            output, node = run(cls, args, two_part)
            node.of_forward = ()
            return output
        except Exception as error:
            hide(error)
            raise


def _refuse_named_tensors(kwargs: dict[str, Any]) -> None:
    named = {name: value for name, value in kwargs.items() if isinstance(value, Tensor)}
    if named and any(t.kind == "vmap" for t in current_mode().transforms):
        raise NotImplementedError(
            "Run vmap on autograd.Function with kwarg-only Tensor args. Please do not pass kwarg-only Tensors to "
            f"autograd.Function. Got: {named}"
        )


OLD_VMAP = "old vmap"  # of `torch._vmap_internals`, which asks nothing of Functions


def _in_transform() -> bool:
    return any(t.kind not in ("dual_level", OLD_VMAP) for t in current_mode().transforms)


def _with_defaults(forward: Any, args: tuple[Any, ...]) -> tuple[Any, ...]:
    code = getattr(forward, "__code__", None)
    if code is not None and code.co_argcount == len(args) and not code.co_kwonlyargcount:
        return args
    import inspect

    try:
        bound = inspect.signature(forward).bind(*args)
    except (TypeError, ValueError):
        return args
    bound.apply_defaults()
    return bound.args


class InplaceFunction(Function):
    """A Function with an `inplace` flag, kept for old code."""

    def __init__(self, inplace: bool = False) -> None:
        super().__init__()
        self.inplace = inplace


# ---- a backward that cannot itself be differentiated ----
def once_differentiable(backward: Any) -> Any:
    """Mark a backward that cannot itself be differentiated."""

    @functools.wraps(backward)
    def wrapper(ctx: Any, *grads: Any) -> Any:
        tracked = current_mode().grad and any(isinstance(g, Tensor) and g._edge is not None for g in grads)
        with using(grad=False):
            results = backward(ctx, *grads)
        if not tracked:
            return results
        many = results if isinstance(results, tuple) else (results,)
        marked = tuple(_refuse_twice(r) if isinstance(r, Tensor) else r for r in many)
        return marked if isinstance(results, tuple) else marked[0]

    return wrapper


class Error(Node):
    """A node whose backward is an error."""

    __slots__ = ("message",)
    message: str

    def pull_back(self, g: Any, graph: bool) -> Any:
        raise RuntimeError(self.message)


def _refuse_twice(result: Any) -> Any:
    node = Error().begin((), of_user=False)
    node.message = "trying to differentiate twice a function that was marked with @once_differentiable"
    return wrap(result._array, node, result._storage)


__all__ = [
    "BackwardCFunction",
    "Function",
    "FunctionCtx",
    "InplaceFunction",
    "NestedIOFunction",  # noqa: F822 - loaded when asked for
    "VmapInfo",
    "once_differentiable",
]


def __getattr__(name: str) -> Any:
    """Load what few programs use when it is asked for."""
    if name == "NestedIOFunction":
        from ._nested_io import NestedIOFunction

        return NestedIOFunction
    raise AttributeError(f"module 'torch.autograd.function' has no attribute '{name}'")
