"""torch.utils.benchmark: measurements and tables, as torch writes them."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import retrograd
from retrograd.utils import benchmark
from retrograd.utils.benchmark import Compare, Measurement, TaskSpec, Timer
from tests.oracle import answer

TIMES = """[1e-3]
[1e-3, 1.1e-3, 1.2e-3, 5e-3]
[1e-5 * i for i in range(1, 30)]
[1e-4] * 20
[2.5, 3.5]
[1e-7 + i * 1e-10 for i in range(12)]
[1e-3, 1e-3, 1.05e-3]""".splitlines()
TASKS = """label=None
label="L"
label="L", sub_label="S", description="D"
sub_label="S", num_threads=4
setup="import math"
setup="a=1\\nb=2"
""".splitlines()
TABLES = """M([1e-3 * (i + 1) * (j + 1)] * 5, label="L", sub_label=f"s{i}", description=f"d{j}", num_threads=t) for i in range(3) for j in range(2) for t in (1, 2)
M([1e-6 * (i + 1) * (j + 1) * (1 + .3 * q) for q in range(5)], label=f"L{j % 2}", sub_label=f"s{i}", description=f"d{j}", env=f"e{i}") for i in range(2) for j in range(3)
M([1e-3 * r] * 5, label="L", sub_label=f"s{r}", description=f"d{r % 3}") for r in (1, 12, 133, 4)
M([1.0], label="L", description="d", num_threads=t) for t in (1, 16)
M([1e-3 * r] * 5, label="L", sub_label="s", description=f"d{r}") for r in (1, 1.01, 1.03, 1.09, 1.12, 1.6, 2.1)""".splitlines()  # noqa: E501
WAYS = ["", "c.highlight_warnings()", "c.colorize()", "c.colorize(rowwise=True)"]


def told(library: Any, program: str) -> Any:
    package = importlib.import_module(f"{library.__name__}.utils.benchmark")

    def measured(times: list[float], **task: Any) -> Any:
        return package.Measurement(10, times, package.TaskSpec(**({"stmt": "x+1", "setup": "pass"} | task)))

    return answer(library, program, B=package, M=measured)


@pytest.mark.oracle
@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("times", TIMES)
def test_a_measurement_reads_as_torchs(times: str, task: str) -> None:
    program = f"""(m := M({times}, {task}), repr(m).split(chr(10), 1)[1], m.median, m.mean, m.iqr, m.significant_figures,
    m.has_warnings, m.title, m.as_row_name, m.stmt)[1:]"""
    assert told(retrograd, program) == told(pytest.importorskip("torch"), program)


@pytest.mark.oracle
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("table", TABLES)
def test_a_table_reads_as_torchs(table: str, way: str) -> None:
    program = f"(c := B.Compare([{table}]), {way or None}, str(c))[-1]"
    assert told(retrograd, program) == told(pytest.importorskip("torch"), program)


@pytest.mark.oracle
@pytest.mark.parametrize("table", [TABLES[0], TABLES[2], TABLES[4]])
def test_digits_that_mean_nothing_are_left_out(table: str) -> None:
    program = f"(c := B.Compare([{table}]), c.trim_significant_figures(), str(c))[-1]"
    assert told(retrograd, program) == told(pytest.importorskip("torch"), program)


@pytest.mark.oracle
@pytest.mark.parametrize(
    "program",
    [
        "B.select_unit(1e-5), B.select_unit(100.), B.select_unit(1e-12), B.unit_to_english('us'), B.ordered_unique([3, 1, 3])",
        "B.Timer('x', language='foo')",
        "B.Timer(3)",
        "B.Timer('x + 1').timeit(1)",
        "B.Timer('  a\\n  b')._task_spec.stmt",
        "B.Timer('pass', global_setup='a')",
        "B.Timer('pass').autorange()",
        "B.Timer('torch.ones(1)').timeit(3).number_per_run",
        "B.Compare([3])",
        "[(len(m.raw_times), m.number_per_run) for m in B.Measurement.merge([M([1., 2.]), M([2.]), M([2.], label='b')])]",
        "M([1.]).foo",
    ],
)
def test_details_are_torchs(program: str) -> None:
    assert told(retrograd, program) == told(pytest.importorskip("torch"), program)


def test_a_statement_is_measured() -> None:
    timer = Timer("x.exp()", globals={"x": retrograd.ones(10)}, label="exp", num_threads=1)
    once = timer.timeit(20)
    assert (once.number_per_run, len(once.raw_times)) == (20, 1)
    assert 1e-8 < once.mean < 1
    blocks = timer.blocked_autorange(min_run_time=0.02)
    assert sum(blocks.raw_times) >= 0.02
    seen: list[Any] = []
    timer.adaptive_autorange(min_run_time=0.001, max_run_time=0.05, callback=lambda *got: seen.append(got))
    assert seen
    assert "exp" in str(Compare([once, blocks]))


def test_threads_are_put_back() -> None:
    before = retrograd.get_num_threads()
    with benchmark.set_torch_threads(1):
        assert retrograd.get_num_threads() == 1
    assert retrograd.get_num_threads() == before


def test_other_languages_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="statements in Python only"):
        Timer("int x;", language="c++")
    with pytest.raises(NotImplementedError, match="callgrind"):
        Timer("1").collect_callgrind()
    assert Measurement(1, [1.0], TaskSpec("a", "b")).setup == "b"
