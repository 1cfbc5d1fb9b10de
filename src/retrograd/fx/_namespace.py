"""Names of values in generated code: each object has one, no two share one, and none hides a builtin."""

from __future__ import annotations

import builtins
import keyword
import re
from typing import Any

TAKEN: dict[str, Any] = {**{word: object() for word in keyword.kwlist}, **vars(builtins)}
_ILLEGAL = re.compile("[^0-9a-zA-Z_]+")
_NUMBERED = re.compile(r"(.*?)(?:_(\d+))?")


class _Namespace:
    """Gives unique names, `add`, `add_1`, `add_2`, as torch numbers them."""

    def __init__(self) -> None:
        self._obj_to_name: dict[Any, str] = {}
        self._used_names: set[str] = set()
        self._base_count: dict[str, int] = {}

    def create_name(self, candidate: str, obj: Any) -> str:
        """Return a name like `candidate` that nobody has; an object that has one keeps it."""
        if obj is not None and obj in self._obj_to_name:
            return self._obj_to_name[obj]
        candidate = _ILLEGAL.sub("_", candidate) or "_unnamed"
        if candidate[0].isdigit():
            candidate = f"_{candidate}"
        match = _NUMBERED.fullmatch(candidate)
        base, number = match.groups() if match else (candidate, None)
        if number is None or candidate in self._used_names:
            count = self._base_count.get(base, 0)
            if TAKEN.get(candidate, obj) is not obj:
                count += 1
                candidate = f"{base}_{count}"
        else:
            count = int(number)
        while candidate in self._used_names:
            count += 1
            candidate = f"{base}_{count}"
        self._used_names.add(candidate)
        self._base_count[base] = count
        if obj is not None:
            self._obj_to_name[obj] = candidate
        return candidate

    def associate_name_with_obj(self, name: str, obj: Any) -> None:
        """Note the name of an object that has none yet."""
        if self._obj_to_name.setdefault(obj, name) is not name:
            raise AssertionError("obj is already associated")

    def _rename_object(self, obj: Any, name: str) -> None:
        self._obj_to_name[obj] = name
        self._used_names.add(name)


def _snake_case(s: str) -> str:
    """Write `pascalCase` as `pascal_case`."""
    return re.sub(r"(?<=[a-z])([A-Z])", r"_\1", s).lower()


def _is_magic(x: str) -> bool:
    return x.startswith("__") and x.endswith("__")
