"""Backends of a program's own: what they are given, and that calls do what eager does."""

from __future__ import annotations

import copy
import gc
import pickle
import weakref
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.compiler import explain
from retrograd.compiler._registry import _registered, _tags


class Backend:
    """Keeps the graphs that it is given, and computes them as they are."""

    def __init__(self) -> None:
        self.graphs: list[Any] = []
        self.inputs: list[Any] = []

    def __call__(self, graph: Any, inputs: Any) -> Any:
        self.graphs.append(graph)
        self.inputs.append(inputs)
        return graph.forward


def names(graph: Any) -> list[str]:
    return [str(node.name) for node in graph.graph.nodes if node.op.startswith("call")]


def same(a: Any, b: Any) -> None:
    torch.testing.assert_close(a, b, rtol=0, atol=0)


SCALE = torch.tensor(3.0)
MATRIX = torch.tensor([[1.0, 2.0, 0.0], [0.5, -1.0, 3.0], [2.0, 0.0, -0.5]])
SETTING = {"power": 2}


def of_a_global(x: Any) -> Any:
    return (SCALE * 2) * x ** SETTING["power"]


def by_operators(x: Any) -> Any:
    return x @ MATRIX - x[0].matmul(MATRIX)


def views_and_writes(x: Any) -> Any:
    y = x.T.contiguous()
    y[0] += 1
    z = y.view(-1)
    z.mul_(2)
    return {"y": y, "parts": [z[:2], x.shape[0]]}


def without_gradients(x: Any) -> Any:
    with torch.no_grad():
        weight = x.softmax(-1)
    return (weight * x).sum(), None, "text"


def own_tensors(x: Any) -> Any:
    return x + torch.arange(3.0) * torch.ones(3, dtype=x.dtype) + torch.tensor([1.0, 2.0, 3.0])


def gives_an_argument(x: Any) -> Any:
    return x, x * 2


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 2

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g * 5


def own_function(x: Any) -> Any:
    return Twice.apply(x) + 1


@pytest.mark.parametrize(
    "function",
    [of_a_global, by_operators, views_and_writes, without_gradients, own_tensors, gives_an_argument, own_function],
    ids=lambda f: f.__name__,
)
@pytest.mark.parametrize("needs_grad", [False, True])
def test_values_and_gradients_are_eagers(function: Any, needs_grad: bool) -> None:
    backend = Backend()
    compiled = torch.compile(function, backend=backend)
    for _ in range(3):
        x = torch.randn(3, 3)
        ours, theirs = (x.clone().requires_grad_(needs_grad) for _ in range(2))
        got, expected = compiled(ours), function(theirs)
        flat, wanted = (torch.utils._pytree.tree_leaves(one) for one in (got, expected))
        assert [type(one) for one in flat] == [type(one) for one in wanted]
        for a, b in zip(flat, wanted, strict=True):
            same(a, b) if isinstance(a, torch.Tensor) else None
            assert isinstance(a, torch.Tensor) or a == b
        if needs_grad:
            for result in (flat, wanted):
                sum(one.sum() for one in result if isinstance(one, torch.Tensor) and one.requires_grad).backward()
            same(ours.grad, theirs.grad)
    assert len(backend.graphs) == 1


def test_what_is_read_is_an_input_of_the_graph() -> None:
    backend = Backend()
    model = nn.Sequential(nn.Linear(3, 4), nn.BatchNorm1d(4), nn.Dropout(0.5))
    other = copy.deepcopy(model)
    compiled = torch.compile(model, backend=backend)
    x = torch.randn(5, 3)
    for turn in range(3):
        torch.manual_seed(turn)
        got = compiled(x)
        after = torch.rand(1)
        torch.manual_seed(turn)
        same(got, other(x))
        same(after, torch.rand(1))
        got.sum().backward()
    for ours, theirs in zip(model.buffers(), other.buffers(), strict=True):
        same(ours, theirs)
    assert len(backend.graphs) == 1
    assert names(backend.graphs[0]) == ["linear", "add_", "batch_norm", "dropout"]
    given = {id(one) for one in backend.inputs[0]}
    assert given == {id(one) for one in (x, *model.parameters(), *model.buffers())}
    with torch.no_grad():
        model[0].weight.zero_()
        other[0].weight.zero_()
    torch.manual_seed(0)
    got = compiled(x)
    torch.manual_seed(0)
    same(got, other(x))
    model.eval(), other.eval()
    same(compiled(x), other(x))
    assert len(backend.graphs) == 2


