"""nn.Module: the base of every layer and model."""

from __future__ import annotations

import weakref
from collections import OrderedDict
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, NamedTuple, Self

from ..._modes import using
from ..._settings import typename
from ..._tracebacks import guard_methods, guard_own, hide
from ..._warnings import warn
from ...autograd.graph import RemovableHandle
from ...tensor import _base
from ...tensor._functions.creation import empty_like
from ...tensor._tensor import Tensor
from ...utils.hooks import BackwardHook
from ..parameter import Buffer, Parameter, make_parameter
from ._error_places import tell_place

Hooks = OrderedDict[int, Callable[..., Any]]
_global_forward_hooks: Hooks = OrderedDict()
_global_forward_hooks_with_kwargs: dict[int, bool] = OrderedDict()
_global_forward_hooks_always_called: dict[int, bool] = OrderedDict()
_global_forward_pre_hooks: Hooks = OrderedDict()
_global_backward_hooks: Hooks = OrderedDict()
_global_backward_pre_hooks: Hooks = OrderedDict()
_global_is_full_backward_hook: bool | None = None
# Called with (module, name, value) for everything that is registered; a value it returns takes the given one's place.
_global_parameter_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_buffer_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_global_module_registration_hooks: OrderedDict[int, Callable[..., Any]] = OrderedDict()
_EXTRA_STATE_KEY_SUFFIX = "_extra_state"


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


class _Keys(NamedTuple):
    missing_keys: list[str]
    unexpected_keys: list[str]


class _IncompatibleKeys(_Keys):
    """What load_state_dict returns."""

    __slots__ = ()

    def __repr__(self) -> str:
        if not self.missing_keys and not self.unexpected_keys:
            return "<All keys matched successfully>"
        return f"_IncompatibleKeys(missing_keys={self.missing_keys!r}, unexpected_keys={self.unexpected_keys!r})"


class _WrappedHook:
    """A hook before loading, called with its module or without; pickled as torch's class of this name."""

    def __init__(self, hook: Any, module: Any = None) -> None:
        self.hook = hook
        self.with_module = module is not None
        self.module = None if module is None else weakref.ref(module)

    def __call__(self, module: Any, *args: Any) -> Any:
        return self.hook(module, *args) if self.with_module else self.hook(*args)

    def __getstate__(self) -> dict[str, Any]:
        state = {"hook": self.hook, "with_module": self.with_module}
        return state if self.module is None else {**state, "module": self.module()}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.hook, self.with_module = state["hook"], state["with_module"]
        self.module = weakref.ref(state["module"]) if state.get("module") is not None else None


def _settled(hooks: dict[int, Callable[..., Any]], module: Any, name: str, value: Any) -> Any:
    for hook in hooks.values():
        replacement = hook(module, name, value)
        if replacement is not None:
            value = replacement
    return value


def _not_a_module(given: Any) -> str:
    """Say what to give instead of a class of modules or a function."""
    if isinstance(given, type) and issubclass(given, Module):
        return f"\nHint: {given.__name__} is a class; make a module of it: {given.__name__}()."
    return "\nHint: a function is called in forward(), or stands in a module of its own." if callable(given) else ""


def _before_init(what: str) -> AttributeError:
    """Build the error for an assignment to a module that has not been set up."""
    return AttributeError(
        f"cannot assign {what} before Module.__init__() call\nHint: begin the module's __init__ with super().__init__()."
    )


def _forward_hint(module: Any) -> str:
    """Say how to call what has no forward, or which of its methods may be a misspelled one."""
    from .container import ModuleDict, ModuleList

    if isinstance(module, (ModuleDict, ModuleList)):
        kept = "list" if isinstance(module, ModuleList) else "dictionary"
        return f"\nHint: it is a {kept} of modules: call them one by one. nn.Sequential calls its own in turn."
    import difflib  # when somebody reads the message

    close = difflib.get_close_matches("forward", vars(type(module)), n=1, cutoff=0.75)
    return f"\nHint: {type(module).__name__} has {close[0]}; did you mean forward?" if close else ""


def _prefix_hint(missing: list[str], unexpected: list[str]) -> str:
    """Say how to come by the names of a state dict that was saved from a wrapper around the model."""
    prefix = unexpected[0].partition(".")[0] + "." if unexpected else ""
    if not missing or {f"{prefix}{key}" for key in missing} != set(unexpected):
        return ""
    return (
        f"\nHint: the names in the state_dict begin with '{prefix}', as those of a model inside of another do (DataParallel, "
        f"torch.compile): load {{k.removeprefix('{prefix}'): v for k, v in state_dict.items()}}."
    )


