"""torch.profiler: operations, backward nodes and named blocks, with their times."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import nn, optim, profiler
from retrograd.autograd import profiler as contexts
from retrograd.profiler import ProfilerAction, profile, record_function, schedule


def train(model: Any, optimizer: Any) -> None:
    loss = (model(retrograd.ones(3, 4)) ** 2).sum()
    loss.backward()
    optimizer.step()


@pytest.fixture
def recorded() -> Any:
    model = nn.Linear(4, 2)
    optimizer = optim.SGD(model.parameters(), lr=0.1)
    with profile(activities=[profiler.ProfilerActivity.CPU], record_shapes=True) as prof, record_function("mine"):
        train(model, optimizer)
        train(model, optimizer)
    retrograd.ones(2).exp()  # no longer seen
    return prof


def test_operations_nodes_steps_and_blocks_are_counted(recorded: Any) -> None:
    found = {event.key: event for event in recorded.key_averages()}
    counts = {key: event.count for key, event in found.items()}
    expected = {
        "mine": 1,
        "aten::linear": 2,
        "aten::pow": 2,
        "aten::sum": 2,
        "AddmmBackward0": 2,
        "PowBackward0": 2,
        "Optimizer.step#SGD.step": 2,
    }
    assert {key: counts.get(key) for key in expected} == expected
    assert "aten::exp" not in counts
    mine = found["mine"]
    assert 0 < mine.self_cpu_time_total < mine.cpu_time_total
    assert recorded.key_averages().self_cpu_time_total == pytest.approx(mine.cpu_time_total)
    assert found["aten::pow"].cpu_time == found["aten::pow"].cpu_time_total / 2
    (event,) = [one for one in recorded.events() if one.name == "mine"]
    assert event.cpu_parent is None
    assert event.cpu_children[0].cpu_parent is event


def test_a_table_is_sorted_and_cut(recorded: Any) -> None:
    lines = recorded.key_averages().table(sort_by="cpu_time_total", row_limit=2).splitlines()
    assert lines[1].split("  ")[-2:] == ["# of Calls", ""]
    assert lines[3].split()[0] == "mine"
    assert lines[3].split()[3:5] == ["100.00%", recorded.key_averages()[0].cpu_time_total_str]
    assert (len(lines), lines[-1].split(":")[0]) == (7, "Self CPU time total")
    assert len({len(line) for line in lines[:-1]}) == 1
    shapes = recorded.key_averages(group_by_input_shape=True).table(sort_by="count")
    assert "Input Shapes" in shapes
    assert "[[3, 4], [2, 4], [2]]" in shapes
    with pytest.raises(AttributeError, match="'FunctionEventAvg' object has no attribute 'foo'"):
        recorded.key_averages().table(sort_by="foo")
    assert recorded.key_averages().table(sort_by="cuda_time_total")


def test_long_names_are_cut() -> None:
    with profile() as prof, record_function("a" * 60):
        pass
    assert f"\n{'a' * 52}...  " in str(prof.key_averages())
    assert len(prof.key_averages().table(max_name_column_width=20).splitlines()[3].split()[0]) == 20


def test_a_trace_is_written(recorded: Any, tmp_path: Path) -> None:
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    (mine,) = [one for one in events if one["name"] == "mine"]
    assert (mine["ph"], mine["cat"], mine["args"]["External id"]) == ("X", "user_annotation", 1)
    inside = [one for one in events if one is not mine]
    assert all(mine["ts"] <= one["ts"] and one["ts"] + one["dur"] <= mine["ts"] + mine["dur"] + 0.01 for one in inside)


def test_a_schedule_chooses_steps(tmp_path: Path) -> None:
    ready = []

    def note(prof: Any) -> None:
        ready.append((prof.step_num, {one.key: one.count for one in prof.key_averages()}))

    with profile(schedule=schedule(wait=1, warmup=1, active=2, repeat=2), on_trace_ready=note) as prof:
        for _ in range(9):
            _ = retrograd.ones(3) + 1
            prof.step()
    counts = {"ProfilerStep*": 2, "aten::ones": 2, "aten::add": 2}
    assert ready == [(4, counts), (8, counts)]
    assert prof.current_action is ProfilerAction.NONE


def test_without_a_schedule_the_end_is_when_all_is_ready(tmp_path: Path) -> None:
    handler = profiler.tensorboard_trace_handler(str(tmp_path / "runs"), "me")
    with profile(on_trace_ready=handler):
        _ = retrograd.ones(3) + 1
    (path,) = (tmp_path / "runs").iterdir()
    assert path.name.startswith("me.")
    assert path.name.endswith(".pt.trace.json")


def test_recording_may_begin_inside_of_a_block() -> None:
    prof = profile(schedule=schedule(wait=1, warmup=0, active=1))
    with prof:
        with retrograd.no_grad():
            prof.step()
            _ = retrograd.ones(3) + 1
        _ = retrograd.ones(3) * 1
    assert "aten::add" in [one.key for one in prof.key_averages()]


def test_what_raises_ends() -> None:
    with profile() as prof, pytest.raises(RuntimeError), record_function("mine"):
        retrograd.ones(2) @ retrograd.ones(3)
    assert [one.name for one in prof.events()] == ["mine", "aten::ones", "aten::ones", "aten::matmul"]
    assert all(one.cpu_time_total > 0 for one in prof.events())


def test_the_older_profiler_records() -> None:
    with contexts.profile() as prof:
        assert str(prof) == "<unfinished torch.autograd.profile>"
        _ = retrograd.ones(2) + 1
    assert {one.key for one in prof.key_averages()} == {"aten::ones", "aten::add"}
    assert prof.total_average().key == "Total"
    assert "aten::add" in str(prof)
    with contexts.profile(enabled=False) as nothing:
        pass
    assert nothing is None


@pytest.mark.parametrize(
    ("call", "text"),
    [
        (lambda prof: prof.key_averages(), "getting key averages"),
        (lambda prof: prof.events(), "accessing events"),
        (lambda prof: prof.export_chrome_trace("x"), "exporting chrome trace"),
    ],
)
def test_nothing_is_known_before(call: Any, text: str) -> None:
    with pytest.raises(AssertionError, match=f"Profiler must be initialized before {text}"):
        call(profile())
