"""Calling a module: forward hooks, backward hooks, and none of them as a rule."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from ..._warnings import warn
from ...autograd.graph import RemovableHandle
from ...tensor._tensor import Tensor
from ...utils.hooks import BackwardHook
from ._error_places import tell_place

Hooks = OrderedDict[int, Callable[..., Any]]
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_is_full_backward_hook: bool | None = None


class Call:
    """One call of a module: its arguments and its result as hooks have changed them, and which hooks were called."""

    def __init__(self, args: Any, kwargs: Any) -> None:
        self.args = args
        self.kwargs = kwargs
        self.result: Any = None
        self.called: set[int] = set()

    def take(self, hook: Any, module: Any, with_kwargs: bool) -> None:
        """Call a forward hook, and take what it returns for the result."""
        given = (self.args, self.kwargs) if with_kwargs else (self.args,)
        changed = hook(module, *given, self.result)
        if changed is not None:
            self.result = changed


class ModuleCalling:
    """`module(...)`, and the registration of hooks."""

    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _is_full_backward_hook: bool | None

    if TYPE_CHECKING:
        forward: Callable[..., Any]  # of any signature
    else:

        def forward(self, *input: Any) -> Any:
            """Compute the module's output; every subclass defines it."""
            raise NotImplementedError(f'Module [{type(self).__name__}] is missing the required "forward" function')

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if "_call_impl" in cls.__dict__ and "__call__" not in cls.__dict__:
            cls.__call__ = _call_its_own  # type: ignore[method-assign]

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        # without hooks, and without a call between: a module of a small model takes a microsecond or two in all
        own = self.__dict__  # `__getattr__` makes reading an attribute four times as slow
        try:
            hooked = (
                own["_forward_hooks"]
                or own["_forward_pre_hooks"]
                or own["_backward_hooks"]
                or own["_backward_pre_hooks"]
                or _global_forward_hooks
                or _global_forward_pre_hooks
                or _global_backward_hooks
                or _global_backward_pre_hooks
            )
        except KeyError:  # whoever asks for the attribute will explain
            hooked = True
        try:
            if hooked:
                return self._call_impl(*args, **kwargs)
            return self.forward(*args, **kwargs) if kwargs else self.forward(*args)
        except Exception as error:
            tell_place(error, self, (*args, *kwargs.values()))
            raise

    def _call_impl(self, *args: Any, **kwargs: Any) -> Any:
        call = Call(args, kwargs)
        try:
            return self._call_with_hooks(call)
        except Exception:
            self._call_the_rest(call)
            raise

    def _call_with_hooks(self, call: Call) -> Any:
        full, other = self._get_backward_hooks()
        pre = self._get_backward_pre_hooks()
        self._before_forward(call)
        watch = BackwardHook(self, full, pre) if full or pre else None
        if watch is not None:
            call.args = watch.setup_input_hook(call.args)
        call.result = self.forward(*call.args, **call.kwargs)
        self._after_forward(call)
        result = call.result
        if watch is not None:
            if not isinstance(result, (Tensor, tuple)):
                warn(
                    f"For backward hooks to be called, module output should be a Tensor or a tuple of Tensors but "
                    f"received {type(result)}"
                )
            result = watch.setup_output_hook(result)
        if other:
            self._hook_last_node(call.args, result, other)
        return result

    def _before_forward(self, call: Call) -> None:
        for number, hook in (*_global_forward_pre_hooks.items(), *self._forward_pre_hooks.items()):
            if number in self._forward_pre_hooks_with_kwargs:
                changed = hook(self, call.args, call.kwargs)
                if changed is None:
                    continue
                if not (isinstance(changed, tuple) and len(changed) == 2):
                    raise RuntimeError(
                        f"forward pre-hook must return None or a tuple of (new_args, new_kwargs), but got {changed}."
                    )
                call.args, call.kwargs = changed
            else:
                changed = hook(self, call.args)
                if changed is not None:
                    call.args = changed if isinstance(changed, tuple) else (changed,)

    def _after_forward(self, call: Call) -> None:
        for number, hook in (*_global_forward_hooks.items(), *self._forward_hooks.items()):
            call.called.add(number)
            takes_kwargs = number in self._forward_hooks_with_kwargs or number in _global_forward_hooks_with_kwargs
            call.take(hook, self, takes_kwargs)

    def _call_the_rest(self, call: Call) -> None:
        """Call the hooks that are called even when forward raised."""
        for always, hooks, with_kwargs in (
            (_global_forward_hooks_always_called, _global_forward_hooks, _global_forward_hooks_with_kwargs),
            (self._forward_hooks_always_called, self._forward_hooks, self._forward_hooks_with_kwargs),
        ):
            for number, hook in hooks.items():
                if number not in always or number in call.called:
                    continue
                try:
                    call.take(hook, self, number in with_kwargs)
                except Exception as error:
                    what = "global module" if hooks is _global_forward_hooks else "module"
                    warn(
                        f"{what} forward hook with ``always_call=True`` raised an exception that was silenced as another "
                        f"error was raised in forward: {error}"
                    )

    def _hook_last_node(self, args: Any, result: Any, hooks: list[Any]) -> None:
        """Register torch's old backward hooks, which see the last operation only."""
        first = result
        while not isinstance(first, Tensor):
            first = next(v for v in first.values() if isinstance(v, Tensor)) if isinstance(first, dict) else first[0]
        node = first.grad_fn
        if node is not None:
            for hook in hooks:
                node.register_hook(lambda grad_in, grad_out, hook=hook: hook(self, grad_in, grad_out))
            warn_of_old_hooks(args, result, node)

    # ---- registration ----
    def register_forward_pre_hook(
        self, hook: Callable[..., Any], *, prepend: bool = False, with_kwargs: bool = False
    ) -> RemovableHandle:
        """Call `hook(module, args)` before forward; what it returns takes the place of the arguments."""
        handle = RemovableHandle.add(self._forward_pre_hooks, hook, self._forward_pre_hooks_with_kwargs)
        if with_kwargs:
            self._forward_pre_hooks_with_kwargs[handle.id] = True
        if prepend:
            self._forward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_forward_hook(
        self,
        hook: Callable[..., Any],
        *,
        prepend: bool = False,
        with_kwargs: bool = False,
        always_call: bool = False,
    ) -> RemovableHandle:
        """Call `hook(module, args, output)` after forward; what it returns takes the place of the output."""
        others = [self._forward_hooks_with_kwargs, self._forward_hooks_always_called]
        handle = RemovableHandle.add(self._forward_hooks, hook, others)
        if with_kwargs:
            self._forward_hooks_with_kwargs[handle.id] = True
        if always_call:
            self._forward_hooks_always_called[handle.id] = True
        if prepend:
            self._forward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_input, grad_output)` when the gradients of the inputs are there."""
        if self._is_full_backward_hook is False:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = True
        handle = RemovableHandle.add(self._backward_hooks, hook)
        if prepend:
            self._backward_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_full_backward_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(module, grad_output)` when the gradients of the outputs are there."""
        handle = RemovableHandle.add(self._backward_pre_hooks, hook)
        if prepend:
            self._backward_pre_hooks.move_to_end(handle.id, last=False)
        return handle

    def register_backward_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Register torch's old kind of backward hook; `register_full_backward_hook` is the right one."""
        if self._is_full_backward_hook is True:
            raise RuntimeError(
                "Cannot use both regular backward hooks and full backward hooks on a single Module. Please use only one of "
                "them."
            )
        self._is_full_backward_hook = False
        return RemovableHandle.add(self._backward_hooks, hook)

    def _get_backward_hooks(self) -> tuple[list[Any], list[Any]]:
        full = list(_global_backward_hooks.values()) if _global_is_full_backward_hook is True else []
        other = list(_global_backward_hooks.values()) if _global_is_full_backward_hook is False else []
        (full if self._is_full_backward_hook is True else other).extend(self._backward_hooks.values())
        return full, other

    def _get_backward_pre_hooks(self) -> list[Any]:
        return [*_global_backward_pre_hooks.values(), *self._backward_pre_hooks.values()]


