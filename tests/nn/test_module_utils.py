"""torch.nn.modules.utils, compared with torch."""

from collections import OrderedDict

import pytest

import retrograd.nn.modules.utils as ours
from tests.oracle import outcome, whole

PROGRAMS = """
[u._single(3), u._pair(3), u._triple("a"), u._quadruple(None), u._pair([1, 2, 3]), u._pair.__name__, u._ntuple(5).__name__]
u._reverse_repeat_tuple((1, 2, 3), 2)
u._list_with_default([None, 2], [5, 6, 7])
u._list_with_default(3, [5])
u._list_with_default([None, 2], [5, 6])
u.__all__
""".strip().splitlines()


def answer(u, program):
    return outcome(eval, program, {"u": u}, words=whole, ignore_warnings=False)


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_are_torchs(program):
    theirs = pytest.importorskip("torch.nn.modules.utils")
    assert answer(ours, program) == answer(theirs, program)


def renamed(u):
    state = OrderedDict({"module.a": 1, "b": 2, "module.": 4})
    state._metadata = OrderedDict({"": 1, "module": 2, "module.x": 3, "other": 5})
    u.consume_prefix_in_state_dict_if_present(state, "module.")
    return list(state.items()), sorted(state._metadata.items())


def test_a_prefix_goes_from_keys_and_metadata():
    assert renamed(ours) == ([("b", 2), ("a", 1), ("", 4)], [("", 2), ("other", 5), ("x", 3)])


@pytest.mark.oracle
def test_a_prefix_goes_as_in_torch():
    assert renamed(ours) == renamed(pytest.importorskip("torch.nn.modules.utils"))
