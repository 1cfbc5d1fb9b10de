"""Every public function that torch lets an object with `__torch_function__` take over is taken over by it."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.arguments.calls import SPACES, _part

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Taking:
    """Not a tensor, but it answers for one."""

    @classmethod
    def __torch_function__(cls, function: Any, types: Any, args: Any = (), kwargs: Any = None) -> str:
        return "taken over"


OVERRIDABLE = torch.overrides.get_testing_overrides()
NAMES = [
    (space, name)
    for space in SPACES
    for name in sorted(dir(_part(torch, space)))
    if not name.startswith("_")
    and callable(getattr(_part(torch, space), name))
    and not isinstance(getattr(_part(torch, space), name), type)
    and getattr(_part(torch, space), name) in OVERRIDABLE
    and hasattr(_part(retrograd, space), name)
]


@pytest.mark.parametrize(("space", "name"), NAMES)
def test_taken_over(space: str, name: str) -> None:
    def answer(library: Any) -> Any:
        try:
            return getattr(_part(library, space), name)(Taking())
        except Exception as error:
            return error

    if answer(torch) == "taken over":
        assert answer(retrograd) == "taken over"
