"""Pickles that cannot run code: of classes and functions they may name only what is in a list, and do with it only what is harmless.

Note [What a safe pickle may do]
Python's own unpickler is restricted in three ways. A name that is not in the list is not looked up. What is called must be
in the list itself, not only be made of what is. And attributes are set, elements added, only where an object of the pickle owns
them: never on a class, a function or a module.
"""

from __future__ import annotations

import _codecs
import collections
import pickle
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

from .. import _device, _dtypes, _size
from . import _base, _pickling
from ._saving import PACKAGE, torch_name
from ._storages import UntypedStorage
from ._typed_storages import OLD_STORAGES, TypedStorage

DOCUMENTED = (
    "Check the documentation of torch.load to learn more about types accepted by default with weights_only "
    "https://pytorch.org/docs/stable/generated/torch.load.html."
)
CHANGED = (
    "In PyTorch 2.6, we changed the default value of the `weights_only` argument in `torch.load` from `False` to `True`. "
    "Re-running `torch.load` with `weights_only` set to `False` will likely succeed, but it can result in arbitrary code "
    "execution. Do it only if you got the file from a trusted source."
)
FAILED = "Weights only load failed. "
NOT_NAMED = (
    f"{FAILED}This file can still be loaded, to do so you have two options, \x1b[1mdo those steps only if "
    f"you trust the source of the checkpoint\x1b[0m. \n\t(1) {CHANGED}\n\t(2) Alternatively, to load with "
    "`weights_only=True` please check the recommended steps in the following error message.\n\tWeightsUnpickler error: "
    "Unsupported global: GLOBAL {0} was not an allowed global by default. Please use "
    "`torch.serialization.add_safe_globals([{0}])` or the `torch.serialization.safe_globals([{0}])` context manager to "
    f"allowlist this global if you trust this class/function.\n\n{DOCUMENTED}"
)
BLOCKED_MODULES = ("sys", "os", "posix", "nt")


def refused(why: str, wish: bool = True) -> pickle.UnpicklingError:
    """Return torch's error for what a pickle may not do."""
    ask = "Please file an issue with the following so that we can make `weights_only=True` compatible with your use case: "
    return pickle.UnpicklingError(
        f"{FAILED}{CHANGED}\n{f'{ask}WeightsUnpickler error: ' if wish else ''}\n\n{why}\n\n{DOCUMENTED}"
    )


# ---- the list ----
SAFE: dict[str, Any] = {
    "torch.Size": _size.Size,
    "torch.device": _device.device,
    "torch.Tensor": _base.Tensor,
    "torch.nn.parameter.Parameter": _base.Parameter,
    "torch.storage.UntypedStorage": UntypedStorage,
    "torch.storage.TypedStorage": TypedStorage,
    "torch.serialization._get_layout": _device._get_layout,
    "torch._tensor._rebuild_from_type_v2": _pickling._rebuild_from_type_v2,
    "collections.OrderedDict": collections.OrderedDict,
    "collections.Counter": collections.Counter,
    "builtins.bytearray": bytearray,
    "builtins.set": set,
    "builtins.complex": complex,
    "_codecs.encode": _codecs.encode,
}
SAFE |= {
    f"torch._utils.{name}": getattr(_pickling, name)
    for name in [
        "_rebuild_tensor",
        "_rebuild_tensor_v2",
        "_rebuild_tensor_v3",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
    ]
}
SAFE |= {f"torch.{each.name}": each for each in (*_dtypes.ALL_DTYPES, _dtypes.uint64)}
SAFE |= {f"torch.{place}{name}": storage for name, storage in OLD_STORAGES.items() for place in ("", "cuda.")}
_given: list[Any] = []  # by the user: classes and functions, or pairs of one and its name in files


def _names(entry: Any) -> Iterator[tuple[str, Any]]:
    if isinstance(entry, tuple):
        if len(entry) != 2 or not isinstance(entry[1], str):
            raise ValueError(f"Expected either a global or a tuple of (global, str), but got {entry}")
        yield entry[1], entry[0]
        return
    yield f"{entry.__module__}.{entry.__qualname__}", entry
    if (known := torch_name(entry)) is not None:  # under which files have it
        yield f"{known.module}.{known.name}", entry