def test_a_new_graph_is_made_when_something_has_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    backend = Backend()
    compiled = torch.compile(of_a_global, backend=backend)
    x = torch.randn(3)
    compiled(x), compiled(x)
    assert len(backend.graphs) == 1
    for change in (torch.randn(4), x.double(), torch.randn(3, requires_grad=True), torch.randn(6)[::2]):
        same(compiled(change), of_a_global(change))
    assert len(backend.graphs) == 5
    monkeypatch.setitem(SETTING, "power", 3)
    same(compiled(x), of_a_global(x))
    assert len(backend.graphs) == 6
    monkeypatch.setitem(globals(), "SCALE", torch.tensor(5.0))
    same(compiled(x), of_a_global(x))
    assert len(backend.graphs) == 7


def test_what_was_given_is_not_kept() -> None:
    compiled = torch.compile(of_a_global, backend=lambda graph, inputs: graph.forward)
    x = torch.randn(3)
    given = weakref.ref(x)
    compiled(x)
    del x
    gc.collect()
    assert given() is None


def test_one_tensor_in_two_places_is_not_two() -> None:
    def f(x: Any, y: Any) -> Any:
        y.mul_(2)
        return x + y

    compiled = torch.compile(f, backend=Backend())
    for pair in (lambda: (torch.ones(2), torch.ones(2)), lambda: (one := torch.ones(2), one)):
        for _ in range(2):
            same(compiled(*pair()), f(*pair()))


def test_values_for_python_divide_a_function(capsys: pytest.CaptureFixture[str]) -> None:
    backend = Backend()

    @torch.compile(backend=backend)
    def f(x: Any) -> Any:
        y = x.sin() + 1
        print("sum", round(y.sum().item(), 3))
        if y.sum() > 0:
            return y.cos()
        return y.exp() * 2

    for _ in range(2):
        same(f(torch.zeros(2)), torch.ones(2).cos())
    assert capsys.readouterr().out == "sum 2.0\nsum 2.0\n"
    assert [names(one) for one in backend.graphs] == [["sin", "add", "sum_1"], ["cos"]]


def test_a_training_step_has_a_graph_of_its_forward() -> None:
    torch.manual_seed(0)
    model = nn.Linear(3, 2)
    other = copy.deepcopy(model)
    backend = Backend()

    def step(model: Any, optimizer: Any, x: Any) -> Any:
        loss = model(x).tanh().square().mean()
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    compiled = torch.compile(step, backend=backend)
    ours, theirs = (torch.optim.SGD(one.parameters(), lr=0.1) for one in (model, other))
    for _ in range(3):
        x = torch.randn(4, 3)
        same(compiled(model, ours, x), step(other, theirs, x))
    same(model.weight, other.weight)
    assert [names(one) for one in backend.graphs] == [["linear", "tanh", "square", "mean"], ["detach"]]


def test_errors_of_a_backend_are_its_own() -> None:
    failed = torch._dynamo.exc.BackendCompilerFailed

    def raises(graph: Any, inputs: Any) -> Any:
        raise ValueError("no")

    with pytest.raises(failed, match="backend='raises' raised:\nValueError: no"):
        torch.compile(lambda x: x + 1, backend=raises)(torch.ones(2))
    with pytest.raises(failed, match="AssertionError: compiler_fn did not return callable"):
        torch.compile(lambda x: x + 1, backend=lambda graph, inputs: None)(torch.ones(2))
    with pytest.raises(RuntimeError, match="Invalid backend: 'nonsense', see"):
        torch.compile(lambda x: x + 1, backend="nonsense")


