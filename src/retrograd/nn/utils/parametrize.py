"""Parameters that are computed from others: `module.weight` becomes a function of what is learned."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from contextlib import ContextDecorator
from functools import partial
from typing import Any

from ..._modes import Block, using
from ..._public import set_all
from ..._tracebacks import guarded
from ...tensor._tensor import Tensor
from ..modules.container import ModuleDict, ModuleList
from ..parameter import Parameter, make_parameter

_open: dict[object, None] = {}  # the blocks that are running
_cache: dict[tuple[int, str], Any] = {}

NOT_PICKLED = (
    "Serialization of parametrized modules is only supported through state_dict(). See:\n"
    "https://pytorch.org/tutorials/beginner/saving_loading_models.html"
    "#saving-loading-a-general-checkpoint-for-inference-and-or-resuming-training"
)


def __getattr__(name: str) -> Any:
    if name == "_cache_enabled":  # how many blocks are open, which torch counts under this name
        return len(_open)
    raise AttributeError(f"module 'torch.nn.utils.parametrize' has no attribute '{name}'")


class cached(Block, ContextDecorator):  # noqa: N801 - torch's name
    """Compute every parametrized tensor at most once within a block."""

    def __enter__(self) -> None:
        if not _open:
            _cache.clear()  # of a block whose end was interrupted
        run = object()
        self._block_begin((partial(_open.setdefault, run),), (partial(_open.pop, run, None),))

    def _block_ended(self, entry: Any) -> None:
        if not _open:
            _cache.clear()


def _register(module: Any, name: str, tensor: Any) -> None:
    if isinstance(tensor, Parameter):
        module.register_parameter(name, tensor)
    else:
        module.register_buffer(name, tensor)


def _take_over(tensor: Any, value: Any) -> None:
    """Give a tensor another's memory; it stays the object that optimizers know."""
    if value is not tensor:
        tensor.data = value.data