def allowed_by_user() -> dict[str, Any]:
    """Return what the user has allowed, by its names in files."""
    return {name: one for entry in _given for name, one in _names(entry)}


def add_safe_globals(safe_globals: Any) -> None:
    """Allow classes and functions in files read with `weights_only`; a pair says what a file calls it."""
    for entry in safe_globals:
        dict(_names(entry))  # which refuses what has no name
        if entry not in _given:
            _given.append(entry)


def get_safe_globals() -> list[Any]:
    """Return what the user has allowed."""
    return list(_given)


def clear_safe_globals() -> None:
    """Take back what the user has allowed."""
    _given.clear()


@contextmanager
def safe_globals(allowed: Any) -> Iterator[None]:
    """Allow classes and functions while a block runs."""
    before = list(_given)
    add_safe_globals(allowed)
    try:
        yield
    finally:
        _given[:] = before


def full_name(module: str, name: str) -> str:
    """Return a name as the lists have it: pickles of protocol 2 have Python 2's, and a pickler in C has ours for torch's."""
    module, name = NAME_MAPPING.get((module, name), (IMPORT_MAPPING.get(module, module), name))
    first, dot, rest = module.partition(".")
    return f"{'torch' if first == PACKAGE else first}{dot}{rest}.{name}"


def is_one_of(value: Any, values: Any) -> bool:
    """Tell whether a value is one of several, which need not be comparable."""
    return any(value is one for one in values)


# ---- the reader ----
_OF_OLD_PROTOCOLS = (
    pickle.DICT, pickle.DUP, pickle.FLOAT, pickle.GET, pickle.INT, pickle.LIST, pickle.LONG, pickle.PUT, pickle.STRING, pickle.UNICODE,
)  # fmt: skip
_OWN_OPCODES = (pickle.INST, pickle.OBJ, pickle.EXT1, pickle.EXT2, pickle.EXT4, pickle.PERSID, pickle.NEWOBJ_EX)
_MAPPINGS = (dict, collections.OrderedDict, collections.Counter)


def _refuse_opcode(code: int) -> Any:
    def refuse(self: Any) -> NoReturn:
        raise refused(f"Unsupported operand {code}")

    return refuse


