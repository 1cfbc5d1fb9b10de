"""Pickles that cannot run code: of classes and functions they may name only what is in a list, and do with it only what is harmless.

Note [What a safe pickle may do]
Python's own unpickler is restricted in three ways. A name that is not in the list is not looked up. What is called must be
in the list itself, not only be made of what is. And attributes are set, elements added, only where an object of the pickle owns
them: never on a class, a function or a module. The opcodes are those that torch takes.

A small file must not cost much: what calls copy and allocate is counted and may not exceed by far what the file holds, and
a tuple that contains another one many times over, which takes forever to hash, is no key.
"""

from __future__ import annotations

import _codecs
import collections
import math
import pickle
import reprlib
import struct
from _compat_pickle import IMPORT_MAPPING, NAME_MAPPING
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, ClassVar, NoReturn

from ... import _device, _dtypes, _size
from ..._warnings import warn
from .. import _base
from .._storage.storages import UntypedStorage
from .._storage.typed_storages import OLD_STORAGES, TypedStorage
from . import pickling as _pickling
from .archives import bytes_left
from .saving import PACKAGE, torch_name

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
        "_rebuild_meta_tensor_no_storage",
        "_rebuild_parameter",
        "_rebuild_parameter_with_state",
        "_rebuild_wrapper_subclass",
    ]
}
SAFE |= {f"torch.{each.name}": each for each in (*_dtypes.IN_MEMORY, *_dtypes.NAMES_ONLY)}
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
TAKEN = """GLOBAL NEWOBJ REDUCE BUILD APPEND APPENDS SETITEM SETITEMS MARK TUPLE TUPLE1 TUPLE2 TUPLE3 NONE NEWFALSE NEWTRUE EMPTY_TUPLE
EMPTY_LIST EMPTY_DICT EMPTY_SET BININT BININT1 BININT2 BINFLOAT BINUNICODE SHORT_BINSTRING BINPERSID BINGET LONG_BINGET BINPUT LONG_BINPUT
LONG1 PROTO STOP""".split()  # noqa: SIM905 - the opcodes that torch takes, those of protocol 2: names read better as text
_MAPPINGS = (dict, collections.OrderedDict, collections.Counter)
_MAKE_MEMORY = (bytearray, UntypedStorage, TypedStorage, _base.Tensor)  # of a number: so many bytes or elements
_COPIED = (list, tuple, dict, set, str, bytes, bytearray, collections.OrderedDict, collections.Counter)
ALLOWANCE = 1 << 16  # elements and bytes that a pickle may make beyond what it holds
KEY_SIZE, KEY_DEPTH = 1 << 12, 64  # of a tuple that is hashed: how many parts, and one within the other


def _refuse_opcode(code: int) -> Any:
    def refuse(self: Any) -> NoReturn:
        raise refused(f"Unsupported operand {code}")

    return refuse


def _shown(value: Any) -> str:
    """Name a value in a message; what contains itself many times over is shown in part."""
    return reprlib.repr(value) if type(value) in _COPIED else str(value)


def _need_small_key(key: Any) -> None:
    """Refuse tuples that are small in a file and take forever to hash: a part counts wherever it occurs."""
    count, row = 0, [(key, 0)]
    while row:
        value, depth = row.pop()
        count += 1
        if count > KEY_SIZE or depth > KEY_DEPTH:
            raise refused("A key of nested tuples is too large")
        if type(value) is tuple:
            row.extend((part, depth + 1) for part in value)