class ParametrizationList(ModuleList):
    """The functions between what is learned and a parametrized tensor, and what is learned: `original`, or several."""

    def __init__(self, modules: Sequence[Any], original: Any, unsafe: bool = False) -> None:
        if not len(modules):
            raise ValueError("ParametrizationList requires one or more modules.")
        super().__init__(modules)
        self.unsafe = unsafe
        shape, dtype = original.shape, original.dtype
        new: Any = self._inverted(original)
        if not isinstance(new, (Tensor, Sequence)):
            raise ValueError(
                "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                f"Got {type(new).__name__}"
            )
        self.is_tensor = isinstance(new, Tensor)
        self.ntensors = 1 if self.is_tensor else len(new)
        if self.is_tensor:
            self._hold_one(original, new)
        else:
            self._hold_many(original, list(new))
        if not unsafe:
            self._check(shape, dtype)

    def _inverted(self, value: Any) -> Any:
        """Go through the right inverses from the last on; one that is missing counts as the identity."""
        with using(grad=False):
            for module in reversed(list(self)):
                if hasattr(module, "right_inverse"):
                    try:
                        value = module.right_inverse(value)
                    except NotImplementedError:
                        continue
        return value

    def _hold_one(self, original: Any, new: Any) -> None:
        for what in ("dtype", "device"):
            before, after = getattr(original, what), getattr(new, what)
            if before != after:
                raise ValueError(
                    f"When `right_inverse` outputs one tensor, it may not change the {what}.\n"
                    f"original.{what}: {before}\n"
                    f"right_inverse(original).{what}: {after}"
                )
        _take_over(original, new)
        _register(self, "original", original)

    def _hold_many(self, original: Any, new: Sequence[Any]) -> None:
        for k, one in enumerate(new):
            if not isinstance(one, Tensor):
                raise ValueError(
                    "'right_inverse' must return a Tensor or a Sequence of tensors (list, tuple...). "
                    f"Got element {k} of the sequence with type {type(one).__name__}."
                )
            if isinstance(original, Parameter):
                one = make_parameter(one, original.requires_grad)
            one.requires_grad_(original.requires_grad)
            _register(self, f"original{k}", one)

    def _check(self, shape: Any, dtype: Any) -> None:
        value = self()
        if not isinstance(value, Tensor):
            raise ValueError(f"A parametrization must return a tensor. Got {type(value).__name__}.")
        for what, before, after in (("dtype", dtype, value.dtype), ("shape", shape, value.shape)):
            if before != after:
                raise ValueError(
                    f"Registering a parametrization may not change the {what} of the tensor, unless `unsafe` flag is "
                    f"enabled.\nunparametrized {what}: {before}\nparametrized {what}: {after}"
                )

    def right_inverse(self, value: Any) -> None:
        """Set what is learned so that the parametrized tensor becomes a value."""
        with using(grad=False):
            for module in reversed(list(self)):
                if not hasattr(module, "right_inverse"):
                    raise RuntimeError(f"parametrization {type(module).__name__} does not implement right_inverse.")
                value = module.right_inverse(value)
            if self.is_tensor:
                self._set_one(value)
            else:
                self._set_many(value)

    def _set_one(self, value: Any) -> None:
        if not isinstance(value, Tensor):
            raise ValueError(f"`right_inverse` should return a tensor. Got {type(value).__name__}")
        if value.dtype != self.original.dtype:
            raise ValueError(
                f"The tensor returned by `right_inverse` has dtype {value.dtype} "
                f"while `original` has dtype {self.original.dtype}"
            )
        _take_over(self.original, value)

    def _set_many(self, values: Any) -> None:
        if not isinstance(values, Sequence):
            raise ValueError(f"'right_inverse' must return a sequence of tensors. Got {type(values).__name__}.")
        if len(values) != self.ntensors:
            raise ValueError(
                f"'right_inverse' must return a sequence of tensors of length {self.ntensors}. "
                f"Got a sequence of length {len(values)}."
            )
        for k, value in enumerate(values):
            own = getattr(self, f"original{k}")
            if not isinstance(value, Tensor):
                raise ValueError(
                    "'right_inverse' must return a sequence of tensors or reference-type opaques. "
                    f"Got element {k} of type {type(value).__name__}."
                )
            if own.dtype != value.dtype:
                raise ValueError(
                    f"Tensor {k} returned by `right_inverse` has dtype {value.dtype} "
                    f"while `original{k}` has dtype {own.dtype}"
                )
            _take_over(own, value)

    def _held(self) -> list[str]:
        return ["original"] if self.is_tensor else [f"original{k}" for k in range(self.ntensors)]

    def forward(self) -> Any:
        """Compute the parametrized tensor."""
        value = self[0](*(getattr(self, name) for name in self._held()))
        at = 1
        while hasattr(self, str(at)):  # the modules among the members, of which others may have other names
            value = self[at](value)
            at += 1
        return value


# ---- the class of a parametrized module ----
def _refuse_pickling(self: Any) -> Any:
    raise RuntimeError(NOT_PICKLED)


def _deepcopied(self: Any, memo: dict[int, Any]) -> Any:
    if id(self) not in memo:
        made = memo[id(self)] = object.__new__(type(self))
        made.__dict__ = copy.deepcopy(self.__dict__, memo)
    return memo[id(self)]


def _change_class(module: Any) -> None:
    """Put a class of its own between a module and its class, which can hold properties for this module alone."""
    cls = type(module)
    members: dict[str, Any] = {"__getstate__": _refuse_pickling}
    if not hasattr(cls, "__deepcopy__"):
        members["__deepcopy__"] = _deepcopied
    module.__class__ = type(f"Parametrized{cls.__name__}", (cls,), members)


def _add_property(module: Any, name: str) -> None:
    if hasattr(module, name):
        raise AssertionError(f"Module already has an attribute named '{name}'")

    def get(self: Any) -> Any:
        if not _open:
            return self.parametrizations[name]()
        key = (id(self), name)
        value = _cache.get(key)
        if value is None:
            value = _cache[key] = self.parametrizations[name]()
        return value

    def put(self: Any, value: Any) -> None:
        self.parametrizations[name].right_inverse(value)

    setattr(type(module), name, property(get, put))


