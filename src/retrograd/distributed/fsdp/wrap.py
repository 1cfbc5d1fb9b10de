"""torch.distributed.fsdp.wrap: which parts of a module are wrapped on their own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from ..._public import set_all
from ...nn.modules.activation import MultiheadAttention
from ...nn.modules.container import ModuleDict, ModuleList

NOT_WRAPPED = (ModuleList, ModuleDict)  # they are not called
_in_force: list[tuple[Any, dict[str, Any]]] = []


def always_wrap_policy(*args: Any, **kwargs: Any) -> bool:
    """Wrap every part."""
    return True


class _Policy:
    """Says which parts are wrapped, and with which choices."""

    def _run_policy(self, root_module: Any, ignored_modules: set[Any], root_kwargs: dict[str, Any]) -> dict[Any, Any]:
        raise NotImplementedError


class ModuleWrapPolicy(_Policy):
    """Wraps the parts of some classes."""

    def __init__(self, module_classes: Any) -> None:
        self._module_classes = set(module_classes)
        self._module_classes_str = str(self._module_classes)

    def _run_policy(self, root_module: Any, ignored_modules: set[Any], root_kwargs: dict[str, Any]) -> dict[Any, Any]:
        kinds = tuple(self._module_classes)
        return {
            one: dict(root_kwargs)
            for one in root_module.modules()
            if one not in ignored_modules and isinstance(one, kinds)
        }

    def __call__(self, module: Any, recurse: bool, *args: Any, **kwargs: Any) -> bool:
        return recurse or isinstance(module, tuple(self._module_classes))

    def __repr__(self) -> str:
        return f"{super().__repr__()}({self._module_classes_str})"


class CustomPolicy(_Policy):
    """Wraps what a function says: True, False, or the choices of the part."""

    def __init__(self, lambda_fn: Callable[[Any], Any]) -> None:
        self._lambda_fn = lambda_fn

    def _run_policy(self, root_module: Any, ignored_modules: set[Any], root_kwargs: dict[str, Any]) -> dict[Any, Any]:
        chosen = {}
        for one in root_module.modules():
            if one in ignored_modules:
                continue
            said = self._lambda_fn(one)
            if not isinstance(said, (dict, bool)):
                raise ValueError(
                    "The lambda_fn passed to CustomPolicy should return False/True or a kwarg dict, but it returned "
                    f"{said}"
                )
            if said:
                chosen[one] = {**root_kwargs, **(said if isinstance(said, dict) else {})}
        return chosen


def lambda_auto_wrap_policy(
    module: Any, recurse: bool, nonwrapped_numel: int, lambda_fn: Callable[[Any], bool]
) -> bool:
    """Wrap what a function says."""
    return recurse or lambda_fn(module)


def transformer_auto_wrap_policy(module: Any, recurse: bool, nonwrapped_numel: int, transformer_layer_cls: Any) -> bool:
    """Wrap the layers of a transformer, which are of some classes."""
    return recurse or isinstance(module, tuple(transformer_layer_cls))


_module_wrap_policy = transformer_auto_wrap_policy


def _or_policy(module: Any, recurse: bool, nonwrapped_numel: int, policies: list[Callable[..., bool]]) -> bool:
    """Wrap what one of several policies wraps."""
    return any(policy(module=module, recurse=recurse, nonwrapped_numel=nonwrapped_numel) for policy in policies)


def size_based_auto_wrap_policy(
    module: Any,
    recurse: bool,
    nonwrapped_numel: int,
    min_num_params: int = int(1e8),
    force_leaf_modules: Any = None,
    exclude_wrap_modules: Any = None,
) -> bool:
    """Wrap parts that have many numbers."""
    leaves, excluded = force_leaf_modules, exclude_wrap_modules
    leaves = size_based_auto_wrap_policy.FORCE_LEAF_MODULES if leaves is None else leaves  # type: ignore[attr-defined]
    excluded = size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES if excluded is None else excluded  # type: ignore[attr-defined]
    is_large = nonwrapped_numel >= min_num_params
    if recurse:
        return is_large and not isinstance(module, tuple(leaves))
    return is_large and not isinstance(module, tuple(excluded))


size_based_auto_wrap_policy.EXCLUDE_WRAP_MODULES = {ModuleList, ModuleDict}  # type: ignore[attr-defined]

size_based_auto_wrap_policy.FORCE_LEAF_MODULES = {MultiheadAttention}  # type: ignore[attr-defined]


@contextmanager
def enable_wrap(*, wrapper_cls: Any, **wrapper_kwargs: Any) -> Iterator[None]:
    """Let `wrap` wrap in a block."""
    _in_force.append((wrapper_cls, wrapper_kwargs))
    try:
        yield
    finally:
        _in_force.pop()


def wrap(module: Any, **wrap_overrides: Any) -> Any:
    """Wrap a module as the `enable_wrap` around says; outside of one it stays as it is."""
    if not _in_force:
        return module
    wrapper, kwargs = _in_force[-1]
    return wrapper(module, **{**kwargs, **wrap_overrides})


# ---- carrying it out ----
def wrap_parts(
    module: Any, policy: Any, wrapper: Callable[..., Any], ignored: set[Any], kwargs: dict[str, Any]
) -> None:
    """Wrap the parts of a module that a policy names, the innermost first; the module itself stays."""
    if isinstance(policy, _Policy):
        chosen = policy._run_policy(module, ignored, kwargs)
        chosen.pop(module, None)
        replace_parts(module, lambda one: wrapper(one, **chosen[one]) if one in chosen else one)
    else:
        _wrap_by_size(module, policy, wrapper, ignored, kwargs)


def replace_parts(module: Any, replacement: Callable[[Any], Any]) -> None:
    """Put what a function returns in the place of each part, the innermost first; a part in several places stays one."""
    made: dict[Any, Any] = {}

    def visit(parent: Any) -> None:
        for name, child in list(parent.named_children()):
            if child not in made:
                visit(child)
                made[child] = replacement(child)
            if made[child] is not child:
                setattr(parent, name, made[child])

    visit(module)


def _wrap_by_size(
    module: Any, policy: Callable[..., bool], wrapper: Callable[..., Any], ignored: set[Any], kwargs: dict[str, Any]
) -> int:
    """Wrap parts by a policy that gets the number of elements not wrapped yet; return how many were wrapped."""
    total = sum(one.numel() for one in module.parameters())
    if not policy(module=module, recurse=True, nonwrapped_numel=total):
        return 0
    wrapped = 0
    for name, child in list(module.named_children()):
        if child in ignored:
            continue
        inside = _wrap_by_size(child, policy, wrapper, ignored, kwargs)
        own = sum(one.numel() for one in child.parameters())
        if not isinstance(child, NOT_WRAPPED) and policy(module=child, recurse=False, nonwrapped_numel=own - inside):
            setattr(module, name, wrapper(child, **kwargs))
            wrapped += own
        else:
            wrapped += inside
    return wrapped


set_all(globals(), but="replace_parts wrap_parts")
