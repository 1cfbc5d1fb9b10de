"""torch.monitor, attention biases, module trackers, pickles shown: small tools give what torch's give."""

from __future__ import annotations

import importlib
import io
import pickle
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd


def counted(torch: Any) -> Any:
    monitor = importlib.import_module(f"{torch.__name__}.monitor")
    seen: list[Any] = []
    handle = monitor.register_event_handler(lambda event: seen.append((event.name, dict(event.data))))
    kinds = monitor.Aggregation
    stat = monitor.Stat("s", (kinds.SUM, kinds.MEAN, kinds.MAX, kinds.MIN, kinds.COUNT), timedelta(hours=1), 3)
    for value in (1, 2, 4.5, 7):
        stat.add(value)
    monitor.unregister_event_handler(handle)
    stat = monitor.Stat("t", (kinds.SUM,), timedelta(hours=1), 1)
    stat.add(1)
    return seen, stat.count, [value for _, value in stat.get().items()]


def masked(torch: Any) -> Any:
    bias = importlib.import_module(f"{torch.__name__}.nn.attention.bias")
    query = torch.arange(8.0).reshape(1, 1, 2, 4)
    key = torch.arange(16.0).reshape(1, 1, 4, 4) / 16
    made = []
    for mask in (bias.causal_lower_right(2, 4), bias.causal_upper_left(2, 4)):
        found = torch.nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=mask)
        made.append((mask._materialize().tolist(), [round(one, 5) for one in found.flatten().tolist()], str(mask)))
    with pytest.raises(ValueError, match="CausalBias should not be used with causal=True"):
        torch.nn.functional.scaled_dot_product_attention(query, key, key, attn_mask=mask, is_causal=True)
    return made


def tracked(torch: Any) -> Any:
    tracker = importlib.import_module(f"{torch.__name__}.utils.module_tracker").ModuleTracker()
    net = torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.Sequential(torch.nn.Linear(2, 1)))
    seen: list[Any] = []

    def note(*_: Any) -> None:
        seen.append((sorted(tracker.parents), tracker.is_bw))

    net[1][0].register_forward_hook(note)
    net[0].weight.register_hook(note)
    with tracker:
        net(torch.ones(1, 2)).sum().backward()
    return seen, tracker.parents


def shown(torch: Any) -> Any:
    show = importlib.import_module(f"{torch.__name__}.utils.show_pickle")
    written = io.BytesIO(pickle.dumps({"a": timedelta(1), "c": [2]}))
    return repr(show.DumpUnpickler(written).load())


def steps(torch: Any) -> Any:
    profiler = torch.autograd.profiler
    tracker = profiler.KinetoStepTracker
    before = tracker.current_step()
    tracker.init_step_count("one")
    tracker.init_step_count("two")
    made = [tracker.increment_step(name) - before for name in ("one", "one", "two")]
    unique = profiler.EnforceUnique()
    unique.see("a", 1)
    with pytest.raises(RuntimeError, match="duplicate key: "):
        unique.see("a", 1)
    return made, tracker.erase_step_count("one"), tracker.erase_step_count("three")


def options(torch: Any) -> Any:
    d = torch.distributed
    made = [getattr(d, f"{name}Options")() for name in ("AllToAll", "Broadcast", "Gather", "Barrier")]
    answers = [one.timeout for one in made], made[1].rootRank, made[3].device_ids
    config = d.BackendConfig(d.Backend("cpu:gloo,cuda:nccl"))
    return (
        *answers,
        repr(config),
        d.get_default_backend_for_device("cpu"),
        d.supports_complex(d.ReduceOp.SUM),
        d.supports_complex(d.ReduceOp.MAX),
        d.get_debug_level().name,
    )


@pytest.mark.oracle
@pytest.mark.parametrize("program", [counted, masked, tracked, shown, steps, options])
def test_a_tool_gives_what_torchs_gives(program: Any) -> None:
    torch = pytest.importorskip("torch")
    assert program(retrograd) == program(torch)


def test_a_baton_is_held_by_one(tmp_path: Path) -> None:
    baton = importlib.import_module("retrograd.utils.file_baton").FileBaton
    first, second = (baton(str(tmp_path / "lock")) for _ in range(2))
    assert first.try_acquire()
    assert not second.try_acquire()
    first.release()
    second.wait()
    assert second.try_acquire()
    second.release()


def test_settings_of_files_are_kept() -> None:
    config = importlib.import_module("retrograd.utils.serialization.config")
    config.save.compute_crc32 = False
    try:
        assert not retrograd.serialization.get_crc32_options()
    finally:
        config.save.compute_crc32 = True


@pytest.mark.oracle
def test_einsum_hands_operands_of_a_list_on_one_by_one() -> None:
    torch = pytest.importorskip("torch")
    found = []
    for library in (retrograd, torch):
        fx = importlib.import_module(f"{library.__name__}.fx")
        graph = fx.Graph()
        tracer = fx.proxy.GraphAppendingTracer(graph)
        a, b = (fx.Proxy(graph.placeholder(name), tracer) for name in "ab")
        library.einsum("ij,jk->ik", [a, b])
        found.append([(node.op, str(node.args)) for node in graph.nodes])
    assert found[0] == found[1]
