"""Modules that hold others: in a sequence, in a list, by name; and lists and dictionaries of parameters."""

from __future__ import annotations

import operator
from collections import OrderedDict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from ..._settings import typename
from ..._tracebacks import guard_methods
from ..._warnings import warn
from ...tensor._tensor import Tensor
from ..parameter import Parameter, make_parameter
from .module import Module


def _position(index: Any, count: int) -> int:
    """Return a non-negative position for an index that may be negative."""
    at = operator.index(index)
    if not -count <= at < count:
        raise IndexError(f"index {at} is out of range")
    return at % count if count else at


class Container(Module):
    """Modules by name: what every Module is."""

    def __init__(self, **kwargs: Any) -> None:
        warn(
            "`nn.Container` is deprecated. All of its functionality is now implemented in `nn.Module`. Subclass that instead.",
            FutureWarning,
        )
        super().__init__()
        for name, module in kwargs.items():
            self.add_module(name, module)


class _Numbered(Module):
    """What sequences and lists of modules have in common: their modules have numbers for names."""

    def _name_at(self, index: Any) -> str:
        raise NotImplementedError

    def _part(self, items: list[tuple[str, Module]]) -> Self:
        """Return a container of some of the modules."""
        raise NotImplementedError

    @overload
    def __getitem__(self, index: slice) -> Self: ...

    @overload
    def __getitem__(self, index: int) -> Module: ...

    def __getitem__(self, index: int | slice) -> Module | Self:
        if isinstance(index, slice):
            return self._part(list(self._modules.items())[index])
        return self._modules[self._name_at(index)]  # type: ignore[no-any-return]

    def __setitem__(self, index: int, module: Module) -> None:
        setattr(self, self._name_at(index), module)

    def __delitem__(self, index: Any) -> None:
        for name in list(self._modules)[index] if isinstance(index, slice) else [self._name_at(index)]:
            delattr(self, name)
        self._modules = {str(at): module for at, module in enumerate(self._modules.values())}

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[Module]:
        return iter(self._modules.values())

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def pop(self, key: int) -> Module:
        """Take a module away and return it."""
        module = self[key]
        del self[key]
        return module


