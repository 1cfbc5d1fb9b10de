"""torch.optim.optimizer: the base of every optimizer. It knows groups, state, saving and hooks, and no formula."""

from __future__ import annotations

import functools
from collections import OrderedDict, defaultdict
from collections.abc import Callable, Iterable, Sequence
from copy import deepcopy
from itertools import chain
from typing import Any, TypeAlias

from .._dtypes import float32, float64, get_default_dtype
from .._errors import GIVE_PARAMETERS, all_of
from .._modes import current_mode, read_mode, restore_mode, set_grad
from .._settings import typename
from .._tracebacks import guard_methods, guard_own, hide
from .._warnings import warn
from ..autograd.grad_mode import enable_grad
from ..autograd.graph import RemovableHandle
from ..tensor._object.leaves import is_leaf
from ..tensor._tensor import Parameter, Tensor
from ..utils._foreach_utils import _group_tensors_by_device_and_dtype as _group_tensors

Hooks: TypeAlias = "OrderedDict[int, Callable[..., Any]]"
# One Iterable: of groups written in place mypy would make a list of objects if each kind had its own.
ParamsT: TypeAlias = Iterable[Tensor | dict[str, Any] | tuple[str, Tensor]]

_global_optimizer_pre_hooks: Hooks = OrderedDict()
_global_optimizer_post_hooks: Hooks = OrderedDict()


class _RequiredParameter:
    """Stands for an option that has no default."""

    def __repr__(self) -> str:
        return "<required parameter>"


required = _RequiredParameter()


