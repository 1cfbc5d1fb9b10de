"""What a program calls its tensors: the variables of a frame, which are looked at without being kept alive."""

from __future__ import annotations

from dis import get_instructions
from functools import lru_cache
from inspect import CO_OPTIMIZED
from types import CodeType, FrameType
from typing import Any

from ..nn.modules.module import Module


def name_of(tensor: Any, frame: FrameType) -> str:
    """Return what a frame calls a tensor: `x`, or `model.0.weight` if a module has it; nothing, if it has no name there."""
    modules = []
    for name, value in _variables(frame):
        if value is tensor:
            return name
        if isinstance(value, Module):
            modules.append((name, value))
    del value
    for name, module in modules:
        found = next((inner for inner, one in module.named_parameters() if one is tensor), None)
        if found is not None:
            return found if name == "self" else f"{name}.{found}"
    return ""


@lru_cache(256)
def _reads_locals(code: CodeType) -> bool:
    """Tell whether a function asks Python for its variables."""
    called = {one.argval for one in get_instructions(code) if one.opname == "LOAD_GLOBAL"}
    return not called.isdisjoint({"locals", "vars", "dir", "eval", "exec"})


def _variables(frame: FrameType) -> list[tuple[str, Any]]:
    """Return the variables of a frame, its own before those of its module; names with an underscore are nobody's."""
    code = frame.f_code
    if not code.co_flags & CO_OPTIMIZED:  # of a module, or the body of a class
        found = [*frame.f_locals.items(), *frame.f_globals.items()]
    elif not _reads_locals(code):
        own = frame.f_locals
        found = [*own.items(), *frame.f_globals.items()]
        if type(own) is dict:  # a copy, which the frame would keep until it ends; from Python 3.13 on there is none
            own.clear()
    else:  # the program may hold that copy, and would see it change
        found = [*frame.f_globals.items()]
    return [(name, value) for name, value in found if name[:1] != "_"]