class Module:
    """A piece of a model: parameters, buffers, submodules, and a `forward` that computes with them.

    Example:
        >>> class Affine(nn.Module):
        ...     def __init__(self, size):
        ...         super().__init__()
        ...         self.scale = nn.Parameter(torch.ones(size))
        ...         self.shift = nn.Parameter(torch.zeros(size))
        ...
        ...     def forward(self, x):
        ...         return x * self.scale + self.shift
        >>> model = Affine(2)
        >>> model(torch.tensor([1.0, 2.0]))
        tensor([1., 2.], grad_fn=<AddBackward0>)
        >>> [name for name, _ in model.named_parameters()]
        ['scale', 'shift']
    """

    dump_patches = False
    call_super_init = False
    _version = 1
    training: bool
    _parameters: dict[str, Any]
    _buffers: dict[str, Any]
    _modules: dict[str, Any]
    _non_persistent_buffers_set: set[str]
    _forward_hooks: Hooks
    _forward_hooks_with_kwargs: dict[int, bool]
    _forward_hooks_always_called: dict[int, bool]
    _forward_pre_hooks: Hooks
    _forward_pre_hooks_with_kwargs: dict[int, bool]
    _backward_hooks: Hooks
    _backward_pre_hooks: Hooks
    _is_full_backward_hook: bool | None
    _state_dict_hooks: OrderedDict[int, Any]
    _state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_pre_hooks: OrderedDict[int, Any]
    _load_state_dict_post_hooks: OrderedDict[int, Any]

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        if not self.call_super_init and (args or kwargs):
            name = type(self).__name__
            if kwargs:
                raise TypeError(f"{name}.__init__() got an unexpected keyword argument '{next(iter(kwargs))}'")
            raise TypeError(f"{name}.__init__() takes 1 positional argument but {len(args) + 1} were given")
        own = self.__dict__
        own["training"] = True
        own["_parameters"] = {}
        own["_buffers"] = {}
        own["_non_persistent_buffers_set"] = set()
        own["_backward_pre_hooks"] = OrderedDict()
        own["_backward_hooks"] = OrderedDict()
        own["_is_full_backward_hook"] = None
        own["_forward_hooks"] = OrderedDict()
        own["_forward_hooks_with_kwargs"] = OrderedDict()
        own["_forward_hooks_always_called"] = OrderedDict()
        own["_forward_pre_hooks"] = OrderedDict()
        own["_forward_pre_hooks_with_kwargs"] = OrderedDict()
        own["_state_dict_hooks"] = OrderedDict()
        own["_state_dict_pre_hooks"] = OrderedDict()
        own["_load_state_dict_pre_hooks"] = OrderedDict()
        own["_load_state_dict_post_hooks"] = OrderedDict()
        own["_modules"] = {}
        if self.call_super_init:
            super().__init__(*args, **kwargs)

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)

    # ---- registration ----
    def _check_name(self, what: str, name: Any) -> None:
        if not isinstance(name, str):
            raise TypeError(f"{what} name should be a string. Got {typename(name)}")
        if "." in name:
            said = (
                f'{what} name can\'t contain ".", got: {name}'
                if what == "module"
                else f'{what} name can\'t contain "."'
            )
            raise KeyError(said)
        if name == "":
            raise KeyError(f'{what} name can\'t be empty string ""')

    def _refuse_taken(self, name: str, members: dict[str, Any]) -> None:
        if hasattr(self, name) and name not in members:
            raise KeyError(f"attribute '{name}' already exists")

    def register_parameter(self, name: str, param: Any) -> None:
        """Add a parameter, or None for one that the module does not have."""
        if "_parameters" not in self.__dict__:
            raise _before_init("parameter")
        self._check_name("parameter", name)
        self._refuse_taken(name, self._parameters)
        if param is not None:
            if not isinstance(param, Parameter):
                raise TypeError(
                    f"cannot assign '{typename(param)}' object to parameter '{name}' (torch.nn.Parameter or None required)"
                )
            if param.grad_fn is not None:
                raise ValueError(
                    f"Cannot assign non-leaf Tensor to parameter '{name}'. Model parameters must be created explicitly. To "
                    f"express '{name}' as a function of another Tensor, compute the value in the forward() method."
                )
            param = _settled(_global_parameter_registration_hooks, self, name, param)
        self._parameters[name] = param

    def register_buffer(self, name: str, tensor: Any, persistent: bool = True) -> None:
        """Add a tensor that is no parameter; unless it is persistent, the state_dict leaves it out.

        Args:
            name: the name
            tensor: the tensor, or None
            persistent: whether it is part of `state_dict()`

        Example:
            >>> module = nn.Module()
            >>> module.register_buffer("mean", torch.zeros(2))
            >>> module.mean
            tensor([0., 0.])
        """
        if "_buffers" not in self.__dict__:
            raise _before_init("buffer")
        self._check_name("buffer", name)
        self._refuse_taken(name, self._buffers)
        if tensor is not None and not isinstance(tensor, Tensor):
            raise TypeError(
                f"cannot assign '{typename(tensor)}' object to buffer '{name}' (torch Tensor or None required)"
            )
        self._buffers[name] = _settled(_global_buffer_registration_hooks, self, name, tensor)
        if persistent:
            self._non_persistent_buffers_set.discard(name)
        else:
            self._non_persistent_buffers_set.add(name)

    def add_module(self, name: str, module: Any) -> None:
        """Add a submodule under a name."""
        if module is not None and not isinstance(module, Module):
            raise TypeError(f"{typename(module)} is not a Module subclass{_not_a_module(module)}")
        if not isinstance(name, str):
            raise TypeError(f"module name should be a string. Got {typename(name)}")
        if hasattr(self, name) and name not in self._modules:
            raise KeyError(f"attribute '{name}' already exists")
        self._check_name("module", name)
        self._modules[name] = _settled(_global_module_registration_hooks, self, name, module)

    register_module = add_module

    # ---- attributes ----
    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        for members in ("_parameters", "_buffers", "_modules"):
            found = own.get(members)
            if found is not None and name in found:
                return found[name]
        # With its name and object, Python says what the user may have meant. `hide` would make hasattr() three times as slow.
        raise AttributeError(f"'{type(self).__name__}' object has no attribute '{name}'", name=name, obj=self)

    def __setattr__(self, name: str, value: Any) -> None:
        try:
            own = self.__dict__
            if isinstance(value, Parameter):
                if "_parameters" not in own:
                    raise _before_init("parameters")
                _forget(name, own, self._buffers, self._modules, self._non_persistent_buffers_set)
                self.register_parameter(name, value)
                return
            parameters = own.get("_parameters")
            if parameters is not None and name in parameters:
                if value is not None:
                    raise TypeError(
                        f"cannot assign '{typename(value)}' as parameter '{name}' (torch.nn.Parameter or None expected)"
                    )
                self.register_parameter(name, value)
                return
            modules = own.get("_modules")
            if isinstance(value, Module):
                if modules is None:
                    raise _before_init("module")
                _forget(name, own, self._parameters, self._buffers, self._non_persistent_buffers_set)
                modules[name] = _settled(_global_module_registration_hooks, self, name, value)
                return
            if modules is not None and name in modules:
                if value is not None:
                    raise TypeError(
                        f"cannot assign '{typename(value)}' as child module '{name}' (torch.nn.Module or None expected)"
                    )
                modules[name] = _settled(_global_module_registration_hooks, self, name, value)
                return
            self._set_other(name, value, own)
        except Exception as error:
            hide(error)
            raise

    def _set_other(self, name: str, value: Any, own: dict[str, Any]) -> None:
        """Set a buffer or an ordinary attribute."""
        buffers = own.get("_buffers")
        if isinstance(value, Buffer) or (buffers is not None and name in buffers):
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(
                    f"cannot assign '{typename(value)}' as buffer '{name}' (torch.nn.Buffer, torch.Tensor or None "
                    "expected)"
                )
            if buffers is None:
                raise _before_init("buffer")
            if isinstance(value, Buffer):
                _forget(name, own, self._parameters, self._modules)
                persistent = getattr(value, "persistent", True)
            else:
                persistent = name not in self._non_persistent_buffers_set
            if name in buffers:
                buffers[name] = _settled(_global_buffer_registration_hooks, self, name, value)
            self.register_buffer(name, value, persistent)
            return
        object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        for members in (self._parameters, self._buffers, self._modules):
            if name in members:
                del members[name]
                self._non_persistent_buffers_set.discard(name)
                return
        object.__delattr__(self, name)

    def __dir__(self) -> list[str]:
        names = {*dir(type(self)), *self.__dict__, *self._parameters, *self._modules, *self._buffers}
        return sorted(name for name in names if not name[0].isdigit())

    # ---- traversal ----
    def _named_members(
        self,
        get_members_fn: Callable[[Any], Any],
        prefix: str = "",
        recurse: bool = True,
        remove_duplicate: bool = True,
    ) -> Iterator[tuple[str, Any]]:
        seen: set[Any] = set()
        modules = self.named_modules(prefix=prefix, remove_duplicate=remove_duplicate) if recurse else [(prefix, self)]
        for path, module in modules:
            for name, member in get_members_fn(module):
                if member is None or id(member) in seen:
                    continue
                if remove_duplicate:
                    seen.add(id(member))
                yield f"{path}.{name}" if path else name, member

    def named_parameters(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield every parameter with its path.

        Args:
            prefix: what stands before the names
            recurse: also those of submodules
            remove_duplicate: a parameter that is used twice comes once

        Example:
            >>> [name for name, _ in nn.Sequential(nn.Linear(3, 2)).named_parameters()]
            ['0.weight', '0.bias']
        """
        yield from self._named_members(lambda m: m._parameters.items(), prefix, recurse, remove_duplicate)

    def parameters(self, recurse: bool = True) -> Iterator[Any]:
        """Yield every parameter.

        Args:
            recurse: also those of submodules

        Example:
            >>> sum(p.numel() for p in nn.Linear(3, 2).parameters())
            8
        """
        for _, parameter in self.named_parameters(recurse=recurse):
            yield parameter

    def named_buffers(
        self, prefix: str = "", recurse: bool = True, remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield every buffer with its path."""
        yield from self._named_members(lambda m: m._buffers.items(), prefix, recurse, remove_duplicate)

    def buffers(self, recurse: bool = True) -> Iterator[Any]:
        """Yield every buffer."""
        for _, buffer in self.named_buffers(recurse=recurse):
            yield buffer

    def named_children(self) -> Iterator[tuple[str, Any]]:
        """Yield the immediate submodules with their names, each once."""
        seen: set[Any] = set()
        for name, module in self._modules.items():
            if module is not None and module not in seen:
                seen.add(module)
                yield name, module

    def children(self) -> Iterator[Any]:
        """Yield the immediate submodules."""
        for _, module in self.named_children():
            yield module

    def named_modules(
        self, memo: set[Any] | None = None, prefix: str = "", remove_duplicate: bool = True
    ) -> Iterator[tuple[str, Any]]:
        """Yield this module and all below it with their paths, each once by default."""
        memo = set() if memo is None else memo
        if self in memo:
            return
        if remove_duplicate:
            memo.add(self)
        yield prefix, self
        for name, module in self._modules.items():
            if module is not None:
                yield from module.named_modules(memo, f"{prefix}.{name}" if prefix else name, remove_duplicate)

    def modules(self, remove_duplicate: bool = True) -> Iterator[Any]:
        """Yield this module and all below it."""
        for _, module in self.named_modules(remove_duplicate=remove_duplicate):
            yield module

    # ---- by path ----
    def get_submodule(self, target: str) -> Any:
        """Return the submodule at a path such as `net.conv`."""
        module: Any = self
        if target == "":
            return module
        for name in target.split("."):
            if not hasattr(module, name):
                raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
            module = getattr(module, name)
            if not isinstance(module, Module):
                raise AttributeError(f"`{name}` is not an nn.Module")
        return module

    def set_submodule(self, target: str, module: Any, strict: bool = False) -> None:
        """Put a module at a path; `strict` demands that there is one already."""
        if target == "":
            raise ValueError("Cannot set the submodule without a target name!")
        path, _, name = target.rpartition(".")
        if not isinstance(module, Module):
            raise ValueError(f"`module` is not an nn.Module, found {type(module)}")
        parent = self.get_submodule(path)
        if strict and not hasattr(parent, name):
            raise AttributeError(f"{parent._get_name()} has no attribute `{name}`")
        if hasattr(parent, name) and not isinstance(getattr(parent, name), Module):
            raise AttributeError(f"`{name}` is not an nn.Module")
        setattr(parent, name, module)

    def _member_at(self, target: str) -> tuple[Any, str]:
        path, _, name = target.rpartition(".")
        module = self.get_submodule(path)
        if not hasattr(module, name):
            raise AttributeError(f"{module._get_name()} has no attribute `{name}`")
        return module, name

    def get_parameter(self, target: str) -> Any:
        """Return the parameter at a path."""
        module, name = self._member_at(target)
        found = getattr(module, name)
        if not isinstance(found, Parameter):
            raise AttributeError(f"`{name}` is not an nn.Parameter")
        return found

    def get_buffer(self, target: str) -> Any:
        """Return the buffer at a path."""
        module, name = self._member_at(target)
        if name not in module._buffers:
            raise AttributeError(f"`{name}` is not a buffer")
        return getattr(module, name)

    # ---- printing ----
    def _get_name(self) -> str:
        return type(self).__name__

    def extra_repr(self) -> str:
        """Return what stands in the parentheses of a module without submodules."""
        return ""

    def __repr__(self) -> str:
        extra = self.extra_repr().split("\n") if self.extra_repr() else []
        children = []
        for name, module in self._modules.items():
            first, *rest = repr(module).split("\n")
            children.append("\n".join([f"({name}): {first}", *(f"  {line}" for line in rest)]))
        if not children and len(extra) <= 1:
            return f"{self._get_name()}({''.join(extra)})"
        return "\n".join([f"{self._get_name()}(", *(f"  {line}" for line in (*extra, *children)), ")"])

    # ---- calls and hooks ----
    if TYPE_CHECKING:
        forward: Callable[..., Any]  # of any signature
    else:

        def forward(self, *input: Any) -> Any:
            """Compute the module's output; every subclass defines it."""
            raise NotImplementedError(
                f'Module [{type(self).__name__}] is missing the required "forward" function{_forward_hint(self)}'
            )

    def __init_subclass__(cls, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        guard_own(cls, "__init__")
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
            hide(error)
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
        """Call `hook(module, args, output)` after forward; what it returns takes the place of the output.

        Example:
            >>> layer = nn.Linear(3, 2)
            >>> handle = layer.register_forward_hook(lambda module, args, out: print(tuple(out.shape)))
            >>> _ = layer(torch.ones(5, 3))
            (5, 2)
            >>> handle.remove()
        """
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

    # ---- state_dict and load_state_dict ----
    def get_extra_state(self) -> Any:
        """Return what else the state_dict shall hold; to be overridden together with `set_extra_state`."""
        raise RuntimeError(
            "Reached a code path in Module.get_extra_state() that should never be called.\nHint: a subclass that has extra state "
            "overrides get_extra_state() and set_extra_state()."
        )

    def set_extra_state(self, state: Any) -> None:
        """Take what `get_extra_state` returned."""
        raise RuntimeError(
            "Reached a code path in Module.set_extra_state() that should never be called.\nHint: a subclass that has extra state "
            "overrides get_extra_state() and set_extra_state()."
        )

    def _has_extra_state(self, method: str) -> bool:
        return getattr(type(self), method) is not getattr(Module, method)

    # ---- hooks ----
    def register_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, local_metadata)` after the state was collected."""
        hook._from_public_api = True
        return RemovableHandle.add(self._state_dict_hooks, hook)

    def _register_state_dict_hook(self, hook: Any) -> RemovableHandle:
        if getattr(hook, "_from_public_api", False):
            raise RuntimeError(
                "Cannot register the same function as the state dict post hook that was previously registered via "
                "register_state_dict_post_hook"
            )
        return RemovableHandle.add(self._state_dict_hooks, hook)

    def register_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, prefix, keep_vars)` before the state is collected."""
        return RemovableHandle.add(self._state_dict_pre_hooks, hook)

    def _register_load_state_dict_pre_hook(self, hook: Any, with_module: bool = False) -> RemovableHandle:
        return RemovableHandle.add(self._load_state_dict_pre_hooks, _WrappedHook(hook, self if with_module else None))

    def register_load_state_dict_pre_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, state_dict, prefix, ...)` before this module's state is loaded."""
        return self._register_load_state_dict_pre_hook(hook, with_module=True)

    def register_load_state_dict_post_hook(self, hook: Any) -> RemovableHandle:
        """Call `hook(module, incompatible_keys)` after the state was loaded."""
        return RemovableHandle.add(self._load_state_dict_post_hooks, hook)

    # ---- saving ----
    def _save_to_state_dict(self, destination: Any, prefix: str, keep_vars: bool) -> None:
        for name, parameter in self._parameters.items():
            if parameter is not None:
                destination[prefix + name] = parameter if keep_vars else parameter.detach()
        for name, buffer in self._buffers.items():
            if buffer is not None and name not in self._non_persistent_buffers_set:
                destination[prefix + name] = buffer if keep_vars else buffer.detach()
        if self._has_extra_state("get_extra_state"):
            destination[prefix + _EXTRA_STATE_KEY_SUFFIX] = self.get_extra_state()

    def state_dict(self, *args: Any, destination: Any = None, prefix: str = "", keep_vars: bool = False) -> Any:
        """Collect parameters and persistent buffers by path; `keep_vars` keeps them in the graph.

        Example:
            >>> list(nn.BatchNorm1d(2).state_dict())
            ['weight', 'bias', 'running_mean', 'running_var', 'num_batches_tracked']
        """
        if args:  # torch's old order of arguments
            given = (*args, *(destination, prefix, keep_vars)[len(args) :])
            destination, prefix, keep_vars = given[0], given[1], given[2]
        if destination is None:
            destination = OrderedDict()
            destination._metadata = OrderedDict()
        local = {"version": self._version}
        if hasattr(destination, "_metadata"):
            destination._metadata[prefix[:-1]] = local
        for hook in self._state_dict_pre_hooks.values():
            hook(self, prefix, keep_vars)
        self._save_to_state_dict(destination, prefix, keep_vars)
        for name, module in self._modules.items():
            if module is not None:
                module.state_dict(destination=destination, prefix=f"{prefix}{name}.", keep_vars=keep_vars)
        for hook in self._state_dict_hooks.values():
            result = hook(self, destination, prefix, local)
            if getattr(hook, "_from_public_api", False):
                if result is not None:
                    raise RuntimeError("state_dict post-hook must return None")
            elif result is not None:
                destination = result
        return destination

    # ---- loading ----
    def _load_from_state_dict(
        self,
        state_dict: Any,
        prefix: str,
        local_metadata: Any,
        strict: bool,
        missing_keys: list[str],
        unexpected_keys: list[str],
        error_msgs: list[str],
    ) -> None:
        for hook in self._load_state_dict_pre_hooks.values():
            hook(self, state_dict, prefix, local_metadata, strict, missing_keys, unexpected_keys, error_msgs)
        persistent = {n: b for n, b in self._buffers.items() if n not in self._non_persistent_buffers_set}
        own = {n: v for n, v in (*self._parameters.items(), *persistent.items()) if v is not None}
        for name, target in own.items():
            key = prefix + name
            if key in state_dict:
                self._load_one(
                    name, key, target, state_dict[key], bool(local_metadata.get("assign_to_params_buffers")), error_msgs
                )
            elif strict:
                missing_keys.append(key)
        extra = prefix + _EXTRA_STATE_KEY_SUFFIX
        if self._has_extra_state("set_extra_state"):
            if extra in state_dict:
                self.set_extra_state(state_dict[extra])
            elif strict:
                missing_keys.append(extra)
        elif strict and extra in state_dict:
            unexpected_keys.append(extra)
        if strict:
            for key in state_dict:
                if key.startswith(prefix) and key != extra:
                    first, *rest = key[len(prefix) :].split(".", 1)
                    if (rest and first not in self._modules) or (not rest and first not in own):
                        unexpected_keys.append(key)

    def _load_one(self, name: str, key: str, target: Any, given: Any, assign: bool, error_msgs: list[str]) -> None:
        if not isinstance(given, Tensor):
            error_msgs.append(
                f'While copying the parameter named "{key}", expected torch.Tensor or Tensor-like object from checkpoint but '
                f"received {type(given)}"
            )
            return
        lazy = getattr(target, "_is_lazy", False)
        if not lazy and target.dim() == 0 and given.dim() == 1 and given.numel():
            given = given.select(0, 0)  # torch before 0.4 saved scalars so
        if not lazy and given.shape != target.shape:
            error_msgs.append(
                f"size mismatch for {key}: copying a param with shape {given.shape} from checkpoint, the shape in current "
                f"model is {target.shape}."
            )
            return
        if not assign and target.is_meta and not given.is_meta:
            warn(
                f"for {key}: copying from a non-meta parameter in the checkpoint to a meta parameter in the current model, "
                "which is a no-op. (Did you mean to pass `assign=True` to assign items in the state dictionary to their "
                "corresponding key in the module instead of copying them in place?)"
            )
        try:
            with using(grad=False):
                if not assign:
                    target.copy_(given)
                    return
            if isinstance(target, Parameter) and not isinstance(given, Parameter):
                given = make_parameter(given, target.requires_grad)
            elif isinstance(given, Parameter):
                given.requires_grad_(target.requires_grad)
            setattr(self, name, given)
        except Exception as error:
            action = "assigning" if assign else "copying"
            error_msgs.append(
                f'While {action} the parameter named "{key}", whose dimensions in the model are {target.size()} and whose '
                f"dimensions in the checkpoint are {given.size()}, an exception occurred : {error.args}."
            )

    def load_state_dict(self, state_dict: Any, strict: bool = True, assign: bool = False) -> _IncompatibleKeys:
        """Copy a state_dict into parameters and buffers; `assign` puts its tensors in their place instead.

        Example:
            >>> source, target = nn.Linear(2, 1), nn.Linear(2, 1)
            >>> target.load_state_dict(source.state_dict())
            <All keys matched successfully>
            >>> torch.equal(source.weight, target.weight)
            True
        """
        if not isinstance(state_dict, Mapping):
            raise TypeError(f"Expected state_dict to be dict-like, got {type(state_dict)}.")
        missing: list[str] = []
        unexpected: list[str] = []
        errors: list[str] = []
        metadata = getattr(state_dict, "_metadata", None)
        state = OrderedDict(state_dict)
        if metadata is not None:
            state._metadata = metadata  # type: ignore[attr-defined]

        def load(module: Any, given: Any, prefix: str) -> None:
            local = {} if metadata is None else metadata.get(prefix[:-1], {})
            if assign:
                local["assign_to_params_buffers"] = assign
            module._load_from_state_dict(given, prefix, local, True, missing, unexpected, errors)
            for name, child in module._modules.items():
                if child is not None:
                    below = f"{prefix}{name}."
                    load(child, OrderedDict((k, v) for k, v in given.items() if k.startswith(below)), below)
            incompatible = _IncompatibleKeys(missing, unexpected)
            for hook in module._load_state_dict_post_hooks.values():
                if hook(module, incompatible) is not None:
                    raise AssertionError(
                        "Hooks registered with ``register_load_state_dict_post_hook`` are not expected to return new "
                        "values, if incompatible_keys need to be modified, it should be done inplace."
                    )

        load(self, state, "")
        if strict:
            for what, keys in (("Unexpected", unexpected), ("Missing", missing)):
                if keys:
                    listed = ", ".join(f'"{key}"' for key in keys)
                    errors.insert(0, f"{what} key(s) in state_dict: {listed}. ")
        if errors:
            listed = "\n\t".join(errors) + _prefix_hint(missing, unexpected)
            raise RuntimeError(f"Error(s) in loading state_dict for {type(self).__name__}:\n\t{listed}")
        return _IncompatibleKeys(missing, unexpected)

    # ---- modes ----
    def train(self, mode: bool = True) -> Self:
        """Put this module and all below it into training mode, or out of it.

        Args:
            mode: False is `eval()`

        Example:
            >>> layer = nn.Dropout()
            >>> layer.training, layer.eval().training
            (True, False)
        """
        if not isinstance(mode, bool):
            raise ValueError("training mode is expected to be boolean")
        self.training = mode
        for module in self.children():
            module.train(mode)
        return self

    def eval(self) -> Self:
        """Put this module and all below it into evaluation mode."""
        return self.train(False)

    def requires_grad_(self, requires_grad: bool = True) -> Self:
        """Say whether the parameters require grad."""
        for parameter in self.parameters():
            parameter.requires_grad_(requires_grad)
        return self

    def zero_grad(self, set_to_none: bool = True) -> None:
        """Forget the gradients of all parameters, or set them to zero.

        Args:
            set_to_none: gradients become None; else zeros

        Example:
            >>> layer = nn.Linear(2, 1)
            >>> layer(torch.ones(2)).backward()
            >>> layer.zero_grad()
            >>> layer.weight.grad is None
            True
        """
        for parameter in self.parameters():
            if parameter.grad is None:
                continue
            if set_to_none:
                parameter.grad = None
            else:
                if parameter.grad.grad_fn is not None:
                    parameter.grad.detach_()
                else:
                    parameter.grad.requires_grad_(False)
                parameter.grad.zero_()

    def apply(self, fn: Callable[[Any], Any]) -> Self:
        """Call a function on every module below, then on this one.

        Args:
            fn: a function of a module

        Example:
            >>> _ = nn.Sequential(nn.ReLU(), nn.Tanh()).apply(lambda module: print(type(module).__name__))
            ReLU
            Tanh
            Sequential
        """
        for module in self.children():
            module.apply(fn)
        fn(self)
        return self

    # ---- moving and casting ----
    def _apply(self, fn: Callable[[Any], Any], recurse: bool = True) -> Self:
        """Replace every parameter, gradient and buffer by what a function makes of it; parameters keep their identity."""
        if recurse:
            for module in self.children():
                module._apply(fn)
        for name, parameter in self._parameters.items():
            if parameter is None:
                continue
            grad = parameter.grad
            with using(grad=False):
                made = fn(parameter)
            if made is not parameter:
                alike = made.dtype.is_complex == parameter.dtype.is_complex and made.is_meta == parameter.is_meta
                if type(made) in _base.dispatch_types and type(made) is type(parameter):  # what it wraps has changed
                    from ...utils._swapping import swap_tensors

                    swap_tensors(parameter, make_parameter(made, parameter.requires_grad))
                elif alike and type(made) in (type(parameter), type(parameter.data)):
                    parameter.data = made
                else:
                    self._parameters[name] = parameter = make_parameter(made, parameter.requires_grad)
            if grad is not None:
                with using(grad=False):
                    parameter.grad = fn(grad).requires_grad_(grad.requires_grad)
        for name, buffer in self._buffers.items():
            if buffer is not None:
                self._buffers[name] = fn(buffer)
        return self

    def to(self, *args: Any, **kwargs: Any) -> Self:
        """Move and cast parameters and buffers; a dtype applies to floating-point and complex ones."""
        device, dtype, non_blocking, memory_format = _parse_to(args, kwargs)
        if dtype is not None and not (dtype.is_floating_point or dtype.is_complex):
            raise TypeError(
                f"nn.Module.to only accepts floating point or complex dtypes, but got desired dtype={dtype}"
            )

        def convert(tensor: Any) -> Any:
            wanted = dtype if tensor.is_floating_point() or tensor.is_complex() else None
            order = {"memory_format": memory_format} if memory_format is not None and tensor.dim() in (4, 5) else {}
            if tensor.is_meta and device is not None and device.type != "meta":
                raise NotImplementedError(
                    "Cannot copy out of meta tensor; no data! Please use torch.nn.Module.to_empty() instead of "
                    "torch.nn.Module.to() when moving module from meta to a different device."
                )
            return tensor.to(device=device, dtype=wanted, non_blocking=non_blocking, **order)

        return self._apply(convert)

    def _cast(self, method: str) -> Self:
        return self._apply(lambda t: getattr(t, method)() if t.is_floating_point() else t)

    def float(self) -> Self:
        """Cast floating-point parameters and buffers to float32."""
        return self._cast("float")

    def double(self) -> Self:
        """Cast floating-point parameters and buffers to float64."""
        return self._cast("double")

    def half(self) -> Self:
        """Cast floating-point parameters and buffers to float16."""
        return self._cast("half")

    def bfloat16(self) -> Self:
        """Cast floating-point parameters and buffers to bfloat16."""
        return self._cast("bfloat16")

    def type(self, dst_type: Any) -> Self:
        """Cast all parameters and buffers."""
        return self._apply(lambda t: t.type(dst_type))

    def cpu(self) -> Self:
        """Move parameters and buffers to the CPU."""
        return self._apply(lambda t: t.cpu())

    def cuda(self, device: Any = None) -> Self:
        """Move parameters and buffers to a CUDA device."""
        return self._apply(lambda t: t.cuda() if device is None else t.cuda(device))

    def xpu(self, device: Any = None) -> Self:
        """Move parameters and buffers to an XPU, which is not here."""
        return self._apply(lambda t: t.xpu(device))

    def mtia(self, device: Any = None) -> Self:
        """Move parameters and buffers to an MTIA device, which is not here."""
        return self._apply(lambda t: t.mtia(device))

    def ipu(self, device: Any = None) -> Self:
        """Move parameters and buffers to an IPU, which is not here."""
        return self._apply(lambda t: t.ipu(device))

    def to_empty(self, *, device: Any, recurse: bool = True) -> Self:
        """Move parameters and buffers to a device without copying their values."""
        return self._apply(lambda t: empty_like(t, device=device), recurse=recurse)

    def share_memory(self) -> Self:
        """Let other processes see parameters, gradients and buffers."""
        from ...tensor._storage.sharing import share

        tensors = [*self.parameters(), *self.buffers()]
        for one in tensors:
            if getattr(one, "_is_lazy", False):
                one.share_memory_()  # raises
        share([*tensors, *[one.grad for one in tensors if one.grad is not None]])
        return self

    def compile(self, *args: Any, **kwargs: Any) -> None:
        """Let calls of this module run compiled, as `torch.compile(module, ...)` does; the module stays what it is."""
        from ...compiler._module import CompiledForward

        if "forward" not in self.__dict__:
            self.__dict__["forward"] = CompiledForward(self, args, kwargs)


def _forget(name: str, *places: Any) -> None:
    """Remove a name from dictionaries and sets."""
    for place in places:
        if isinstance(place, set):
            place.discard(name)
        else:
            place.pop(name, None)


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Read torch's three forms of `to`: a device, a dtype, or a tensor to be like; and the memory format."""
    from ..._device import device as device_type
    from ..._dtypes import dtype as dtype_type

    device, dtype = kwargs.get("device"), kwargs.get("dtype")
    non_blocking = bool(kwargs.get("non_blocking", False))
    like = kwargs.get("tensor")
    for value in args:
        if isinstance(value, Tensor):
            like = value
        elif isinstance(value, dtype_type):
            dtype = value
        elif isinstance(value, bool):
            non_blocking = value
        elif value is not None:
            device = value
    if like is not None:
        device, dtype = like.device, like.dtype
    return None if device is None else device_type(device), dtype, non_blocking, kwargs.get("memory_format")


def _call_its_own(self: Any, *args: Any, **kwargs: Any) -> Any:
    """Call a module whose class has a `_call_impl` of its own."""
    try:
        return self._call_impl(*args, **kwargs)
    except Exception as error:
        hide(error)
        raise


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


def register_module_parameter_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, parameter)` whenever a module registers a parameter."""
    return RemovableHandle.add(_global_parameter_registration_hooks, hook)


def register_module_buffer_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, buffer)` whenever a module registers a buffer."""
    return RemovableHandle.add(_global_buffer_registration_hooks, hook)


def register_module_module_registration_hook(hook: Callable[..., Any]) -> RemovableHandle:
    """Call `hook(module, name, submodule)` whenever a module registers a submodule."""
    return RemovableHandle.add(_global_module_registration_hooks, hook)


__all__ = [
    "_EXTRA_STATE_KEY_SUFFIX",
    "Module",
    "_IncompatibleKeys",
    "_WrappedHook",
    "_global_backward_hooks",
    "_global_backward_pre_hooks",
    "_global_forward_hooks",
    "_global_forward_pre_hooks",
    "register_module_backward_hook",
    "register_module_buffer_registration_hook",
    "register_module_forward_hook",
    "register_module_forward_pre_hook",
    "register_module_full_backward_hook",
    "register_module_full_backward_pre_hook",
    "register_module_module_registration_hook",
    "register_module_parameter_registration_hook",
]


guard_methods(
    Module, "register_parameter", "register_buffer", "add_module", "get_submodule", "set_submodule", "get_parameter", "get_buffer",
    "load_state_dict", "to", "apply", "requires_grad_", "zero_grad", "register_full_backward_hook", "register_backward_hook",
    "type", "to_empty", "compile", "share_memory", "train",
)  # fmt: skip
