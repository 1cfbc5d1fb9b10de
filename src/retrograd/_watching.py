"""Functions that look for nobody who takes them over, until there is a mode: creation, in-place methods, views, conversions.

Note [What a mode sees]
`overridable` functions and elementwise ones ask for modes themselves. The others here have no such question on their way. The
first mode that is entered gives each of them other code, which asks; the function stays the same object, wherever it was
imported to. Families that are loaded later get it then.
"""

from __future__ import annotations

from functools import cache
from importlib import import_module
from types import CodeType, FunctionType
from typing import Any

from . import overrides
from ._generated import emit
from ._modes import current_mode

# What torch's modes do not see, among functions that nothing else takes over.
UNSEEN = frozenset(
    """broadcast_shapes eig from_dlpack from_file from_numpy frombuffer get_rng_state initial_seed is_storage is_tensor load
    lstsq manual_seed matrix_rank range save seed set_default_tensor_type set_rng_state solve symeig
    to_dlpack""".split()  # noqa: SIM905 - names read better as text
)


@cache
def _handing_on(free: tuple[str, ...]) -> CodeType:
    """Return code that hands its arguments to `_seen`, with such free variables.

    A function's new code must have as many as the old. They are true ones, though never read: whoever asks a frame for its
    local variables, as debuggers do, follows them.
    """
    text = f"def make({', '.join(free)}):\n    def call(*args, _seen, **kwargs):\n        return _seen(args, kwargs)\n"
    text += "".join(f"        {name}\n" for name in free) + "    return call"
    made = emit(f"handing on, beside {', '.join(free) or 'nothing'}", text, {})["make"]
    return made(*free).__code__  # type: ignore[no-any-return]


def copy_of(function: FunctionType) -> FunctionType:
    """Return another function that does what this one does now."""
    made = FunctionType(
        function.__code__, function.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__, made.__qualname__ = function.__kwdefaults__, function.__qualname__
    return made


def replace(function: FunctionType, plain: FunctionType, seen: Any) -> None:
    """Have calls of a function answered by `seen(args, kwargs)`. It stays the same object, wherever it was imported to.

    `plain`, its copy, tells from now on what its parameters are.
    """
    code = function.__code__
    function.__dict__.setdefault("before_modes", plain)
    function.__dict__.setdefault("__wrapped__", plain)
    function.__defaults__, function.__kwdefaults__ = None, {"_seen": seen}
    function.__code__ = _handing_on(code.co_freevars).replace(co_name=code.co_name)


def watch(function: Any) -> None:
    """Let modes see the calls of a function."""
    if (
        not isinstance(function, FunctionType)
        or hasattr(function, "watches_modes")
        or function.__globals__.get("old_forms") is not None  # made by `overridable`
        or getattr(function, "__wrapped__", None) in _ASKING
        or function.__name__ in UNSEEN
    ):
        return
    plain = copy_of(function)

    def seen(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        if not current_mode().function_modes:
            return plain(*args, **kwargs)
        return overrides.handle_torch_function(function, overrides.flat(args, kwargs), *args, **kwargs)

    function.watches_modes = True  # type: ignore[attr-defined]
    replace(function, plain, seen)


def watch_all(known: list[Any]) -> None:
    """Let modes see the calls of all functions that are loaded."""
    for function in known:
        watch(function)
    tensor: Any = import_module(".tensor._base", __package__).Tensor
    for name in import_module(".tensor._overriding", __package__).METHODS:
        watch(vars(tensor).get(name))


_unusual = import_module(".tensor._unusual_calls", __package__)
_ASKING = (_unusual.of_one_tensor, _unusual.of_two_tensors)
