"""torch.profiler: operations, backward nodes and named blocks, with their times."""

from __future__ import annotations

import json
import threading
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


def test_a_step_runs_as_it_does_without_a_profiler() -> None:
    """By its plan: what the rule would call on tensors, a plan does not call."""
    model = nn.Linear(4, 2)
    optimizer = optim.Adam(model.parameters())
    model(retrograd.ones(3, 4)).sum().backward()
    with profile() as prof:
        optimizer.step()
    assert [event.name for event in prof.events()] == ["Optimizer.step#Adam.step"]


def test_the_trace_names_its_threads_by_numbers_that_viewers_take(recorded: Any, tmp_path: Path) -> None:
    recorded.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert {event["tid"] for event in events if event["ph"] == "X"} == {threading.get_native_id()}
    assert all(event["tid"] < 2**31 for event in events)  # Perfetto drops those of more than 32 bits
    needed = {
        "X": {"name", "cat", "pid", "tid", "ts", "dur"},
        "M": {"name", "pid", "args"},
    }  # of the Trace Event Format
    assert all(needed[event["ph"]] <= event.keys() for event in events)
    names = {event["name"]: event["args"]["name"] for event in events if event["ph"] == "M"}
    assert names.keys() == {"process_name", "thread_name"}


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
    inside = [one for one in events if one is not mine and one["ph"] == "X"]
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


# ---- memory, stacks, operations ----
def test_memory_is_counted(tmp_path: Path) -> None:
    with profile(profile_memory=True) as prof:
        a = retrograd.ones(100, 100)
        b = a @ a  # 40,000 bytes
        view = b.reshape(10000)  # none
        c = a + 1
        del b, view
        with record_function("mine"):
            del c
    found = {event.key: event for event in prof.key_averages()}
    assert {
        key: found[key].cpu_memory_usage for key in ("aten::ones", "aten::matmul", "aten::reshape", "aten::add")
    } == {
        "aten::ones": 40000,
        "aten::matmul": 40000,
        "aten::reshape": 0,
        "aten::add": 40000,
    }
    assert found["mine"].cpu_memory_usage == -40000
    table = prof.key_averages().table(sort_by="self_cpu_memory_usage")
    assert "CPU Mem  Self CPU Mem" in table
    assert "39.06 KB" in table
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    changes = [one["args"]["Bytes"] for one in events if one["name"] == "[memory]"]
    assert changes == [40000, 40000, 40000, -40000, -40000]
    held = [one["args"]["bytes"] for one in events if one["ph"] == "C"]
    assert held == [40000, 80000, 120000, 80000, 40000]
    (of_product,) = [one["args"]["Bytes"] for one in events if one["name"] == "aten::matmul"]
    assert of_product == 40000


def test_memory_of_gradients_is_counted() -> None:
    x = retrograd.ones(50, 20, requires_grad=True)
    loss = (x * x).sum()
    with profile(profile_memory=True) as prof:
        loss.backward()
    found = {event.key: event.self_cpu_memory_usage for event in prof.events()}
    assert found["MulBackward0"] >= 50 * 20 * 4


def test_source_lines_are_shown(tmp_path: Path) -> None:
    def inner(a: Any) -> Any:
        return a.exp()  # the line

    def outer(a: Any) -> Any:
        return inner(a)

    x = retrograd.ones(3, requires_grad=True)
    with profile(with_stack=True) as prof:
        outer(x).sum().backward()
    (event,) = [one for one in prof.events() if one.name == "aten::exp"]
    assert [line.rpartition(" ")[2] for line in event.stack[:3]] == ["inner", "outer", "test_source_lines_are_shown"]
    assert event.stack[0].startswith(f"{__file__}(")
    (backward,) = [one for one in prof.events() if one.name == "ExpBackward0"]
    assert backward.stack == event.stack[:1]  # the line of its forward
    table = prof.key_averages(group_by_stack_n=2).table()
    assert "Source Location" in table
    assert ": inner" in table
    assert "Source Location" not in prof.key_averages().table()
    prof.export_chrome_trace(str(tmp_path / "trace.json"))
    events = json.loads((tmp_path / "trace.json").read_text())["traceEvents"]
    assert any(one["args"].get("Call stack", "").endswith(": inner") for one in events)
    prof.export_stacks(str(tmp_path / "stacks"), "self_cpu_time_total")
    assert any(";" in line and line.split()[-1].isdigit() for line in (tmp_path / "stacks").read_text().splitlines())
    with pytest.raises(ValueError, match="metric should be one of"):
        prof.export_stacks(str(tmp_path / "stacks"), "time")
    with profile() as without:
        retrograd.ones(2)
    with pytest.raises(RuntimeError, match="requires with_stack=True"):
        without.export_stacks(str(tmp_path / "stacks"))


def test_calls_from_different_lines_are_apart() -> None:
    x = retrograd.ones(3)
    with profile(with_stack=True) as prof:
        x.exp()
        x.exp()
    assert [one.count for one in prof.key_averages() if one.key == "aten::exp"] == [2]
    assert [one.count for one in prof.key_averages(group_by_stack_n=1) if one.key == "aten::exp"] == [1, 1]


def operations(library: Any) -> dict[str, int]:
    """Return the operations that a profile counts, by names that both libraries have."""
    from importlib import import_module

    a, b = library.ones(4, 5), library.ones(5, 6)
    image, weight = library.ones(2, 3, 8, 8), library.ones(4, 3, 3, 3)
    with import_module(f"{library.__name__}.profiler").profile(with_flops=True, record_shapes=True) as prof:
        library.mm(a, b)
        library.addmm(library.ones(6), a, b)
        library.bmm(library.ones(2, 4, 5), library.ones(2, 5, 6))
        library.mul(a, a)
        library.add(a, a)
        library.nn.functional.conv2d(image, weight, stride=2)
    names = ("mm", "addmm", "bmm", "mul", "add", "conv2d")
    return {name: sum(one.flops for one in prof.key_averages() if one.key == f"aten::{name}") for name in names}


@pytest.mark.oracle
def test_operations_as_torch_counts_them() -> None:
    assert operations(retrograd) == operations(pytest.importorskip("torch"))


def test_operations_are_counted() -> None:
    layer = nn.Linear(5, 6)
    x = retrograd.ones(4, 5)
    with profile(with_flops=True) as prof:
        layer(x).sum().backward()
    found = {one.key: one.flops for one in prof.key_averages()}
    assert found["aten::linear"] == 2 * 4 * 5 * 6
    assert found["AddmmBackward0"] == 2 * 4 * 5 * 6  # for the weight alone: the input needs no gradient
    assert found["aten::sum"] == 0
    table = prof.key_averages().table(sort_by="flops")
    assert "Total FLOPs" in table
    assert "240.000" in table
