"""nn.Module: the base of every layer and model."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Self

from ..._modes import using
from ...autograd.graph import RemovableHandle
from ...tensor import _base
from ...tensor._functions.creation import empty_like
from ..parameter import make_parameter
from ._calling import (  # the tables of hooks for every module: libraries look for them here
    ModuleCalling,
    _global_backward_hooks,
    _global_backward_pre_hooks,
    _global_forward_hooks,
    _global_forward_pre_hooks,
    register_module_backward_hook,
    register_module_forward_hook,
    register_module_forward_pre_hook,
    register_module_full_backward_hook,
    register_module_full_backward_pre_hook,
)
from ._state import _EXTRA_STATE_KEY_SUFFIX, ModuleState, _IncompatibleKeys, _WrappedHook  # torch's files have the hook
from ._tree import (
    ModuleTree,
    _global_buffer_registration_hooks,
    _global_module_registration_hooks,
    _global_parameter_registration_hooks,
)


class Module(ModuleCalling, ModuleState, ModuleTree):
    """A piece of a model: parameters, buffers, submodules, and a `forward` that computes with them."""

    dump_patches = False
    call_super_init = False

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

    # ---- modes ----
    def train(self, mode: bool = True) -> Self:
        """Put this module and all below it into training mode, or out of it."""
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
        """Forget the gradients of all parameters, or set them to zero."""
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
        """Call a function on every module below, then on this one."""
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
        """Do nothing: modules run as they are."""


def _parse_to(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, Any, bool, Any]:
    """Read torch's three forms of `to`: a device, a dtype, or a tensor to be like; and the memory format."""
    from ..._device import device as device_type
    from ..._dtypes import dtype as dtype_type
    from ...tensor._tensor import Tensor

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
