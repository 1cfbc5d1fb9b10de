"""Programs with hooks, branches on data and modes: what jit.trace, export and make_fx make of them computes what torch's does."""

from __future__ import annotations

import importlib
import io
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd

theirs: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


def traced(torch: Any, module: Any, *args: Any) -> Any:
    return torch.jit.trace(module, args)


def exported(torch: Any, module: Any, *args: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.export").export(module, args).module()


def made_fx(torch: Any, module: Any, *args: Any) -> Any:
    return importlib.import_module(f"{torch.__name__}.fx.experimental.proxy_tensor").make_fx(module)(*args)


def same(shown: Callable[[Any], Any]) -> None:
    """Let a program show in both libraries what it computes."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        assert shown(retrograd) == shown(theirs)


def of(torch: Any, forward: Callable[..., Any]) -> Any:
    """Return a module with a parameter `w` and this forward."""

    class Made(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.w = torch.nn.Parameter(torch.ones(2))

        def forward(self, x: Any) -> Any:
            return forward(self, x)

    return Made()


# ---- hooks ----
def hooked(torch: Any) -> Any:
    module = of(torch, lambda self, x: x + self.w)
    module.register_forward_pre_hook(lambda module, args: (args[0] * 3,))
    module.register_forward_hook(lambda module, args, out: out * 2)
    return module


@pytest.mark.parametrize("record", [traced, exported])
def test_hooks_of_the_whole_run_once(record: Any) -> None:
    same(lambda torch: record(torch, hooked(torch), torch.ones(2))(torch.ones(2)).tolist())


def test_a_hook_of_the_trace_runs_after_those_in_it() -> None:
    def shown(torch: Any) -> Any:
        made = traced(torch, hooked(torch), torch.ones(2))
        made.register_forward_hook(lambda module, args, out: out * 5)
        return made(torch.ones(2)).tolist()

    same(shown)


def test_a_hook_of_the_backward_cannot_be_traced() -> None:
    def shown(torch: Any) -> Any:
        module = torch.nn.Sequential(torch.nn.Linear(2, 2))
        module[0].register_full_backward_hook(lambda module, inputs, outputs: None)
        with pytest.raises(ValueError, match="backward hooks") as found:
            traced(torch, module, torch.ones(2))
        return str(found.value)

    same(shown)


# ---- branches on data ----
def branching(torch: Any) -> Any:
    return of(torch, lambda self, x: torch.cond(x.sum() > 0, lambda x: x.sin(), lambda x: x.cos(), (x,)))


def looping(torch: Any) -> Any:
    return of(torch, lambda self, x: torch.while_loop(lambda x: x.sum() < 9, lambda x: (x + 1,), (x,)))


@pytest.mark.parametrize("program", [branching, looping])
def test_a_trace_refuses_branches_on_data(program: Any) -> None:
    def shown(torch: Any) -> Any:
        with pytest.raises(RuntimeError) as found:
            traced(torch, program(torch), torch.ones(2))
        return str(found.value).split("\n")[0]

    same(shown)


@pytest.mark.parametrize("record", [exported, made_fx])
@pytest.mark.parametrize("program", [branching, looping])
def test_export_and_make_fx_refuse_branches_on_data(record: Any, program: Any) -> None:
    with pytest.raises(NotImplementedError, match=r"its graph would keep what runs with the example"):
        record(retrograd, program(retrograd), retrograd.ones(2))


@pytest.mark.parametrize("record", [exported, made_fx])
def test_a_branch_on_a_python_value_is_one_of_the_program(record: Any) -> None:
    def shown(torch: Any) -> Any:
        module = of(torch, lambda self, x: torch.cond(x.shape[0] > 1, lambda x: x.sin(), lambda x: x.cos(), (x,)))
        return record(torch, module, torch.ones(2))(torch.zeros(2)).tolist()

    same(shown)


# ---- modes ----
def product(x: Any) -> Any:
    return x.unsqueeze(1) @ x.unsqueeze(0)


def casting_inside(torch: Any) -> Any:
    def forward(self: Any, x: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            low = product(x / 3)
            with torch.autocast("cpu", enabled=False):
                high = product(x / 3)
        return low, high, product(x / 3)

    return of(torch, forward)


def numbers(results: Any) -> Any:
    return [(str(each.dtype), each.tolist()) for each in results]


@pytest.mark.parametrize("record", [traced, exported])
def test_autocast_inside_of_a_program_is_recorded(record: Any) -> None:
    def shown(torch: Any) -> Any:
        made = record(torch, casting_inside(torch), torch.ones(2))
        again = made(torch.full((2,), 2.0))
        return numbers(again), torch.is_autocast_enabled("cpu")

    same(shown)


@pytest.mark.parametrize("record", [traced, exported])
def test_autocast_around_a_recording_is_in_a_trace_and_not_in_an_export(record: Any) -> None:
    def shown(torch: Any) -> Any:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            made = record(torch, of(torch, lambda self, x: product(x) * self.w), torch.ones(2))
            under = made(torch.ones(2)).dtype
        return str(made(torch.ones(2)).dtype), str(under)

    same(shown)


def without_grad(torch: Any, self: Any, x: Any) -> Any:
    with torch.no_grad():
        y = x * self.w
        with torch.enable_grad():
            z = y * self.w
        u = z * self.w
    return y + z + u + self.w


def switched_for_good(torch: Any, self: Any, x: Any) -> Any:
    torch.set_grad_enabled(False)
    y = x * self.w
    torch.set_grad_enabled(True)
    return y + self.w


def in_inference(torch: Any, self: Any, x: Any) -> Any:
    with torch.inference_mode():
        y = x * self.w
    return y + self.w


def decorated(torch: Any, self: Any, x: Any) -> Any:
    return torch.no_grad()(lambda: x * self.w)() + self.w


@pytest.mark.parametrize("record", [traced, exported])
@pytest.mark.parametrize("program", [without_grad, switched_for_good, in_inference, decorated])
def test_gradients_are_those_of_the_modes_that_are_recorded(record: Any, program: Any) -> None:
    def shown(torch: Any) -> Any:
        made = record(torch, of(torch, lambda self, x: program(torch, self, x)), torch.full((2,), 3.0))
        out = made(torch.full((2,), 5.0))
        out.sum().backward()
        with torch.no_grad():
            tracks = record is exported and made(torch.ones(2)).requires_grad
        return out.tolist(), [p.grad.tolist() for p in made.parameters()], tracks, torch.is_grad_enabled()

    same(shown)


def test_a_mode_of_a_child_is_recorded_with_its_buffers_and_kept_in_files() -> None:
    def shown(torch: Any) -> Any:
        class Counting(torch.nn.Module):  # type: ignore[misc, name-defined]
            def __init__(self) -> None:
                super().__init__()
                self.w = torch.nn.Parameter(torch.ones(2))
                self.register_buffer("seen", torch.zeros(2))

            def forward(self, x: Any) -> Any:
                with torch.no_grad():
                    self.seen.add_(x)
                    with torch.autocast("cpu", dtype=torch.bfloat16):
                        low = product(x * self.w)
                return x * self.w * 2 + low.float().sum(0)

        home = importlib.import_module(f"{torch.__name__}.export")
        module = torch.nn.Sequential(Counting(), Counting())
        program = home.export(module, (torch.ones(2),))
        file = io.BytesIO()
        home.save(program, file)
        file.seek(0)
        results = []
        for made in (program.module(), home.load(file).module()):
            out = made(torch.full((2,), 2.0))
            out.sum().backward()
            results.append(
                (out.tolist(), [p.grad.tolist() for p in made.parameters()], [b.tolist() for b in made.buffers()])
            )
        return results

    same(shown)


def test_a_trace_with_autocast_is_kept_in_files() -> None:
    def shown(torch: Any) -> Any:
        file = io.BytesIO()
        torch.jit.save(traced(torch, casting_inside(torch), torch.ones(2)), file)
        file.seek(0)
        return numbers(torch.jit.load(file)(torch.full((2,), 2.0)))

    same(shown)


def test_the_graph_calls_a_part_as_torchs_does() -> None:
    def shown(torch: Any) -> Any:
        module = of(torch, lambda self, x: decorated(torch, self, x))
        program = importlib.import_module(f"{torch.__name__}.export").export(module, (torch.ones(2),))
        call = next(node for node in program.graph.nodes if "wrap" in str(node.target))
        return str(call.target), call.args[0], [str(each) for each in call.args[2:]]

    same(shown)


def test_parts_of_an_export_keep_no_values_of_the_example() -> None:
    program = retrograd.export.export(casting_inside(retrograd), (retrograd.ones(2),))
    parts = list(program.graph_module.children())
    values = [node.meta["val"] for part in parts for node in part.graph.nodes if "val" in node.meta]
    assert parts
    assert values
    assert all(value.is_meta for value in values if isinstance(value, retrograd.Tensor))