def _call_its_own(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a module whose class has a `_call_impl` of its own."""
    return self._call_impl(*args, **kwargs)


def warn_of_old_hooks(args: Any, result: Any, node: Any) -> None:
    """Warn where an old backward hook on `node`, the last one, cannot see all gradients of a call."""
    results = (result,) if isinstance(result, Tensor) else result
    for values, what, seen in ((results, "return", "grad_output"), (args, "take as input", "grad_input")):
        if not (isinstance(values, tuple) and all(isinstance(one, Tensor) for one in values)):
            warn(
                f"Using non-full backward hooks on a Module that does not {what} a single Tensor or a tuple of Tensors is "
                f"deprecated and will be removed in future versions. This hook will be missing some of the {seen}. Please "
                "use register_full_backward_hook to get the documented behavior.",
                FutureWarning,
            )
            return
    last = {one.grad_fn for one in results if one.grad_fn is not None}
    first = {one.grad_fn for one in args if one.grad_fn is not None}
    if len(last) > 1:
        what, seen = "outputs are generated by different autograd Nodes", "grad_output"
    elif first != {following for following, _ in node.next_functions}:
        what, seen = "the forward contains multiple autograd Nodes", "grad_input"
    else:
        return
    warn(
        f"Using a non-full backward hook when {what} is deprecated and will be removed in future versions. This hook will be "
        f"missing some {seen}. Please use register_full_backward_hook to get the documented behavior.",
        FutureWarning,
    )


# ---- hooks of all modules ----
def register_module_forward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a hook before the forward of every module."""
    return RemovableHandle.add(_global_forward_pre_hooks, hook)


def register_module_forward_hook(
    hook: Callable[..., Any], *, with_kwargs: bool = False, always_call: bool = False
) -> RemovableHandle:
    """Call a hook after the forward of every module."""
    others = [_global_forward_hooks_with_kwargs, _global_forward_hooks_always_called]
    handle = RemovableHandle.add(_global_forward_hooks, hook, others)
    if with_kwargs:
        _global_forward_hooks_with_kwargs[handle.id] = True
    if always_call:
        _global_forward_hooks_always_called[handle.id] = True
    return handle


def register_module_full_backward_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a hook before the backward of every module."""
    return RemovableHandle.add(_global_backward_pre_hooks, hook)


def _register_module_backward(hook: Callable[..., Any], full: bool) -> RemovableHandle:
    global _global_is_full_backward_hook
    if _global_backward_hooks and _global_is_full_backward_hook is (not full):
        raise RuntimeError(
            "Cannot use both regular backward hooks and full backward hooks as a global Module hook. Please use only one "
            "of them."
        )
    _global_is_full_backward_hook = full
    return RemovableHandle.add(_global_backward_hooks, hook)


def register_module_full_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call a hook after the backward of every module."""
    return _register_module_backward(hook, full=True)


def register_module_backward_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Register torch's old kind of backward hook for every module."""
    return _register_module_backward(hook, full=False)
