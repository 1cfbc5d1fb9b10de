"""torch.jit.trace: what is recorded, what is frozen and warned of, and how a trace is checked."""

from __future__ import annotations

import copy
import subprocess
import sys
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("jit_traces")


def seen(torch: Any, function: Callable[..., Any], *args: Any, **options: Any) -> list[Any]:
    """Return what a trace warns of, or the error."""
    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        result = caught(torch.jit.trace, function, *args, **options)
    said = [str(w.message).split("\n")[0] for w in found if w.category.__name__ == "TracerWarning"]
    return [result if isinstance(result, Exception) else "traced", *said]


def net(torch: Any) -> Any:
    torch.manual_seed(0)
    made = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.ReLU(),
        torch.nn.Dropout(),
        torch.nn.MaxPool2d(2),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 2),
    ).eval()
    with torch.no_grad():
        for p in made.parameters():
            p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7 - 0.5)
    return made


def plane(torch: Any, *shape: int) -> Any:
    count = 1
    for n in shape:
        count *= n
    return torch.arange(float(count)).reshape(shape) / 10


# ---- Python's questions ----
@program
def a_branch_is_frozen(torch: Any) -> Any:
    def f(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x - 1

    traced = torch.jit.trace(f, torch.ones(2))
    return seen(torch, f, torch.ones(2)), traced(-torch.ones(3))


@program
def values_that_leave_the_trace(torch: Any) -> Any:
    x = torch.ones(2, 3)
    functions = [
        lambda x: x * float(x.sum()),
        lambda x: x * int(x.sum()),
        lambda x: x * x.sum().item(),
        lambda x: x * x.tolist()[0][0],
        lambda x: x * len(x),
        lambda x: sum(row for row in x),
        lambda x: x * torch.tensor(2.0),
        lambda x: x if x.size(0) > 1 else x + 1,
        lambda x: x.numpy()[0, 0] * x,
    ]
    return [seen(torch, f, x) for f in functions]


@program
def loops_over_sizes_run_as_often_as_with_the_example(torch: Any) -> Any:
    def f(x: Any) -> Any:
        for _ in range(x.size(0)):
            x = x + 1
        return x

    return torch.jit.trace(f, torch.zeros(3))(torch.zeros(5))


@program
def sizes_are_those_of_the_run(torch: Any) -> Any:
    def f(x: Any) -> Any:
        rows, columns = x.shape
        places = torch.arange(rows).unsqueeze(1) + torch.zeros(rows, columns * 2)
        return x.view(rows * columns), places, x.new_ones(rows), x.sum() / x.numel(), x[: rows // 2] * columns**0.5

    traced = torch.jit.trace(f, torch.ones(2, 3))
    return traced(plane(torch, 4, 5))


@program
def a_size_is_given_as_a_tensor(torch: Any) -> Any:
    return torch.jit.trace(lambda x: (x.size(0), x * 1), torch.ones(2, 3))(torch.ones(5, 1))


# ---- what a trace gives ----
@program
def outputs(torch: Any) -> Any:
    x = torch.ones(2)
    functions = [
        lambda x: None,
        lambda x: "a",
        lambda x: 3,
        lambda x: (x, 3),
        lambda x: {"a": x * 1},
        lambda x: (x, [x + 1, x]),
        lambda x: [x, x * 2],
    ]
    return [seen(torch, f, x) for f in functions]


@program
def nested_outputs(torch: Any) -> Any:
    x = torch.ones(2)
    traced = torch.jit.trace(lambda x: {"a": x * 1, "b": x + 1}, x, strict=False)
    return traced(x)


@program
def nested_inputs(torch: Any) -> Any:
    def f(pair: Any, table: Any) -> Any:
        return pair[0] + pair[1] * table["a"]

    x = torch.ones(2)
    return torch.jit.trace(f, ((x, x * 2), {"a": x * 3}))((x, x), {"a": x * 5})


@program
def inputs_by_keyword(torch: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return x - y

    traced = torch.jit.trace(f, example_kwarg_inputs={"x": torch.ones(2), "y": torch.zeros(2)})
    return traced(y=torch.ones(1), x=torch.zeros(1))


@program
def inputs_that_are_refused(torch: Any) -> Any:
    def f(x: Any, y: Any) -> Any:
        return x + y

    x = torch.ones(2)
    return [caught(torch.jit.trace, f, (x,)), caught(torch.jit.trace, f, (x, 3))]


@program
def calls_of_a_traced_function(torch: Any) -> Any:
    def f(x: Any) -> Any:
        return x * 2

    traced = torch.jit.trace(f, torch.ones(2))
    calls = [lambda: traced(), lambda: traced(3), lambda: traced(torch.ones(1), torch.ones(1)), lambda: traced(z=1)]
    return [caught(call) for call in calls], traced(x=torch.ones(1)), traced.name, str(traced.schema)


@program
def constants(torch: Any) -> Any:
    fixed, learned = torch.ones(2) * 3, torch.ones(2, requires_grad=True)
    traced = torch.jit.trace(lambda x: x * fixed, torch.ones(2))
    return traced(torch.ones(2)), str(caught(torch.jit.trace, lambda x: x * learned, torch.ones(2))).split("\n")[0]


# ---- operations ----
@program
def writes_in_place(torch: Any) -> Any:
    def f(x: Any) -> Any:
        y = x.clone()
        row = y[0]
        row.add_(1)
        y[:, 1] = 5
        y += 1
        y.mul_(2)
        return y, row

    return torch.jit.trace(f, torch.zeros(2, 3))(torch.ones(3, 3))


@program
def several_outputs_of_one_operation(torch: Any) -> Any:
    def f(x: Any) -> Any:
        top, at = x.max(1)
        first, *rest = torch.split(x, 1, 1)
        return top, at, first, rest[0], torch.sort(x).indices, x.T, x.mT

    return torch.jit.trace(f, torch.zeros(2, 3))(plane(torch, 4, 3))


@program
def reflected_operators(torch: Any) -> Any:
    return torch.jit.trace(lambda x: (1 - x, 2 / x, 2**x, 7 // x, x @ x, -x, abs(x), x > 0, ~(x > 0)), torch.ones(3))(
        torch.arange(1.0, 4.0)
    )


@program
def gradients_go_through_a_trace(torch: Any) -> Any:
    traced = torch.jit.trace(lambda x: (x * x).sum(), torch.ones(3))
    x = torch.arange(3.0, requires_grad=True)
    traced(x).backward()
    return x.grad


@program
def a_function_with_a_backward_of_its_own(torch: Any) -> Any:
    class Triple(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            return g * 3

    traced = torch.jit.trace(lambda x: Triple.apply(x).sum(), torch.ones(3), check_trace=False)
    x = torch.arange(3.0, requires_grad=True)
    traced(x).backward()
    return traced(x), x.grad


# ---- modules ----
@program
def a_traced_module(torch: Any) -> Any:
    module = net(torch)
    traced = torch.jit.trace(module, plane(torch, 1, 1, 6, 6))
    image = plane(torch, 3, 1, 6, 6)
    return (
        type(traced),
        isinstance(traced, torch.jit.ScriptModule),
        traced.original_name,
        str(traced),
        list(traced.state_dict()),
        [p is q for p, q in zip(traced.parameters(), module.parameters(), strict=True)],
        torch.allclose(traced(image), module(image)),
        traced(image),
    )


@program
def the_mode_of_the_example_stays(torch: Any) -> Any:
    module = net(torch)
    traced = torch.jit.trace(module, plane(torch, 1, 1, 6, 6))
    image = plane(torch, 2, 1, 6, 6)
    before = traced(image)
    traced.train()
    return traced.training, torch.equal(traced(image), before), module.training


@program
def a_traced_module_learns(torch: Any) -> Any:
    module = torch.nn.Linear(2, 1)
    with torch.no_grad():
        module.weight.fill_(0.5)
        module.bias.fill_(0.0)
    traced = torch.jit.trace(module, torch.ones(1, 2))
    optimizer = torch.optim.SGD(traced.parameters(), lr=0.1)
    traced(torch.ones(3, 2)).sum().backward()
    optimizer.step()
    return module.weight, traced.weight, traced(torch.ones(1, 2))


@program
def a_traced_module_loads_a_state(torch: Any) -> Any:
    traced = torch.jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2))
    traced.load_state_dict({"weight": torch.ones(1, 2), "bias": torch.zeros(1)})
    twin = copy.deepcopy(traced)
    traced.to(torch.float64)
    return traced(torch.ones(1, 2, dtype=torch.float64)), twin(torch.ones(1, 2)), type(twin)


@program
def several_methods(torch: Any) -> Any:
    class Pair(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.nn.Parameter(torch.tensor(3.0))

        def forward(self, x: Any) -> Any:
            return x * self.scale

        def back(self, x: Any) -> Any:
            return x / self.scale

    traced = torch.jit.trace_module(Pair(), {"forward": torch.ones(2), "back": torch.ones(2)})
    x = torch.arange(3.0)
    return traced(x), traced.back(x), caught(torch.jit.trace_module, Pair(), {"none": torch.ones(2)})


@program
def calls_of_a_traced_module(torch: Any) -> Any:
    traced = torch.jit.trace(torch.nn.Linear(2, 1), torch.ones(1, 2))
    calls = [lambda: traced(), lambda: traced(3), lambda: traced.none]
    return [str(caught(call)).partition(" Declaration")[0].split("\n")[0] for call in calls]


@program
def batch_norm_counts(torch: Any) -> Any:
    module = torch.nn.BatchNorm1d(2)
    traced = torch.jit.trace(module, torch.ones(2, 2), check_trace=False)
    traced(plane(torch, 3, 2))
    return traced.num_batches_tracked, traced.running_mean


@program
def recurrent_layers_take_other_lengths(torch: Any) -> Any:
    module = torch.nn.LSTM(2, 3, batch_first=True)
    traced = torch.jit.trace(module, torch.ones(2, 4, 2))
    x = plane(torch, 3, 5, 2)
    return [torch.allclose(one, other) for one, other in zip(traced(x)[1], module(x)[1], strict=True)]


@program
def layers_of_one_state_take_other_lengths(torch: Any) -> Any:
    shown = []
    for module in (torch.nn.RNN(2, 3), torch.nn.GRU(2, 3, 2, bidirectional=True)):
        traced = torch.jit.trace(module, torch.ones(2, 4, 2))
        x = plane(torch, 3, 5, 2)
        shown.append([torch.allclose(one, other) for one, other in zip(traced(x), module(x), strict=True)])
    return shown


@program
def layers_with_a_weight_that_is_computed(torch: Any) -> Any:
    module = torch.nn.utils.parametrizations.weight_norm(torch.nn.Linear(2, 2))
    traced = torch.jit.trace(module, torch.ones(1, 2))
    return torch.allclose(traced(plane(torch, 3, 2)), module(plane(torch, 3, 2)))


@program
def scripted_functions_keep_their_branches_inside_a_trace(torch: Any) -> Any:
    @torch.jit.script
    def chosen(x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x * 2
        return x - 1

    @torch.jit.script_if_tracing
    def also(x: torch.Tensor) -> torch.Tensor:
        if bool(x.sum() > 0):
            return x + 10
        return x - 10

    traced = torch.jit.trace(lambda x: also(chosen(x)), torch.ones(2))
    return traced(torch.ones(1)), traced(-torch.ones(1)), also(torch.ones(1))


@program
def whether_a_trace_is_recorded(torch: Any) -> Any:
    seen = []

    def f(x: Any) -> Any:
        seen.append((torch.jit.is_tracing(), torch.jit.is_scripting(), torch._C._get_tracing_state() is not None))
        return x * 1

    torch.jit.trace(f, torch.ones(1), check_trace=False)
    f(torch.ones(1))
    return seen


# ---- checks ----
@program
def a_function_that_changes_is_refused(torch: Any) -> Any:
    count = [0]

    def f(x: Any) -> Any:
        count[0] += 1
        return x * count[0] if count[0] % 2 else x + 1

    error = caught(torch.jit.trace, f, torch.ones(2))
    return type(error), str(error).split("\n")[:3]


@program
def other_inputs_are_checked(torch: Any) -> Any:
    def f(x: Any) -> Any:
        return x * 2 if x.sum() > 0 else x

    shown = seen(torch, f, torch.ones(2), check_inputs=[(-torch.ones(2),)])
    return type(shown[0]), shown[1:]


@program
def chance_is_warned_of(torch: Any) -> Any:
    torch.manual_seed(0)
    return (
        [text[:60] for text in seen(torch, lambda x: x * torch.rand(100), torch.ones(100))],
        seen(torch, torch.nn.Dropout().eval(), torch.ones(3)),
        [text[:60] for text in seen(torch, torch.nn.Dropout(), torch.ones(100))],
        seen(torch, torch.nn.Dropout(), torch.ones(3), check_trace=False),
    )


test_as_torch, test_recording_is_torchs = program.tests()


def test_a_trace_has_a_graph_and_its_code() -> None:
    traced = retrograd.jit.trace(lambda x: retrograd.relu(x) + 1, retrograd.ones(2))
    assert [node.op for node in traced.graph.nodes] == ["placeholder", "call_function", "call_function", "output"]
    assert "torch.relu(x)" in traced.code


def test_the_module_that_was_traced_is_as_before() -> None:
    module = retrograd.nn.Linear(2, 2)
    before = set(vars(module))
    retrograd.jit.trace(module, retrograd.ones(1, 2))
    assert set(vars(module)) == before
    assert type(module(retrograd.ones(1, 2))) is retrograd.Tensor


def test_no_name_stays_replaced() -> None:
    zeros, apply = retrograd.zeros, retrograd.autograd.Function.apply
    with pytest.raises(ZeroDivisionError):
        retrograd.jit.trace(lambda x: 1 / 0, retrograd.ones(1))
    assert retrograd.zeros is zeros
    assert retrograd.autograd.Function.apply == apply


AFTER_A_TRACE = """
import retrograd
retrograd.jit.trace(lambda x: x.sin(), retrograd.ones(3))
assert retrograd.relu_ is retrograd.nn.functional.relu_
assert retrograd.exp_.__wrapped__.__wrapped__ is retrograd.Tensor.exp_
"""


def test_functions_that_write_in_place_are_made_of_methods_that_do_not_record() -> None:
    subprocess.run(
        [sys.executable, "-c", AFTER_A_TRACE], check=True, timeout=120
    )  # functions are made when first asked for