def test_transforms_around_run_the_function() -> None:
    backend = Backend()
    compiled = torch.compile(lambda x: (x.sin() * x).sum(), backend=backend)
    x = torch.randn(3)
    same(torch.func.grad(compiled)(x), x.sin() + x * x.cos())
    torch.testing.assert_close(torch.func.vmap(compiled)(torch.stack([x, x]))[0], compiled(x))
    torch.testing.assert_close(torch.func.hessian(compiled)(x), torch.diag(2 * x.cos() - x * x.sin()))


def test_registered_names() -> None:
    backend = Backend()
    try:
        torch._dynamo.register_backend(backend, name="keeps")
        assert "keeps" in torch._dynamo.list_backends()
        assert torch._dynamo.lookup_backend("keeps") is backend
        with pytest.raises(AssertionError, match="duplicate name: keeps"):
            torch._dynamo.register_backend(backend, name="keeps")
        same(torch.compile(lambda x: x + 1, backend="keeps")(torch.ones(2)), torch.full((2,), 2.0))
        torch.compiler.set_default_backend("keeps")
        assert torch.compiler.get_default_backend() == "keeps"
        torch.compile(lambda x: x + 2)(torch.ones(2))
        assert len(backend.graphs) == 2
    finally:
        torch.compiler.set_default_backend(None)
        _registered.pop("keeps"), _tags.pop("keeps")
    assert torch.compiler.get_default_backend() == "inductor"
    with pytest.raises(TypeError, match="backend must be a string or callable, got <class 'int'>"):
        torch.compiler.set_default_backend(3)


def keeping(graph: Any, inputs: Any) -> Any:
    keeping.graphs.append(graph)  # type: ignore[attr-defined]
    return graph.forward


def test_copies_and_pickles_of_a_module_keep_its_backend() -> None:
    keeping.graphs = []  # type: ignore[attr-defined]
    model = torch.compile(nn.Linear(2, 2), backend=keeping)
    x = torch.randn(1, 2)
    for one in (model, copy.deepcopy(model), pickle.loads(pickle.dumps(model))):
        same(one(x), model._orig_mod(x))
    assert len(keeping.graphs) == 3  # type: ignore[attr-defined]


def test_explanations() -> None:
    def f(x: Any) -> Any:
        y = x.sin() + 1
        torch._dynamo.graph_break()
        return y * 2

    found = torch._dynamo.explain(f)(torch.ones(2))
    assert (found.graph_count, found.graph_break_count, found.op_count) == (2, 1, 3)
    assert str(found).startswith(
        "Graph Count: 2\nGraph Break Count: 1\nOp Count: 3\nBreak Reasons:\n  Break Reason 1:\n"
    )
    with pytest.warns(FutureWarning, match="explain\\(f, \\*args, \\*\\*kwargs\\) is deprecated"):
        torch._dynamo.explain(f, torch.ones(2))
    compiled = torch.compile(lambda x: x + 1, backend=Backend())
    compiled(torch.ones(2))
    assert "a graph of 1 operation, which the backend computes" in str(explain(compiled))
    assert "torch.add" in compiled.code


def test_programs_beyond_the_limit_run_in_eager() -> None:
    backend = Backend()
    compiled = torch.compile(lambda x: x + 1, backend=backend, recompile_limit=2)
    for size in range(1, 6):
        same(compiled(torch.ones(size)), torch.full((size,), 2.0))
    assert len(backend.graphs) == 2
    compiled = torch.compile(lambda x: x + 1, recompile_limit=1, fullgraph=True, dynamic=False)
    compiled(torch.ones(1))
    with pytest.raises(RuntimeError, match="it needs more than 1 records"):
        compiled(torch.ones(2))


