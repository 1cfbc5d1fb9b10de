"""torch.utils.hooks: handles of hooks, and the backward hooks of modules."""

from __future__ import annotations

from typing import Any

from .._warnings import warn
from ..autograd.function import Function
from ..autograd.graph import RemovableHandle
from ..tensor._tensor import Tensor


def unserializable_hook(f: Any) -> Any:
    """Mark a hook that need not be kept when its tensor is pickled: nobody is warned that it is lost."""
    f.__torch_unserializable__ = True
    return f


def warn_if_has_hooks(tensor: Any) -> None:
    """Warn of each backward hook that pickling a tensor loses."""
    extra = tensor._extra
    for hook in () if extra is None else (extra.hooks or {}).values():
        if not hasattr(hook, "__torch_unserializable__"):
            warn(
                f"backward hook {hook!r} on tensor will not be serialized.  If this is expected, you can decorate the function "
                "with @torch.utils.hooks.unserializable_hook to suppress this warning"
            )


class BackwardHookFunction(Function):
    """Pass tensors through unchanged: its node is where a module's inputs or outputs are watched."""

    @staticmethod
    def forward(ctx: Any, *tensors: Any) -> Any:
        ctx.mark_non_differentiable(*[t for t in tensors if not t.requires_grad])
        return tensors

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        return grads


class BackwardHook:
    """Watches one call of a module: its outputs' gradients first, then its inputs'."""

    def __init__(self, module: Any, user_hooks: list[Any], user_pre_hooks: list[Any]) -> None:
        self.module = module
        self.user_hooks = user_hooks
        self.user_pre_hooks = user_pre_hooks
        self.grad_outputs: Any = None
        self.input_places: list[int] | None = None  # which arguments are tensors; None: no input requires grad
        self.input_count = 0

    def setup_input_hook(self, args: tuple[Any, ...]) -> tuple[Any, ...]:
        """Watch the gradients of a call's arguments."""
        watched, places, node = _passed_through(args)
        self.input_count = len(args)
        if node is not None:
            self.input_places = places

            def hook(grads: Any, _: Any) -> Any:  # errors about what it returns call it by this name, as torch's
                return self._on_inputs(grads, places)

            node.register_hook(hook)
        return watched

    def setup_output_hook(self, result: Any) -> Any:
        """Watch the gradients of a call's outputs."""
        single = not isinstance(result, tuple)
        watched, places, node = _passed_through((result,) if single else result)
        if node is not None:
            count = len(watched)

            def hook(_: Any, grads: Any) -> Any:
                return self._on_outputs(grads, places, count)

            node.register_hook(hook)
        return watched[0] if single else watched

    def _on_outputs(self, grads: Any, places: list[int], count: int) -> Any:
        given: Any = _spread(grads, places, count)
        for one in self.user_pre_hooks:
            changed = one(self.module, given)
            if changed is not None:
                given = _of_length(changed, count, "pre hook", "grad_output")
        self.grad_outputs = given
        if self.input_places is None:
            warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                "register_full_backward_hook for more details."
            )
            nothing = (None,) * self.input_count
            for one in self.user_hooks:
                changed = one(self.module, nothing, self.grad_outputs)
                if changed is not None and not (isinstance(changed, tuple) and all(g is None for g in changed)):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
            self.grad_outputs = None
        return tuple(given[k] for k in places)

    def _on_inputs(self, grads: Any, places: list[int]) -> Any:
        if self.grad_outputs is None:  # no gradient came through the outputs: that of a gradient, or of a side way
            return None
        given: Any = _spread(grads, places, self.input_count)
        for one in self.user_hooks:
            changed = one(self.module, given, self.grad_outputs)
            if changed is not None:
                given = _of_length(changed, self.input_count, "hook", "grad_input")
        self.grad_outputs = None
        return tuple(given[k] for k in places)


def _passed_through(values: tuple[Any, ...]) -> tuple[tuple[Any, ...], list[int], Any]:
    """Send the tensors among values through a node of their own, if gradients are on and one of them requires them."""
    places = [k for k, value in enumerate(values) if isinstance(value, Tensor)]
    if not any(values[k].requires_grad for k in places):
        return values, places, None
    passed = BackwardHookFunction.apply(*[values[k] for k in places])
    node = next((t.grad_fn for t in passed if t.grad_fn is not None), None)
    if node is None:
        return values, places, None  # no_grad
    watched = list(values)
    for k, tensor in zip(places, passed, strict=True):
        watched[k] = tensor
    made = type(values)(*watched) if hasattr(values, "_fields") else tuple(watched)
    return made, places, node


def _spread(grads: Any, places: list[int], count: int) -> tuple[Any, ...]:
    """Put gradients where their values stand among the arguments."""
    spread: list[Any] = [None] * count
    for k, grad in zip(places, grads, strict=True):
        spread[k] = grad
    return tuple(spread)


def _of_length(changed: Any, count: int, what: str, name: str) -> Any:
    if len(changed) != count:
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {name}, got {len(changed)}, but expected {count}"
        )
    return changed


__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