def register_optimizer_step_pre_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` before every step of every optimizer."""
    return RemovableHandle.add(_global_optimizer_pre_hooks, hook)


def register_optimizer_step_post_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(optimizer, args, kwargs)` after every step of every optimizer."""
    return RemovableHandle.add(_global_optimizer_post_hooks, hook)


def _get_scalar_dtype(is_fused: bool | None = None) -> Any:
    """Return the dtype in which an optimizer counts its steps."""
    return float64 if not is_fused and get_default_dtype() is float64 else float32


def _use_grad_for_differentiable(func: Callable[..., Any]) -> Callable[..., Any]:
    """Run a step with gradients switched on exactly if the optimizer is differentiable."""

    @functools.wraps(func)
    def step(self: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            before = current_mode()
            try:
                set_grad(bool(self.defaults.get("differentiable")))
                return func(self, *args, **kwargs)
            finally:
                restore_mode(before)
        except Exception as error:
            hide(error)
            raise

    return step


def loss_of(closure: Callable[[], Any] | None) -> Any:
    """Compute the loss again, with gradients; None if there is no closure."""
    if closure is None:
        return None
    with enable_grad():
        return closure()


_HOOKS = tuple(
    f"_optimizer_{event}_{when}_hooks"
    for event in ("step", "state_dict", "load_state_dict")
    for when in ("pre", "post")
)


class Optimizer:
    """Groups of parameters, the options of each group, and the state of each parameter.

    Args:
        params: parameters, or groups of them with options of their own
        defaults: the options of groups that do not say otherwise

    Example:
        >>> class Signs(torch.optim.Optimizer):
        ...     def __init__(self, params, lr):
        ...         super().__init__(params, {"lr": lr})
        ...
        ...     @torch.no_grad()
        ...     def step(self):
        ...         for group in self.param_groups:
        ...             for p in group["params"]:
        ...                 p -= group["lr"] * p.grad.sign()
        >>> w = torch.tensor([1.0, -2.0], requires_grad=True)
        >>> w.square().sum().backward()
        >>> Signs([w], lr=0.5).step()
        >>> w
        tensor([ 0.5000, -1.5000], requires_grad=True)
    """

    OptimizerPreHook: TypeAlias = Callable[..., Any]
    OptimizerPostHook: TypeAlias = Callable[..., Any]

    _optimizer_step_pre_hooks: Hooks
    _optimizer_step_post_hooks: Hooks
    _optimizer_state_dict_pre_hooks: Hooks
    _optimizer_state_dict_post_hooks: Hooks
    _optimizer_load_state_dict_pre_hooks: Hooks
    _optimizer_load_state_dict_post_hooks: Hooks

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard_own(cls, "__init__")

    def __init__(self, params: ParamsT, defaults: dict[str, Any]) -> None:
        self.defaults = defaults
        for name in _HOOKS:
            setattr(self, name, OrderedDict())
        self._patch_step_function()
        if isinstance(params, Tensor):
            raise TypeError(
                "params argument given to the optimizer should be an iterable of Tensors or dicts, but got "
                + params.type()
            )
        self.state: defaultdict[Any, Any] = defaultdict(dict)
        self.param_groups: list[dict[str, Any]] = []
        groups = all_of(params)
        if not groups:
            raise ValueError("optimizer got an empty parameter list")
        if not isinstance(groups[0], dict):
            groups = [{"params": groups}]
        for group in groups:
            self.add_param_group(group)

    # ---- groups ----
    def add_param_group(self, param_group: dict[str, Any]) -> None:
        """Add parameters with options of their own; nothing is added if something is wrong with them."""
        if not isinstance(param_group, dict):
            raise TypeError(f"param_group must be a dict, but got {type(param_group)}")
        params, names = _named(param_group["params"])
        for param in params:
            if not isinstance(param, Tensor):
                hint = f"\nHint: give {GIVE_PARAMETERS}" if hasattr(param, "parameters") else ""
                raise TypeError(
                    f"optimizer can only optimize Tensors, but one of the params is {typename(param)}{hint}"
                )
            if not self.defaults.get("differentiable") and not (is_leaf(param) or param.retains_grad):
                raise ValueError("can't optimize a non-leaf Tensor")
        options = {**param_group, "params": params}
        if names is not None:
            options["param_names"] = names
        for name, default in self.defaults.items():
            if default is required and name not in options:
                raise ValueError(f"parameter group didn't specify a value of required optimization parameter {name}")
            options.setdefault(name, default)
        if self.param_groups and ("param_names" in options) != ("param_names" in self.param_groups[0]):
            kind = "with" if "param_names" in options else "without"
            raise ValueError(
                "all optimizer param groups should be with/without names. cannot add param group "
                f"{kind} names to the optimizer"
            )
        known = set(map(id, params))
        if len(known) != len(params):
            warn("optimizer contains a parameter group with duplicate parameters; in future, this will cause an error")
        if any(id(param) in known for group in self.param_groups for param in group["params"]):
            raise ValueError("some parameters appear in more than one parameter group")
        param_group.update(options)
        self.param_groups.append(param_group)

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients, or fill them with zeros."""
        if (mode := read_mode()) is not None and mode.recording is not None:
            mode.recording.need_known([param for group in self.param_groups for param in group["params"]])
        for group in self.param_groups:
            for param in group["params"]:
                if set_to_none:
                    param.grad = None
                elif (grad := param.grad) is not None:
                    if grad.grad_fn is not None:
                        grad.detach_()
                    else:
                        grad.requires_grad_(False)
                    grad.zero_()

    # ---- steps ----
    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter; `closure` computes the loss again."""
        raise NotImplementedError

    @staticmethod
    def profile_hook_step(func: Callable[..., Any]) -> Callable[..., Any]:
        """Return a step that calls the hooks before and after."""

        @functools.wraps(func)
        def wrapper(*args: Any, **kwargs: Any) -> Any:
            self = args[0]
            try:
                if (mode := read_mode()) is not None and mode.recording is not None:
                    return mode.recording.call_later(wrapper, args, kwargs)
                if _global_optimizer_pre_hooks or self._optimizer_step_pre_hooks:
                    for hook in chain(_global_optimizer_pre_hooks.values(), self._optimizer_step_pre_hooks.values()):
                        result = hook(self, args, kwargs)
                        if result is None:
                            continue
                        if not isinstance(result, tuple) or len(result) != 2:
                            raise RuntimeError(
                                f"{func} must return None or a tuple of (new_args, new_kwargs), but got {result}."
                            )
                        args, kwargs = result
                out = func(*args, **kwargs)
                if _global_optimizer_post_hooks or self._optimizer_step_post_hooks:
                    for hook in chain(self._optimizer_step_post_hooks.values(), _global_optimizer_post_hooks.values()):
                        hook(self, args, kwargs)
                return out
            except Exception as error:
                hide(error)
                raise

        wrapper.hooked = True  # type: ignore[attr-defined]
        return wrapper

    @staticmethod
    def _group_tensors_by_device_and_dtype(tensorlistlist: list[list[Any]], with_indices: bool = False) -> Any:
        """Split lists of tensors into groups of one device and dtype."""
        return _group_tensors(tensorlistlist, with_indices)

    def _cuda_graph_capture_health_check(self) -> None:
        """Find nothing wrong: work is never captured."""

    def _patch_step_function(self) -> None:
        """Let the class's `step` call the hooks; once for a class."""
        self._zero_grad_profile_name = f"Optimizer.zero_grad#{type(self).__name__}.zero_grad"
        step = type(self).step
        if not getattr(step, "hooked", False):
            type(self).step = self.profile_hook_step(step)  # type: ignore[method-assign]

    def register_step_pre_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` before every step; it may return new (args, kwargs)."""
        return RemovableHandle.add(self._optimizer_step_pre_hooks, hook)

    def register_step_post_hook(self, hook: Callable[..., Any]) -> RemovableHandle:
        """Call `hook(optimizer, args, kwargs)` after every step."""
        return RemovableHandle.add(self._optimizer_step_post_hooks, hook)

    # ---- saving ----
    def register_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` before a state_dict is made."""
        return _added(self._optimizer_state_dict_pre_hooks, hook, prepend)

    def register_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` on what was made; it may return another one."""
        return _added(self._optimizer_state_dict_post_hooks, hook, prepend)

    def register_load_state_dict_pre_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer, state_dict)` before one is loaded; it may return another one."""
        return _added(self._optimizer_load_state_dict_pre_hooks, hook, prepend)

    def register_load_state_dict_post_hook(self, hook: Callable[..., Any], prepend: bool = False) -> RemovableHandle:
        """Call `hook(optimizer)` after a state_dict was loaded."""
        return _added(self._optimizer_load_state_dict_post_hooks, hook, prepend)

    def state_dict(self) -> dict[str, Any]:
        """Return the state and the groups; parameters are numbered in their order. The tensors are shared."""
        for hook in self._optimizer_state_dict_pre_hooks.values():
            hook(self)
        numbers: dict[int, int] = {}
        groups = []
        for group in self.param_groups:
            for param in group["params"]:
                numbers.setdefault(id(param), len(numbers))
            packed = {name: value for name, value in group.items() if name != "params"}
            packed["params"] = [numbers[id(param)] for param in group["params"]]
            groups.append(packed)
        state = {numbers[id(key)] if isinstance(key, Tensor) else key: value for key, value in self.state.items()}
        result: dict[str, Any] = {"state": state, "param_groups": groups}
        for hook in self._optimizer_state_dict_post_hooks.values():
            changed = hook(self, result)
            if changed is not None:
                result = changed
        return result

    def load_state_dict(self, state_dict: dict[str, Any]) -> None:
        """Take over what `state_dict` returned, here or in torch; tensors come to their parameters' dtype."""
        state_dict = state_dict.copy()
        for hook in self._optimizer_load_state_dict_pre_hooks.values():
            changed = hook(self, state_dict)
            if changed is not None:
                state_dict = changed
        saved = deepcopy(state_dict["param_groups"])
        if len(saved) != len(self.param_groups):
            raise ValueError("loaded state dict has a different number of parameter groups")
        if any(len(new["params"]) != len(own["params"]) for new, own in zip(saved, self.param_groups, strict=True)):
            raise ValueError(
                "loaded state dict contains a parameter group that doesn't match the size of optimizer's group"
            )
        params: dict[Any, Any] = {}
        groups = []
        for new, own in zip(saved, self.param_groups, strict=True):
            params.update(zip(new["params"], own["params"], strict=True))
            new["params"] = own["params"]
            if "param_names" in own and "param_names" not in new:
                new["param_names"] = own["param_names"]
            groups.append(new)
        state: defaultdict[Any, Any] = defaultdict(dict)
        for key, value in state_dict["state"].items():
            if key in params:
                state[params[key]] = _fitted(params[key], value, key, state_dict["param_groups"])
            else:
                state[key] = value
        self.__setstate__({"state": state, "param_groups": groups})
        for hook in self._optimizer_load_state_dict_post_hooks.values():
            hook(self)

    @staticmethod
    def _process_value_according_to_param_policy(
        param: Any, value: Any, param_id: int, param_groups: list[dict[Any, Any]], key: Any = None
    ) -> Any:
        """Return a loaded tensor as its parameter wants it: on its device, in its dtype; a count stays as it is."""
        if key == "step":
            group = next((one for one in param_groups if param_id in one["params"]), {})
            if group.get("capturable") or group.get("fused"):
                return value.to(dtype=float32, device=param.device)
            return value
        if param.is_floating_point():
            return value.to(dtype=param.dtype, device=param.device)
        return value.to(device=param.device)

    def __getstate__(self) -> dict[str, Any]:
        return {"defaults": self.defaults, "state": self.state, "param_groups": self.param_groups}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in _HOOKS:
            if name not in self.__dict__:
                setattr(self, name, OrderedDict())
        self._patch_step_function()
        self.defaults.setdefault("differentiable", False)

    def __repr__(self) -> str:
        lines = [f"{type(self).__name__} ("]
        for number, group in enumerate(self.param_groups):
            lines.append(f"{chr(10) if number else ''}Parameter Group {number}")
            lines += [f"    {name}: {group[name]}" for name in sorted(group) if name != "params"]
        return "\n".join([*lines, ")"])


def _named(given: Any) -> tuple[list[Any], list[str] | None]:
    """Return the parameters of a group as a list, and their names if they came with names."""
    if isinstance(given, Tensor):
        return [given], None
    if isinstance(given, set):
        raise TypeError(
            "optimizer parameters need to be organized in ordered collections, but the ordering of tensors in sets "
            "will change between runs. Please use a list instead."
        )
    listed = list(given)
    pairs = [isinstance(one, tuple) for one in listed]
    if not any(pairs):
        return listed, None
    if not all(pairs):
        raise ValueError("all optimizer params should be with/without names. Some param names are missing")
    return [one[1] for one in listed], [one[0] for one in listed]


def _added(hooks: Hooks, hook: Callable[..., Any], prepend: bool) -> RemovableHandle:
    handle = RemovableHandle.add(hooks, hook)
    if prepend:
        hooks.move_to_end(handle.id, last=False)
    return handle


def _fitted(param: Any, value: Any, number: int, groups: list[dict[Any, Any]], key: Any = None) -> Any:
    """Bring the tensors in a parameter's loaded state, however nested, to the parameter's dtype and device."""
    if isinstance(value, Tensor):
        return Optimizer._process_value_according_to_param_policy(param, value, number, groups, key)
    if isinstance(value, dict):
        return {name: _fitted(param, one, number, groups, name) for name, one in value.items()}
    if isinstance(value, Iterable) and not isinstance(value, str):
        return type(value)(_fitted(param, one, number, groups) for one in value)  # type: ignore[call-arg]
    return value


# ---- what optimizers written for torch import from here beside the class: questions and small conversions ----
_foreach_supported_types: list[type] = [Tensor, Parameter]
_params_doc = "params: the parameters to optimize, or groups of them"
_foreach_doc = "foreach: accepted; every step takes all parameters at once"
_fused_doc = "fused: accepted; every step is as quick as it can be"
_capturable_doc = "capturable: accepted; there are no graphs of CUDA's here"
_differentiable_doc = "differentiable: whether autograd follows the step"
_maximize_doc = "maximize: go up instead of down"


def _get_value(x: Any) -> Any:
    """Return a number for a tensor of one."""
    return x.item() if isinstance(x, Tensor) else x


def _to_scalar(x: Any) -> Any:
    """Return a tensor of one number without dimensions; what is no tensor as it is."""
    return x.squeeze() if isinstance(x, Tensor) and x.dim() else x


def _stack_if_compiling(x: Any) -> Any:
    """Return a value as it is: nothing is compiled."""
    return x


def _view_as_real(params: list[Any], *state_and_grads: list[Any]) -> None:
    """Put real views in the place of complex parameters and of what belongs to them."""
    from ..tensor._functions.complex_views import view_as_real

    for at, param in enumerate(params):
        if param.is_complex():
            for values in (params, *state_and_grads):
                values[at] = view_as_real(values[at])


def _default_to_fused_or_foreach(
    params: Sequence[Any], differentiable: bool, use_fused: bool = False
) -> tuple[bool, bool]:
    """Return torch's choice for (fused, foreach), which depends on where the parameters are."""
    if differentiable:
        return False, False
    fused = use_fused and all(type(p) in _foreach_supported_types and p.is_floating_point() for p in params)
    return fused, not fused and all(type(p) in _foreach_supported_types and p.is_cuda for p in params)


def _get_capturable_supported_devices(supports_xla: bool = True) -> list[str]:
    """Return the kinds of devices whose work torch can capture."""
    return ["cuda", "xpu", "hpu", "privateuseone", *(["xla"] if supports_xla else [])]


def _disable_dynamo_if_unsupported(single_tensor_fn: Any = None) -> Callable[[Any], Any]:
    """Return a decorator that leaves a function as it is."""
    return lambda function: function


def _device_dtype_check_for_fused(p: Any, cuda_unsupported: bool = False) -> None:
    """Refuse parameters that torch's fused steps refuse."""
    if not p.is_floating_point():
        raise RuntimeError(
            "`fused=True` requires all the params to be floating point Tensors of supported devices: "
            "['mps', 'cuda', 'xpu', 'hpu', 'cpu', 'mtia', 'privateuseone'] but "
            f"{p.dtype} and {p.device.type}"
        )


StateDict = dict[str, Any]  # what `state_dict` returns

__all__ = ["Optimizer", "register_optimizer_step_post_hook", "register_optimizer_step_pre_hook"]


guard_methods(Optimizer, "__init__", "add_param_group", "load_state_dict")