class Sequential(_Numbered):
    """Calls modules one after the other.

    Args:
        *args: modules, or one dict of names and modules

    Example:
        >>> model = nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 1))
        >>> model(torch.ones(2, 4)).shape, model[1]
        (torch.Size([2, 1]), ReLU())
    """

    @overload
    def __init__(self, *args: Module) -> None: ...

    @overload
    def __init__(self, arg: OrderedDict[str, Module], /) -> None: ...

    def __init__(self, *args: Any) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], OrderedDict):
            for name, module in args[0].items():
                self.add_module(name, module)
        else:
            for at, module in enumerate(args):
                self.add_module(str(at), module)

    def forward(self, input: Any) -> Any:
        """Call the modules in order."""
        for module in self._modules.values():
            input = module(input)
        return input

    def _name_at(self, index: Any) -> str:
        return list(self._modules)[_position(index, len(self))]

    def _part(self, items: list[tuple[str, Module]]) -> Self:
        return type(self)(OrderedDict(items))

    def insert(self, index: int, module: Module) -> Self:
        """Insert a module before a position."""
        if not isinstance(module, Module):
            raise AssertionError(f"module should be of type: {Module}")
        count = len(self)
        if not -count <= index <= count:
            raise IndexError(f"Index out of range: {index}")
        modules = list(self._modules.values())
        modules.insert(index + count if index < 0 else index, module)
        self._modules = {str(at): one for at, one in enumerate(modules)}
        return self

    def extend(self, sequential: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in sequential:
            self.append(module)
        return self

    def __add__(self, other: Any) -> Sequential:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return Sequential(*self, *other)

    def __iadd__(self, other: Any) -> Self:
        if not isinstance(other, Sequential):
            raise ValueError(f"add operator supports only objects of Sequential class, but {type(other)} is given.")
        return self.extend(list(other))

    def _check_factor(self, other: Any) -> None:
        if not isinstance(other, int):
            raise TypeError(f"unsupported operand type(s) for *: {type(self)} and {type(other)}")
        if other <= 0:
            raise ValueError(f"Non-positive multiplication factor {other} for {type(self)}")

    def __mul__(self, other: int) -> Sequential:
        self._check_factor(other)
        return Sequential(*(list(self) * other))

    __rmul__ = __mul__

    def __imul__(self, other: int) -> Self:
        self._check_factor(other)
        return self.extend(list(self) * (other - 1))


class ModuleList(_Numbered):
    """A list of modules that a module finds.

    Args:
        modules: modules

    Example:
        >>> layers = nn.ModuleList([nn.Linear(2, 2) for _ in range(3)])
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self += modules

    def _name_at(self, index: Any) -> str:
        return str(_position(index, len(self)))

    def _part(self, items: list[tuple[str, Module]]) -> Self:
        return type(self)([module for _, module in items])

    def __iadd__(self, modules: Iterable[Module]) -> Self:
        return self.extend(modules)

    def __add__(self, other: Iterable[Module]) -> ModuleList:
        return ModuleList([*self, *other])

    def insert(self, index: int, module: Module) -> None:
        """Insert a module before a position."""
        modules = list(self._modules.values())
        modules.insert(index, module)
        for at, one in enumerate(modules):
            self._modules[str(at)] = one

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList.extend should be called with an iterable, but got {type(modules).__name__}")
        for module in list(modules):
            self.append(module)
        return self

    def __repr__(self) -> str:
        """Show runs of equal modules once."""
        shown = [repr(module) for module in self]
        if not shown:
            return f"{self._get_name()}()"
        blocks: list[list[Any]] = []
        for at, text in enumerate(shown):
            if blocks and blocks[-1][2] == text:
                blocks[-1][1] = at
            else:
                blocks.append([at, at, text])
        lines = []
        for first, last, text in blocks:
            head = f"({first}): " if first == last else f"({first}-{last}): {last - first + 1} x "
            lines.append("  " + (head + text).replace("\n", "\n  "))
        return "\n".join([f"{self._get_name()}(", *lines, ")"])


class ModuleDict(Module):
    """A dict of modules that a module finds.

    Args:
        modules: a dict of names and modules

    Example:
        >>> heads = nn.ModuleDict({"a": nn.Linear(2, 1), "b": nn.Linear(2, 3)})
        >>> heads["b"](torch.ones(2)).shape
        torch.Size([3])
    """

    def __init__(self, modules: Mapping[str, Module] | None = None) -> None:
        super().__init__()
        if modules is not None:
            self.update(modules)

    def __getitem__(self, key: str) -> Module:
        return self._modules[key]  # type: ignore[no-any-return]

    def __setitem__(self, key: str, module: Module) -> None:
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        del self._modules[key]

    def __len__(self) -> int:
        return len(self._modules)

    def __iter__(self) -> Iterator[str]:
        return iter(self._modules)

    def __contains__(self, key: str) -> bool:
        return key in self._modules

    def clear(self) -> None:
        """Take all modules away."""
        self._modules.clear()

    def pop(self, key: str) -> Module:
        """Take a module away and return it."""
        return self._modules.pop(key)  # type: ignore[no-any-return]

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._modules.keys()

    def items(self) -> Iterable[tuple[str, Module]]:
        """Return the names with their modules."""
        return self._modules.items()

    def values(self) -> Iterable[Module]:
        """Return the modules."""
        return self._modules.values()

    def update(self, modules: Any) -> None:
        """Add modules from a mapping, or from pairs of names and modules."""
        _update(self, modules, "ModuleDict")


def _update(target: Any, given: Any, name: str) -> None:
    if not isinstance(given, Iterable):
        raise TypeError(
            f"{name}.update should be called with an iterable of key/value pairs, but got {type(given).__name__}"
        )
    if isinstance(given, (OrderedDict, type(target), Mapping)):
        for key, value in given.items():
            target[key] = value
        return
    for at, pair in enumerate(given):
        if not isinstance(pair, Iterable):
            raise TypeError(f"{name} update sequence element #{at} should be Iterable; is{type(pair).__name__}")
        pair = list(pair)
        if len(pair) != 2:
            raise ValueError(f"{name} update sequence element #{at} has length {len(pair)}; 2 is required")
        target[pair[0]] = pair[1]


def _as_parameter(value: Any) -> Any:
    return make_parameter(value) if isinstance(value, Tensor) and not isinstance(value, Parameter) else value


def _shown(value: Any, kind_of: Any) -> str:
    if not isinstance(value, Tensor):
        return f"Object of type: {type(value).__name__}"
    size = "x".join(str(n) for n in value.size())
    device = "" if not value.is_cuda else f" (GPU {value.device.index})"
    kind = "Parameter" if isinstance(value, Parameter) else "Tensor"
    return f"{kind} containing: [{kind_of(value)} of size {size}{device}]"


class ParameterList(Module):
    """A list of parameters; tensors become parameters when they are put in, other values stay as they are."""

    def __init__(self, values: Iterable[Any] | None = None) -> None:
        super().__init__()
        self._size = 0
        if values is not None:
            self += values

    def __getitem__(self, index: Any) -> Any:
        if isinstance(index, slice):
            made = type(self)()
            return made.extend(getattr(self, str(at)) for at in range(*index.indices(len(self))))
        return getattr(self, str(_position(index, len(self))))

    def __setitem__(self, index: int, value: Any) -> None:
        setattr(self, str(_position(index, len(self))), _as_parameter(value))

    def __len__(self) -> int:
        return self._size

    def __iter__(self) -> Iterator[Any]:
        return iter(self[at] for at in range(len(self)))

    def __iadd__(self, values: Iterable[Any]) -> Self:
        return self.extend(values)

    def __dir__(self) -> list[str]:
        return [name for name in super().__dir__() if not name.isdigit()]

    def append(self, value: Any) -> Self:
        """Add a value at the end."""
        self._size += 1
        self[len(self) - 1] = value
        return self

    def extend(self, values: Iterable[Any]) -> Self:
        """Add values at the end."""
        if not isinstance(values, Iterable) or isinstance(values, Tensor):
            raise TypeError(f"ParameterList.extend should be called with an iterable, but got {type(values).__name__}")
        for value in list(values):
            self.append(value)
        return self

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"  ({at}): {_shown(value, lambda t: t.dtype)}" for at, value in enumerate(self))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterList should not be called.")


class ParameterDict(Module):
    """Parameters by name; tensors become parameters when they are put in, other values stay as they are."""

    def __init__(self, parameters: Any = None) -> None:
        super().__init__()
        self._keys: dict[str, None] = {}
        if parameters is not None:
            self.update(parameters)

    def __getitem__(self, key: str) -> Any:
        return getattr(self, self._attribute(key))

    def __setitem__(self, key: str, value: Any) -> None:
        attribute = self._attribute(key)
        self._keys[key] = None
        setattr(self, attribute, _as_parameter(value))

    def __delitem__(self, key: str) -> None:
        del self._keys[key]
        delattr(self, self._attribute(key))

    @staticmethod
    def _attribute(key: Any) -> str:
        if not isinstance(key, str):
            raise TypeError(
                f"Index given to ParameterDict cannot be used as a key as it is not a string (type is "
                f"'{type(key).__name__}'). Open an issue on github if you need non-string keys."
            )
        return key

    def __len__(self) -> int:
        return len(self._keys)

    def __iter__(self) -> Iterator[str]:
        return iter(self._keys)

    def __reversed__(self) -> Iterator[str]:
        return reversed(self._keys)

    def __contains__(self, key: str) -> bool:
        return key in self._keys

    def setdefault(self, key: str, default: Any = None) -> Any:
        """Return the value of a name, putting `default` there first if there is none."""
        if key not in self._keys:
            self[key] = default
        return self[key]

    def get(self, key: str, default: Any = None) -> Any:
        """Return the value of a name, or `default`."""
        return self[key] if key in self._keys else default

    def clear(self) -> None:
        """Take all values away."""
        for key in list(self._keys):
            del self[key]

    def pop(self, key: str) -> Any:
        """Take a value away and return it."""
        value = self[key]
        del self[key]
        return value

    def popitem(self) -> tuple[str, Any]:
        """Take the last value away and return it with its name."""
        key = next(reversed(self._keys))
        return key, self.pop(key)

    def copy(self) -> ParameterDict:
        """Return a dictionary of the same parameters."""
        return ParameterDict(OrderedDict((key, self[key]) for key in self))

    def fromkeys(self, keys: Iterable[str], default: Any = None) -> ParameterDict:
        """Return a dictionary with one value for several names."""
        return ParameterDict((key, default) for key in keys)

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._keys.keys()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return the names with their values."""
        return ((key, self[key]) for key in self._keys)

    def values(self) -> Iterable[Any]:
        """Return the values."""
        return (self[key] for key in self._keys)

    def update(self, parameters: Any) -> None:
        """Add values from a mapping (in the order of its names, unless it has one of its own) or from pairs."""
        if isinstance(parameters, Mapping) and not isinstance(parameters, OrderedDict):
            parameters = OrderedDict(sorted(parameters.items()))
        _update(self, parameters, "ParameterDict")

    def extra_repr(self) -> str:
        """Return a line for each value."""
        return "\n".join(f"  ({key}): {_shown(value, typename)}" for key, value in self.items())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        raise RuntimeError("ParameterDict should not be called.")

    def __or__(self, other: Any) -> ParameterDict:
        made = self.copy()
        made.update(other)
        return made

    def __ror__(self, other: Any) -> ParameterDict:
        made = other.copy()
        made.update(self)
        return made  # type: ignore[no-any-return]

    def __ior__(self, other: Any) -> Self:
        self.update(other)
        return self


for _cls in (_Numbered, Sequential, ModuleList, ModuleDict, ParameterList, ParameterDict):
    guard_methods(_cls, "__getitem__", "__setitem__", "__delitem__", "append", "extend", "insert", "pop", "update")

__all__ = ["ModuleDict", "ModuleList", "ParameterDict", "ParameterList", "Sequential"]