class SafeUnpickler(pickle._Unpickler):
    """Reads a pickle that may do little. See Note [What a safe pickle may do]."""

    dispatch: ClassVar[dict[int, Any]] = dict(pickle._Unpickler.dispatch)
    stack: list[Any]  # of the class in Python, unknown to the type checker
    append: Any
    read: Any
    pop_mark: Any
    storage_of: Any = None  # what makes a storage of a persistent id

    for _number in {*range(256)}.difference(getattr(pickle, _name)[0] for _name in TAKEN):
        dispatch[_number] = _refuse_opcode(_number)

    def __init__(self, file: Any, *, encoding: str = "bytes") -> None:
        super().__init__(file, encoding=encoding)
        self.by_user = allowed_by_user()
        self.held = bytes_left(file)
        self.made = 0  # how many elements and bytes calls have copied

    def load(self) -> Any:
        """Read the pickle; the end of the message distinguishes what is not a pickle from what is not allowed."""
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

    def _is_named(self, function: Any) -> bool:
        return is_one_of(function, SAFE.values()) or self._is_users(function)

    def _need_callable(self, function: Any, args: Any) -> None:
        """Refuse what is not in the list, and what would make more than the file holds. See Note [What a safe pickle may do]."""
        if not self._is_named(function):
            raise refused(f"Trying to call reduce for unrecognized function {_shown(function)}")
        if function is _pickling._rebuild_from_type_v2 and len(args) > 2:
            self._need_callable(args[0], args[2])
        self._need_affordable(function, args)

    def _need_affordable(self, function: Any, args: Any) -> None:
        if is_one_of(function, OLD_STORAGES.values()):
            raise TypeError(
                "'StorageType' object is not callable\nHint: a file only names it, before the key of a storage."
            )
        if is_one_of(function, _MAKE_MEMORY):
            numbers = [one for one in args if isinstance(one, int)]
            self._spend(math.prod(numbers) if numbers else 0)
        for one in args:
            if type(one) in _COPIED:
                self._spend(len(one))
                if type(one) not in (str, bytes, bytearray):
                    for part in one:
                        self._need_small_parts(part)

    def _need_small_parts(self, part: Any) -> None:
        if type(part) is tuple:
            _need_small_key(part)

    def _spend(self, count: int) -> None:
        self.made += count
        if self.made > 8 * self.held + ALLOWANCE:
            raise refused(f"A pickle of {self.held} bytes asks for {self.made} elements")

    def load_reduce(self) -> None:
        """Call a function of the list."""
        args, function = self.stack.pop(), self.stack[-1]
        self._need_callable(function, args)
        self.stack[-1] = function(*args)

    dispatch[pickle.REDUCE[0]] = load_reduce

    def load_newobj(self) -> None:
        """Make an object of a class of the list."""
        args, cls = self.stack.pop(), self.stack[-1]
        if not self._is_named(cls):
            raise refused(
                "Can only create new object for nn.Parameter or classes allowlisted via `add_safe_globals` but got "
                f"{_shown(cls)}"
            )
        if not isinstance(cls, type) or is_one_of(cls, OLD_STORAGES.values()):
            kind = type(cls).__name__ if not isinstance(cls, type) else "StorageType"
            raise TypeError(f"object.__new__(X): X is not a type object ({kind})")
        self._need_affordable(cls, args)
        ours = cls in (_base.Tensor, _base.Parameter, UntypedStorage, TypedStorage)
        self.stack[-1] = cls(*args) if ours else cls.__new__(cls, *args)

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

    def _need_mapping(self, code: str) -> None:
        target = self.stack[-1]
        if type(target) not in _MAPPINGS and not self._is_users(type(target)):
            raise refused(
                f"Can only {code} for dict, collections.OrderedDict, collections.Counter, but got {type(target)}"
            )

    def _set_item(self, key: Any, value: Any) -> None:
        self._need_small_parts(key)
        self.stack[-1][key] = value

    def load_setitem(self) -> None:
        """Add an element to a mapping."""
        value, key = self.stack.pop(), self.stack.pop()
        self._need_mapping("SETITEM")
        self._set_item(key, value)

    dispatch[pickle.SETITEM[0]] = load_setitem

    def load_setitems(self) -> None:
        """Add elements to a mapping."""
        items = self.pop_mark()
        self._need_mapping("SETITEMS")
        for place in range(0, len(items), 2):
            self._set_item(items[place], items[place + 1])

    dispatch[pickle.SETITEMS[0]] = load_setitems

    def _need_list(self, verb: str) -> None:
        target = self.stack[-1]
        if type(target) is not list and not self._is_users(type(target)):
            raise refused(f"Can only {verb} lists, but got {type(target)}")

    def load_append(self) -> None:
        """Add an element to a list."""
        value = self.stack.pop()
        self._need_list("append to")
        self.stack[-1].append(value)

    dispatch[pickle.APPEND[0]] = load_append

    def load_appends(self) -> None:
        """Add elements to a list."""
        items = self.pop_mark()
        self._need_list("extend")
        self.stack[-1].extend(items)

    dispatch[pickle.APPENDS[0]] = load_appends

    def load_proto(self) -> None:
        """Take every protocol, though not all of its opcodes."""
        protocol = self.read(1)[0]
        if protocol != 2:
            warn(
                f"Detected pickle protocol {protocol} in the checkpoint, which was not the default pickle protocol used by "
                "`torch.load` (2). The weights_only Unpickler might not support all instructions implemented by this protocol, "
                "please file an issue for adding support if you encounter this.",
            )

    dispatch[pickle.PROTO[0]] = load_proto

    def load_binunicode(self) -> None:
        """Put a text on the stack, if the file has as much."""
        (length,) = struct.unpack("<I", self.read(4))
        if length > self.held:
            raise EOFError(f"Ran out of input\nHint: a text of {length} bytes is announced in a file of {self.held}.")
        self.append(str(self.read(length), "utf-8", "surrogatepass"))

    dispatch[pickle.BINUNICODE[0]] = load_binunicode

    def load_binpersid(self) -> None:
        """Put the storage that an id speaks of in its place."""
        identity = self.stack.pop()
        if type(identity) is not tuple:
            raise refused(f"persistent_load id must be tuple or int, but got {type(identity)}")
        if not identity or identity[0] != "storage" or self.storage_of is None:
            raise refused(
                f"Only persistent_load of storage is allowed, but got {type(identity[0] if identity else None)}"
            )
        for part in identity:
            self._need_small_parts(part)
        self.stack.append(self.storage_of(identity))

    dispatch[pickle.BINPERSID[0]] = load_binpersid
