"""What users keep on a ctx, apart from what the node has that it is.

In torch a ctx has a dictionary that is the user's alone. Here the engine finds what it needs as attributes of the node, under
names that a user may choose as well: `name`, `meta`, `count`. A user's attribute of such a name is kept beside, and who asks
decides which of the two is meant: this package reads the node's, everybody else the user's.
"""

from __future__ import annotations

from functools import cache
from sys import _getframe
from typing import Any

from .._places import is_own, own_files

# torch's own, which a user may set with an effect; and those that torch refuses to set
SETTABLE = frozenset({
    "dirty_tensors", "materialize_grads", "needs_input_grad", "non_differentiable", "saved_for_forward", "to_save",
})  # fmt: skip
READ_ONLY = frozenset({
    "_input_metadata", "_raw_saved_tensors", "metadata", "next_functions", "requires_grad", "saved_tensors", "saved_variables",
})  # fmt: skip
taken: set[str] = set()  # the node's names, noted when its class is made
USERS = "_attributes_of_user"


class UsersAttributes:
    """Lets users set and delete attributes of any name. Reading is looked into once there is one of ours among them."""

    def __setattr__(self, name: str, value: Any) -> None:
        if name in taken and (file := _getframe(1).f_code.co_filename) not in own_files and not is_own(file):
            set_by_user(self, name, value)
        else:
            object.__setattr__(self, name, value)

    def __delattr__(self, name: str) -> None:
        if name in taken and (file := _getframe(1).f_code.co_filename) not in own_files and not is_own(file):
            delete_by_user(self, name)
        else:
            object.__delattr__(self, name)


def _read_only(name: str) -> AttributeError:
    return AttributeError(f"attribute '{name}' of 'torch._C._FunctionBase' objects is not writable")


def set_by_user(ctx: Any, name: str, value: Any) -> None:
    """Set an attribute as a user's program does."""
    if name in READ_ONLY:
        raise _read_only(name)
    if name not in taken:
        object.__setattr__(ctx, name, value)
        return
    users = ctx.__dict__.get(USERS)
    if users is None:
        users = ctx.__dict__[USERS] = {}
        kind: Any = type(ctx)
        ctx.__class__ = _telling_apart(kind)
    users[name] = value


def delete_by_user(ctx: Any, name: str) -> None:
    """Delete an attribute as a user's program does."""
    if name in READ_ONLY:
        raise _read_only(name)
    users = ctx.__dict__.get(USERS, {})
    if name in taken and name not in users:
        raise AttributeError(name)
    if name in users:
        del users[name]
    else:
        object.__delattr__(ctx, name)


def read_by_user(ctx: Any, name: str) -> Any:
    """Read an attribute as a user's program does."""
    users = ctx.__dict__.get(USERS, {})
    return users[name] if name in users else getattr(ctx, name)


def users_attributes(ctx: Any) -> dict[str, Any]:
    """Return all that a user has set on a ctx."""
    own = {name: value for name, value in vars(ctx).items() if name not in taken and name not in SETTABLE}
    beside: dict[str, Any] = own.pop(USERS, {})
    return own | beside


@cache
def _telling_apart(cls: Any) -> Any:
    """Make the class of a ctx on which a user has set an attribute that a node has, too."""

    def read(self: Any, name: str) -> Any:
        if name in taken and (file := _getframe(1).f_code.co_filename) not in own_files and not is_own(file):
            users = object.__getattribute__(self, USERS)
            if name in users:
                return users[name]
        return object.__getattribute__(self, name)

    body = {"__getattribute__": read, "__module__": cls.__module__, "__qualname__": cls.__qualname__}
    return type(cls.__name__, (cls,), body)