def test_the_old_name_compiles() -> None:
    backend = Backend()
    same(torch._dynamo.optimize(backend)(lambda x: x + 1)(torch.ones(2)), torch.full((2,), 2.0))
    assert len(backend.graphs) == 1


# ---- what is eager's besides values ----
def on_both(function: Any, *calls: Any) -> list[Any]:
    """Call a function in eager and by a backend, each time with arguments of its own; list what came of it."""
    found = []
    for run in (function, torch.compile(function, backend=Backend())):
        found.append([call(run) for call in calls * 3])
    return found


def test_results_that_are_made_of_data_are_new_in_every_call() -> None:
    def call(run: Any) -> Any:
        first, second, third = run(torch.ones(2))
        assert first is second
        before = first.tolist(), third.tolist()
        first.mul_(2)
        third.zero_()
        return before

    def made(x: Any) -> Any:
        own = torch.tensor([1.0, 2.0])
        return own, own, torch.tensor([3.0, 4.0]).add_(x)

    expected, got = on_both(made, call)
    assert got == expected


def test_gradients_are_no_part_of_a_graph() -> None:
    weight = torch.nn.Parameter(torch.ones(2))

    def clipped(run: Any) -> Any:
        weight.grad = torch.full((2,), 3.0)
        return run(torch.ones(2)).tolist(), weight.grad.tolist()

    def of_an_argument(run: Any) -> Any:
        x = torch.ones(2, requires_grad=True)
        x.grad = torch.full((2,), 5.0)
        return run(x).tolist(), None if x.grad is None else x.grad.tolist()

    def other_data(run: Any) -> Any:
        x = torch.ones(2)
        return run(x).tolist(), x.tolist()

    def sets(x: Any) -> Any:
        x.data = torch.zeros(3)
        return x + 1

    def clips(x: Any) -> Any:
        return torch.nn.utils.clip_grad_norm_([weight], 1.0) * x

    for function, call in ((clips, clipped), (lambda x: x.grad * 2, of_an_argument), (sets, other_data)):
        expected, got = on_both(function, call)
        assert got == expected


def test_containers_and_sizes_are_those_of_eager() -> None:
    names = ["a", "b"]

    def gives(items: Any, table: Any) -> Any:
        return items, {"table": table, "names": names}, items[0] * 2, items[0].shape, (items, items[0])

    def call(run: Any) -> Any:
        items, table = [torch.ones(2)], {"k": 1}
        found = run(items, table)
        assert found[0] is items
        assert found[4][0] is items
        assert found[4][1] is items[0]
        assert found[1]["table"] is table
        assert found[1]["names"] is names
        return found[2].tolist(), type(found[3]), [type(one) for one in found[3]]

    expected, got = on_both(gives, call)
    assert got == expected


def test_a_captured_generator_goes_on_where_it_stands() -> None:
    own, given = torch.Generator(), torch.Generator()

    def draws(x: Any, generator: Any) -> Any:
        return torch.rand(2, generator=own) + torch.rand(2, generator=generator) * x

    found = []
    for run in (draws, torch.compile(draws, backend=Backend())):
        own.manual_seed(1)
        given.manual_seed(2)
        found.append([run(torch.ones(2), given).tolist() for _ in range(3)])
    assert found[0] == found[1]


@pytest.mark.parametrize("lay", [lambda x: x[::2, ::2], lambda x: x.T, lambda x: x[:1].expand(4, 4)])
def test_arguments_are_recorded_with_their_layout(lay: Any) -> None:
    """What `contiguous` gives is another tensor, or the argument."""

    def function(x: Any) -> Any:
        return x.contiguous(), x.T, x.reshape(-1), x * 2

    expected, got = on_both(function, lambda run: [one.stride() for one in run(lay(torch.arange(16.0).reshape(4, 4)))])
    assert got == expected