class SafeUnpickler(pickle._Unpickler):
    """Reads a pickle that may do little. See Note [What a safe pickle may do]."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]  # of the class in Python, unknown to the type checker
    append: Any
    pop_mark: Any
    storage_of: Any = None  # what makes a storage of a persistent id

    for _code in (*_OWN_OPCODES, *_OF_OLD_PROTOCOLS, pickle.NEXT_BUFFER, pickle.READONLY_BUFFER):
        dispatch[_code[0]] = _refuse_opcode(_code[0])
    for _number in set(range(256)).difference(dispatch):  # of no pickle at all
        dispatch[_number] = _refuse_opcode(_number)

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        super().__init__(file, encoding=encoding)
        self.by_user = allowed_by_user()

    def load(self) -> Any:
        """Read the pickle; what is none is told from what is not allowed by the end of the message."""
        try:
            return super().load()
        except pickle.UnpicklingError as error:
            raise error if str(error).startswith(FAILED) else refused(str(error)) from None

    def find_class(self, module: str, name: str) -> Any:
        full = full_name(module, name)
        if module in BLOCKED_MODULES:
            raise refused(
                f"Trying to load unsupported GLOBAL {module}.{name} whose module {module} is blocked.", wish=False
            )
        found = SAFE.get(full, self.by_user.get(full, self.by_user.get(f"{module}.{name}")))
        if found is None:
            raise pickle.UnpicklingError(NOT_NAMED.format(full.removeprefix("builtins.")))
        return found

    def _is_users(self, value: Any) -> bool:
        return is_one_of(value, self.by_user.values())

    def _need_named(self, function: Any, why: str) -> None:
        if not is_one_of(function, SAFE.values()) and not self._is_users(function):
            raise refused(f"{why} {function}")

    def load_reduce(self) -> None:
        """Call a function of the list."""
        args, function = self.stack.pop(), self.stack[-1]
        self._need_named(function, "Trying to call reduce for unrecognized function")
        self.stack[-1] = function(*args)

    dispatch[pickle.REDUCE[0]] = load_reduce

    def load_newobj(self) -> None:
        """Make an object of a class of the list."""
        args, cls = self.stack.pop(), self.stack[-1]
        self._need_named(cls, "Trying to instantiate unsupported class")
        if not isinstance(cls, type):
            raise refused(f"Trying to instantiate unsupported class {cls}")
        is_tensor = cls in (_base.Tensor, _base.Parameter)
        self.stack[-1] = cls(*args) if is_tensor else cls.__new__(cls, *args)

    dispatch[pickle.NEWOBJ[0]] = load_newobj

    def load_build(self) -> None:
        """Give an object its state."""
        state, instance = self.stack.pop(), self.stack[-1]
        kind = type(instance)
        if kind is _base.Tensor:
            instance.set_(*state)
        elif kind is collections.OrderedDict:
            _pickling.set_attributes(instance, state)
        elif self._is_users(kind):
            self.stack.append(state)
            pickle._Unpickler.load_build(self)  # type: ignore[attr-defined]
        else:
            raise refused(
                f"Can only build Tensor, Parameter, OrderedDict or types allowlisted via `add_safe_globals`, but got {kind}"
            )

    dispatch[pickle.BUILD[0]] = load_build

    def _need_mapping(self, target: Any) -> None:
        if type(target) not in _MAPPINGS and not self._is_users(type(target)):
            raise refused(
                f"Can only SETITEM for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )

    def load_setitem(self) -> None:
        """Add an element to a mapping."""
        self._need_mapping(self.stack[-3])
        pickle._Unpickler.load_setitem(self)  # type: ignore[attr-defined]

    dispatch[pickle.SETITEM[0]] = load_setitem

    def load_setitems(self) -> None:
        """Add elements to a mapping."""
        items = self.pop_mark()
        target = self.stack[-1]
        self._need_mapping(target)
        for place in range(0, len(items), 2):
            target[items[place]] = items[place + 1]

    dispatch[pickle.SETITEMS[0]] = load_setitems

    def _need_list(self, target: Any) -> None:
        if type(target) is not list and not self._is_users(type(target)):
            raise refused(f"Can only append to lists, but got {type(target)}")

    def load_append(self) -> None:
        """Add an element to a list."""
        value = self.stack.pop()
        self._need_list(self.stack[-1])
        self.stack[-1].append(value)

    dispatch[pickle.APPEND[0]] = load_append

    def load_appends(self) -> None:
        """Add elements to a list."""
        items = self.pop_mark()
        self._need_list(self.stack[-1])
        self.stack[-1].extend(items)

    dispatch[pickle.APPENDS[0]] = load_appends

    def load_additems(self) -> None:
        """Add elements to a set."""
        items = self.pop_mark()
        if type(self.stack[-1]) is not set:
            raise refused(f"Can only add to sets, but got {type(self.stack[-1])}")
        self.stack[-1].update(items)

    dispatch[pickle.ADDITEMS[0]] = load_additems

    def load_binpersid(self) -> None:
        """Put the storage that an id speaks of in its place."""
        identity = self.stack.pop()
        if type(identity) is not tuple:
            raise refused(f"persistent_load id must be tuple or int, but got {type(identity)}")
        if not identity or identity[0] != "storage" or self.storage_of is None:
            raise refused(
                f"Only persistent_load of storage is allowed, but got {type(identity[0] if identity else None)}"
            )
        self.stack.append(self.storage_of(identity))

    dispatch[pickle.BINPERSID[0]] = load_binpersid
