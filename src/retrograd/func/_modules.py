"""Modules as functions of their parameters."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._tracebacks import guarded
from ..tensor._functions.joining import stack
from ..tensor._tensor import Tensor

_MISSING: Any = object()


@guarded
def functional_call(
    module: Any,
    parameter_and_buffer_dicts: dict[str, Any] | Sequence[dict[str, Any]],
    args: Any = None,
    kwargs: dict[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other tensors in the place of its parameters and buffers.

    With `tie_weights`, a tensor that the module holds under several names is replaced under all of them. `strict` demands that the
    names given are the module's names, all of them and no others. What the module assigns to a replaced name goes into the
    dictionary, if there is only one.

    Args:
        module: the module
        parameter_and_buffer_dicts: tensors by name, in a dict or several
        args: the arguments of the call
        kwargs: its keyword arguments
        tie_weights: replace tensors that share a name together
        strict: raise an error unless all names are given

    Example:
        >>> layer = nn.Linear(2, 1, bias=False)
        >>> torch.func.functional_call(layer, {"weight": torch.tensor([[1.0, 2.0]])}, (torch.tensor([3.0, 4.0]),))
        tensor([11.])
    """
    given = _merged(parameter_and_buffer_dicts)
    names = _names_by_tensor(module)
    if tie_weights:
        given = _tied(given, names)
    if strict:
        _check_names(module, given, {name for group in names for name in group})
    call_args = () if args is None else args if isinstance(args, tuple) else (args,)
    written = parameter_and_buffer_dicts if isinstance(parameter_and_buffer_dicts, dict) else {}
    replaced: dict[str, tuple[Any, str, Any]] = {}
    try:
        for path, value in given.items():
            if value is not None and not isinstance(value, Tensor):
                raise TypeError(f"{value} is not an instance of torch.Tensor")
            owner, name = _home(module, path)
            _check_replaceable(owner, name)
            replaced[path] = (owner, name, _exchange(owner, name, value))
        return module(*call_args, **(kwargs or {}))
    finally:
        for path, (owner, name, value) in reversed(replaced.items()):
            assigned = _exchange(owner, name, value)
            if path in written and assigned is not _MISSING:
                written[path] = assigned


def _merged(dicts: Any) -> dict[str, Any]:
    if isinstance(dicts, dict):
        return dict(dicts)
    if not isinstance(dicts, Sequence):
        raise ValueError(
            f"Expected parameter_and_buffer_dicts to be a dict, or a list/tuple of dicts, but got {type(dicts)}"
        )
    if not all(isinstance(one, dict) for one in dicts):
        raise ValueError("Expected all elements of parameter_and_buffer_dicts to be dictionaries")
    names = [name for one in dicts for name in one]
    repeated = [name for name in dict.fromkeys(names) if names.count(name) > 1]
    if repeated:
        raise ValueError(f"{repeated} appeared in multiple dictionaries; behavior of functional call is ambiguous")
    return {name: value for one in dicts for name, value in one.items()}


def _names_by_tensor(module: Any) -> list[list[str]]:
    """Return the names of each parameter and buffer: several where it is tied."""
    groups: dict[int, list[str]] = {}
    members = (
        *module.named_parameters(remove_duplicate=False),
        *module.named_buffers(remove_duplicate=False),
    )
    for name, value in members:
        groups.setdefault(id(value), []).append(name)
    return list(groups.values())


def _tied(given: dict[str, Any], names: list[list[str]]) -> dict[str, Any]:
    tied = dict(given)
    for group in names:
        present = [name for name in group if name in given]
        if not present:
            continue
        if len({id(given[name]) for name in present}) > 1:
            raise ValueError(
                f"functional_call got multiple values for keys {sorted(present)}, which are tied. Consider using "
                "tie_weights=False"
            )
        tied.update(dict.fromkeys(group, given[present[0]]))
    return tied


def _check_names(module: Any, given: dict[str, Any], known: set[str]) -> None:
    lines = []
    for what, names in (("Unexpected", given.keys() - known), ("Missing", known - given.keys())):
        if names:
            lines.append(f"{what} key(s): {', '.join(repr(name) for name in sorted(names))}.")
    if lines:
        listed = "\n\t".join(lines)
        raise RuntimeError(f"Error(s) in reparametrizing for {module._get_name()}:\n\t{listed}")


def _home(module: Any, path: str) -> tuple[Any, str]:
    """Return the module that has, or will have, a path's tensor, and the tensor's name there."""
    above, _, name = path.rpartition(".")
    owner = module
    for part in above.split(".") if above else ():
        if not hasattr(owner, part):
            raise AttributeError(f"{owner._get_name()} has no attribute `{part}`")
        owner = getattr(owner, part)
        if not hasattr(owner, "_parameters"):
            raise TypeError(f"submodule `{above}`: {owner} is not an instance of torch.nn.Module")
    if not name:
        raise KeyError('tensor name can\'t be empty string ""')
    return owner, name


def _check_replaceable(owner: Any, name: str) -> None:
    if name not in owner._parameters and name not in owner._buffers:
        value = getattr(owner, name, None)
        if value is not None and not isinstance(value, Tensor):
            raise TypeError(f"attribute `{name}`: {value} is not an instance of torch.Tensor")


def _exchange(owner: Any, name: str, value: Any) -> Any:
    """Put a tensor in a module's attribute, or delete that for `_MISSING`; return what was there."""
    for members in (owner._parameters, owner._buffers):
        if name in members:
            before = members[name]
            if value is _MISSING:
                del members[name]
            else:
                members[name] = value
            return before
    before = getattr(owner, name, _MISSING)
    if value is not _MISSING:
        setattr(owner, name, value)  # which a parametrization inverts
    elif before is not _MISSING:
        delattr(owner, name)
    return before


@guarded
def stack_module_state(models: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the parameters and the buffers of several modules of one kind, each stacked along a new first dimension."""
    models = list(models)
    if not models:
        raise RuntimeError("stack_module_state: Expected at least one model, got 0.")
    if len({model.training for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to have the same training/eval mode.")
    if len({type(model) for model in models}) != 1:
        raise RuntimeError("stack_module_state: Expected all models to be of the same class.")
    parameters = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return (
        {name: _stacked([each[name] for each in parameters], name) for name in parameters[0]},
        {name: _stacked([each[name] for each in buffers], name) for name in buffers[0]},
    )


def _stacked(tensors: list[Any], name: str) -> Any:
    requires_grad = tensors[0].requires_grad
    if any(tensor.requires_grad != requires_grad for tensor in tensors):
        raise RuntimeError(f"Expected {name} from each model to have the same .requires_grad")
    return stack([tensor.detach() for tensor in tensors]).requires_grad_(requires_grad)