# ---- registering and removing ----
@guarded
def register_parametrization(module: Any, tensor_name: str, parametrization: Any, *, unsafe: bool = False) -> Any:
    """Let `module.<tensor_name>` be what a parametrization makes of the tensor; `unsafe` lets it change shape and dtype."""
    parametrization.train(module.training)
    if is_parametrized(module, tensor_name):
        if not unsafe:
            _check_added(module, tensor_name, parametrization)
        module.parametrizations[tensor_name].append(parametrization)
        module.parametrizations[tensor_name].unsafe |= unsafe
    elif tensor_name in module._buffers or tensor_name in module._parameters:
        parametrizations = ParametrizationList([parametrization], getattr(module, tensor_name), unsafe=unsafe)
        delattr(module, tensor_name)
        if not is_parametrized(module):
            _change_class(module)
            module.parametrizations = ModuleDict()
        _add_property(module, tensor_name)
        module.parametrizations[tensor_name] = parametrizations
    else:
        raise ValueError(
            f"Module '{module}' does not have a parameter, a buffer, or a parametrized element with name '{tensor_name}'"
        )
    return module


def _check_added(module: Any, name: str, parametrization: Any) -> None:
    """Demand that a further parametrization keeps shape and dtype, and so does its inverse."""
    before = getattr(module, name)
    after = parametrization(before)
    if not isinstance(after, Tensor):
        raise ValueError(f"A parametrization must return a tensor. Got {type(after).__name__}.")
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(after, what):
            raise ValueError(
                f"Registering a parametrization may not change the {what} of the tensor, unless the `unsafe` flag is "
                f"enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"parametrization(module.{name}).{what}: {getattr(after, what)}"
            )
    if not hasattr(parametrization, "right_inverse"):
        return
    try:
        back = parametrization.right_inverse(after)
    except NotImplementedError:
        return
    if not isinstance(back, Tensor):
        raise ValueError(f"parametrization.right_inverse must return a tensor. Got: {type(back).__name__}")
    for what in ("dtype", "shape"):
        if getattr(before, what) != getattr(back, what):
            raise ValueError(
                f"The tensor returned by parametrization.right_inverse must have the same {what} as module.{name}, unless "
                f"the `unsafe` flag is enabled.\nmodule.{name}.{what}: {getattr(before, what)}\n"
                f"returned {what}: {getattr(back, what)}"
            )


def is_parametrized(module: Any, tensor_name: str | None = None) -> bool:
    """Tell whether a module has a parametrization, of one tensor or of any."""
    parametrizations = getattr(module, "parametrizations", None)
    if not isinstance(parametrizations, ModuleDict):
        return False
    return len(parametrizations) > 0 if tensor_name is None else tensor_name in parametrizations


@guarded
def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Make a parametrized tensor an ordinary one again: with its value now, or with what it was computed from."""
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"Module {module} does not have a parametrization on {tensor_name}")
    parametrizations = module.parametrizations[tensor_name]
    if parametrizations.is_tensor:
        original = parametrizations.original
        if leave_parametrized:
            with using(grad=False):
                _take_over(original, getattr(module, tensor_name))
    elif leave_parametrized:
        value = getattr(module, tensor_name)
        original = make_parameter(value) if value.requires_grad else value
    else:
        raise ValueError(
            "Cannot leave unparametrized (`leave_parametrized=False`) a tensor that is parametrized in terms of a sequence "
            "of tensors."
        )
    delattr(type(module), tensor_name)
    del module.parametrizations[tensor_name]
    _register(module, tensor_name, original)
    if not is_parametrized(module):
        delattr(module, "parametrizations")
        module.__class__ = type(module).__bases__[0]
    return module


def type_before_parametrizations(module: Any) -> type:
    """Return the class that a module had, or has, without parametrizations."""
    return type(module).__bases__[0] if is_parametrized(module) else type(module)


@guarded
def transfer_parametrizations_and_params(from_module: Any, to_module: Any, tensor_name: str | None = None) -> Any:
    """Give a module the parametrizations of another, and what is learned in them."""
    if not is_parametrized(from_module):
        return to_module
    for name in from_module.parametrizations if tensor_name is None else [tensor_name]:
        if not hasattr(to_module, name):
            setattr(to_module, name, make_parameter(getattr(from_module, name)))
        given = from_module.parametrizations[name]
        for parametrization in given:
            register_parametrization(to_module, name, parametrization)
        taken = to_module.parametrizations[name]
        for held in given._held():
            setattr(taken, held, getattr(given, held))
    return to_module


set_all(globals())
