"""Every public function that torch lets an object with `__torch_function__` take over is taken over by it."""

from __future__ import annotations

import subprocess
import sys
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


# Where nothing looks for such an object before the call: in lists, as an operand in place, as an index or what is written there.
HIDDEN = """torch.cat([o, t])
torch.stack([t, o])
torch.hstack([o, t])
torch.block_diag(o, t)
torch.broadcast_tensors(o, t)
torch.einsum('i,i', [o, t])
torch.atleast_2d([t])
torch.gradient(o, spacing=[t])
torch.linalg.multi_dot([o, t])
torch._foreach_add([o, t], [o, o])
torch._foreach_add_([o, t], 1)
torch._foreach_norm([t])
torch.index_put(o, [t], o)
torch.result_type(o, t)
o.add_(t)
o.mul_(t)
o.copy_(t)
o.fill_(t)
o.eq_(t)
o.clamp_(t)
o.addcmul_(o, t)
o.lerp_(o, t)
o.masked_fill_(t, 1)
o.index_put_([t], o)
o.index_add_(0, t, o)
o.scatter_(0, t, o)
o.bernoulli_(t)
o.expand_as(t)
o.view_as(t)
o.type_as(t)
o.resize_as_(t)
o[t]
o[0, t]
o.__setitem__(t, 1)
o.__setitem__(0, t)""".splitlines()
PLAIN_PROCESS = """
import retrograd as torch
seen = []
class Taking:
    @classmethod
    def __torch_function__(cls, function, types, args=(), kwargs=None):
        seen.append(function.__name__)
        return "taken over"
for program in PROGRAMS:
    seen.clear()
    eval(program, {"torch": torch, "o": torch.ones(2), "t": Taking()})
    assert len(seen) == 1, (program, seen)
"""


def test_taken_over_before_any_such_class_is_known() -> None:
    """In a process of its own: subclasses and modes make public functions look."""
    for program in HIDDEN:
        assert eval(program, {"torch": torch, "o": torch.ones(2), "t": Taking()}) in ("taken over", None), program
    subprocess.run([sys.executable, "-c", f"PROGRAMS = {HIDDEN!r}\n{PLAIN_PROCESS}"], check=True)
