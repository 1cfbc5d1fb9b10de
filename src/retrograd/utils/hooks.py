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
        if node is not None:
            self.input_places, self.input_count = places, len(args)
            node.register_hook(self._on_inputs)
        return watched

    def setup_output_hook(self, result: Any) -> Any:
        """Watch the gradients of a call's outputs."""
        single = not isinstance(result, tuple)
        watched, places, node = _passed_through((result,) if single else result)
        if node is not None:
            count = len(watched)
            node.register_prehook(lambda grads: self._on_outputs(grads, places, count))
        return watched[0] if single else watched

    def _on_outputs(self, grads: Any, places: list[int], count: int) -> Any:
        given: Any = _spread(grads, places, count)
        for hook in self.user_pre_hooks:
            changed = hook(self.module, given)
            if changed is not None:
                given = _of_length(changed, count, "pre hook", "grad_output")
        self.grad_outputs = given
        if self.input_places is None:
            warn(
                "Full backward hook is firing when gradients are computed with respect to module outputs since no inputs "
                "require gradients. See https://docs.pytorch.org/docs/main/generated/torch.nn.Module.html#torch.nn.Module."
                "register_full_backward_hook for more details."
            )
            nothing = (None,) * max(self.input_count, 1)
            for hook in self.user_hooks:
                changed = hook(self.module, nothing, self.grad_outputs)
                if changed is not None and any(one is not None for one in changed):
                    raise RuntimeError(
                        "Backward hook for Modules where no input requires gradient should always return None or None "
                        "for all gradients."
                    )
            self.grad_outputs = None
        return tuple(given[k] for k in places)

    def _on_inputs(self, grads: Any, _: Any) -> Any:
        if self.grad_outputs is None:
            raise RuntimeError(
                "Module backward hook for grad_input is called before the grad_output one. This happens because the "
                "gradient in your nn.Module flows to the Module's input without passing through the Module's output. Make "
                "sure that the output depends on the input and that the loss is computed based on the output."
            )
        places = self.input_places or []
        given: Any = _spread(grads, places, self.input_count)
        for hook in self.user_hooks:
            changed = hook(self.module, given, self.grad_outputs)
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


def _of_length(changed: Any, count: int, what: str, name: str) -> tuple[Any, ...]:
    made: Any = (changed,) if isinstance(changed, Tensor) else changed
    if len(made) != count:
        raise RuntimeError(
            f"Backward {what} returned an invalid number of {name}, got {len(made)}, but expected {count}"
        )
    return tuple(made)


__all__ = ["BackwardHook", "RemovableHandle", "unserializable_hook", "warn_if_has_hooks"]
