"""Random programs mean the same in torch and here, but for the kinds of difference in known.json; and the comparison notices a wrong rule.

More of them: `python -m tests.random_programs --count 10000 --seed 5`.
"""

from __future__ import annotations

import types

import pytest

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing
from tests.random_programs import batches, building, comparing, known, operations, readings, shrinking  # noqa: E402

pytestmark = pytest.mark.oracle

SEED, PARTS, PROGRAMS = 0, 3, 200  # of each part


@pytest.fixture(scope="module")
def _prepared():
    threads = torch.get_num_threads()
    batches.prepare()
    yield
    torch.set_num_threads(threads)


@pytest.mark.usefixtures("_prepared")
@pytest.mark.parametrize("part", range(PARTS))
def test_programs_mean_the_same(part):
    numbers = range(part * PROGRAMS, (part + 1) * PROGRAMS)
    told = [one for one in batches.run_batch(SEED, numbers) if "used" not in one and "crash" not in one]
    new = [one for one in told if one.get("kind") is None]
    assert not new, "\n\n".join(one.get("script") or one["broken"] for one in new)


def test_the_table_is_large():
    assert len(operations.operations()) > 800
    assert len(readings.READINGS) > 40


def test_every_kind_says_who_is_right_and_why():
    for name, kind in known.kinds().items():
        assert kind["right"] in {"torch", "retrograd", "both"}, name
        assert kind["reason"].endswith("."), name
        assert set(kind["where"]) <= {"aspect", "reading", "source", "torch", "ours", "finite differences"}, name


def test_a_program_is_the_same_whenever_it_is_built():
    assert building.program(3, 4) == building.program(3, 4)
    assert building.program(3, 4) != building.program(3, 5)


def test_a_script_runs_by_itself():
    program = building.program(3, 8)
    scope: dict[str, object] = {}
    exec(shrinking.script(program).replace("print(r)", ""), scope)
    assert (
        comparing.compared({"r": comparing.running.seen(scope["r"])}, {"r": comparing.running.run(program, torch)["r"]})
        is None
    )


class WrongSinh(retrograd.autograd.Function):
    """sinh with the derivative of sin."""

    @staticmethod
    def forward(x):
        return retrograd.sinh(x)

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.save_for_backward(inputs[0])

    @staticmethod
    def backward(ctx, g):
        return g * ctx.saved_tensors[0].cos()


class Planted(types.ModuleType):
    """retrograd with a wrong rule."""

    def __init__(self):
        super().__init__("planted")

    def __getattr__(self, name):
        return WrongSinh.apply if name == "sinh" else getattr(retrograd, name)


def test_a_wrong_rule_is_noticed_shrunk_and_judged(monkeypatch):
    monkeypatch.setattr(operations, "operations", lambda: ("sinh", "mul", "sum", "sin"))
    planted = Planted()
    for number in range(400):
        program = building.program(7, number)
        if program.reading not in {"backward", "grad", "grad materialized"} or "torch.sinh(" not in program.function():
            continue
        found = comparing.difference(program, planted)
        if found is not None and found.aspect == "values" and found.right == "torch":
            break
    else:
        pytest.fail("no program noticed the wrong derivative of sinh")
    assert comparing.difference(program, retrograd) is None
    small, found = shrinking.shrunk(program, found, planted)
    assert [step.operation for step in small.steps] == ["sinh"]
    assert found.right == "torch"
    assert known.kind_of(small, found) is None
    assert "torch.sinh(" in shrinking.script(small, found)
