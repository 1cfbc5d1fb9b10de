"""No more than one line of the library in a traceback, whichever package a mistake is made in. See Note [Tracebacks]."""

from __future__ import annotations

import traceback
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import debug, fx, nn
from retrograd._places import is_own
from retrograd.export import Dim, export
from retrograd.fx.experimental.proxy_tensor import make_fx
from retrograd.utils.data import (
    BatchSampler,
    ConcatDataset,
    DataLoader,
    Dataset,
    RandomSampler,
    StackDataset,
    Subset,
    TensorDataset,
    default_collate,
    random_split,
)

x = torch.ones(2, 3)


def leaf() -> Any:
    return torch.ones(3, requires_grad=True)


def fails(*given: Any) -> Any:
    raise KeyError("mine")


class Net(nn.Module):
    """A model that takes three features."""

    def __init__(self) -> None:
        super().__init__()
        self.fc = nn.Linear(3, 2)

    def forward(self, given: Any) -> Any:
        return self.fc(given)


class Branch(nn.Module):
    """A model that asks for a value."""

    def forward(self, given: Any) -> Any:
        return given if given.sum() > 0 else -given


class Broken(nn.Module):
    """A model that fails."""

    def forward(self, given: Any) -> Any:
        return given.view(7)


def custom(backward: Callable[..., Any], forward: Callable[..., Any] = lambda ctx, given: given * 2) -> Any:
    """Return a custom Function of two functions."""
    return type("Custom", (torch.autograd.Function,), {name: staticmethod(f) for name, f in locals().items()})


def sgd() -> Any:
    return torch.optim.SGD([leaf()], lr=0.1)


def graph_with(*calls: Callable[[Any], Any]) -> Any:
    """Make a graph, and do things to it."""
    graph = fx.symbolic_trace(Net()).graph
    for call in calls:
        call(graph)
    return graph


CALLS: dict[str, Callable[[], Any]] = {
    "fx: a branch": lambda: fx.symbolic_trace(Branch()),
    "fx: a loop": lambda: fx.symbolic_trace(lambda given: list(given)),
    "fx: no program": lambda: fx.symbolic_trace(3),  # type: ignore[arg-type]
    "fx: the program fails": lambda: fx.symbolic_trace(fails),
    "fx: a call": lambda: fx.symbolic_trace(Net())(torch.ones(2, 9)),
    "fx: a missing module": lambda: graph_with(lambda graph: graph.call_module("nope"), lambda graph: graph.lint()),
    "fx: a node in use": lambda: graph_with(lambda graph: graph.erase_node(next(iter(graph.nodes)))),
    "fx: an unknown operation": lambda: fx.Graph().create_node("nope", "given"),
    "fx: no function": lambda: fx.Graph().call_function("nope"),  # type: ignore[arg-type]
    "fx: no node": lambda: graph_with(lambda graph: next(iter(graph.nodes)).append(3)),
    "fx: a graph of nothing": lambda: fx.GraphModule(3, fx.Graph()),  # type: ignore[arg-type]
    "fx: a submodule": lambda: fx.symbolic_trace(Net()).get_submodule("nope"),
    "fx: a pattern": lambda: fx.replace_pattern(fx.symbolic_trace(Net()), 3, 4),  # type: ignore[arg-type]
    "fx: an interpreter": lambda: fx.Interpreter(fx.symbolic_trace(Net())).run(torch.ones(2, 9)),
    "fx: an interpreter without arguments": lambda: fx.Interpreter(fx.symbolic_trace(Net())).run(),
    "fx: make_fx": lambda: make_fx(lambda given: given.view(7))(x),
    "export: a branch": lambda: export(Branch(), (x,)),
    "export: the program fails": lambda: export(Broken(), (x,)),
    "export: no arguments": lambda: export(Net(), ()),
    "export: an unknown argument": lambda: export(Net(), (x,), {"nope": 1}),
    "export: no tuple": lambda: export(Net(), x),
    "export: no module": lambda: export(fails, (x,)),
    "export: another size": lambda: export(Net(), (x,)).module()(torch.ones(4, 3)),
    "export: too many arguments": lambda: export(Net(), (x,)).module()(x, x),
    "export: a file": lambda: torch.export.load("/nowhere"),
    "export: a name of a size": lambda: Dim("1a"),
    "export: sizes of nothing": lambda: export(Net(), (x,), dynamic_shapes={"nope": {0: Dim("b")}}),
    "export: a size that is not there": lambda: export(Net(), (x,), dynamic_shapes=({5: Dim("b")},)),
    "export: a size out of range": lambda: export(Net(), (x,), dynamic_shapes=({0: Dim("b", min=5)},)),
    "jit: no program": lambda: torch.jit.script(3),
    "jit: the program fails": lambda: torch.jit.trace(Broken(), x),
    "jit: a traced call": lambda: torch.jit.trace(Net(), x)(torch.ones(2, 9)),
    "jit: a scripted call": lambda: torch.jit.script(Net())(torch.ones(2, 9)),
    "jit: no arguments": lambda: torch.jit.script(Net())(),
    "jit: an attribute": lambda: torch.jit.script(Net()).nope,
    "jit: a file": lambda: torch.jit.load("/nowhere"),
    "jit: in training": lambda: torch.jit.freeze(torch.jit.script(Net())),
    "jit: a fork": lambda: torch.jit.fork(fails),
    "func: no scalar": lambda: torch.func.grad(lambda given: given)(x),
    "func: no tensor": lambda: torch.func.grad(lambda given: 3)(x),
    "func: an argument that is not there": lambda: torch.func.grad(torch.sum, argnums=3)(x),
    "func: a cotangent": lambda: torch.func.vjp(torch.sin, x)[1](torch.ones(9)),
    "func: a structure": lambda: torch.func.vjp(lambda given: (given, given), x)[1](x),
    "func: a tangent": lambda: torch.func.linearize(torch.sin, x)[1](torch.ones(9)),
    "func: the function fails": lambda: torch.func.hessian(fails)(x),
    "func: functionalize": lambda: torch.func.functionalize(fails)(x),
    "func: dimensions": lambda: torch.vmap(torch.sin, in_dims=5)(x),
    "func: sizes": lambda: torch.vmap(torch.add)(x, torch.ones(3)),
    "func: random numbers": lambda: torch.vmap(lambda given: torch.rand(3) + given)(x),
    "func: parameters": lambda: torch.func.functional_call(Net(), {"nope": x}, x, strict=True),
    "func: no modules": lambda: torch.func.stack_module_state([]),
    "optim: a rate": lambda: torch.optim.SGD([leaf()], lr=-1),
    "optim: a tensor": lambda: torch.optim.Adam(leaf()),
    "optim: no leaf": lambda: torch.optim.Adam([leaf() * 2]),
    "optim: no parameters": lambda: torch.optim.Adam([{"lr": 3}]),
    "optim: an unknown option": lambda: torch.optim.Adam([leaf()], momentum=3),  # type: ignore[call-arg]
    "optim: a state": lambda: torch.optim.Adam([leaf()]).load_state_dict({}),
    "optim: another state": lambda: sgd().load_state_dict(torch.optim.SGD([leaf(), leaf()], lr=1).state_dict()),
    "optim: the closure fails": lambda: sgd().step(fails),
    "optim: the closure of LBFGS fails": lambda: torch.optim.LBFGS([leaf()]).step(fails),
    "optim: no closure": lambda: torch.optim.LBFGS([leaf()]).step(),  # type: ignore[call-arg]
    "optim: a schedule fails": lambda: torch.optim.lr_scheduler.LambdaLR(sgd(), fails),
    "optim: a schedule": lambda: torch.optim.lr_scheduler.SequentialLR(sgd(), [], []),
    "data: a batch of none": lambda: DataLoader([1], batch_size=0),
    "data: two orders": lambda: DataLoader([1], shuffle=True, sampler=[0]),
    "data: no dataset": lambda: next(iter(DataLoader(3))),  # type: ignore[arg-type]
    "data: objects": lambda: next(iter(DataLoader([object()]))),
    "data: collating fails": lambda: next(iter(DataLoader([1], collate_fn=fails))),
    "data: collating fails in a worker": lambda: next(iter(DataLoader([1], collate_fn=fails, num_workers=1))),
    "data: keys": lambda: next(iter(DataLoader([{"a": 1}, {"b": 2}], batch_size=2))),
    "data: sizes": lambda: default_collate([torch.ones(2), torch.ones(3)]),
    "data: an index": lambda: TensorDataset(torch.ones(2))[5],
    "data: lengths": lambda: TensorDataset(torch.ones(2), torch.ones(3)),
    "data: stacked lengths": lambda: StackDataset([1], [1, 2]),
    "data: nothing joined": lambda: ConcatDataset([]),
    "data: a subset": lambda: Subset([1], [5])[0],
    "data: a split": lambda: random_split([1, 2], [5]),
    "data: no samples": lambda: RandomSampler([1], num_samples=0),
    "data: a batch of words": lambda: BatchSampler([1], "a", True),  # type: ignore[arg-type]
    "data: no method": lambda: Dataset()[0],
    "module: an attribute": lambda: Net().nope,
    "module: no forward": lambda: nn.Module()(x),
    "module: a state": lambda: Net().load_state_dict({}),
    "module: no state": lambda: Net().load_state_dict(3),  # type: ignore[arg-type]
    "module: shapes of a state": lambda: Net().load_state_dict({"fc.weight": x, "fc.bias": x}),
    "module: no module": lambda: setattr(Net(), "fc", 3),
    "module: a name": lambda: Net().register_buffer("fc", x),
    "module: a device": lambda: Net().to("nowhere"),
    "module: apply": lambda: Net().apply(fails),
    "module: arguments": lambda: Net()(x, y=3),
    "module: a mode": lambda: Net().train(3),  # type: ignore[arg-type]
    "module: an index": lambda: nn.Sequential(nn.ReLU())[5],
    "module: appended": lambda: nn.Sequential().append(3),  # type: ignore[arg-type]
    "module: a list": lambda: nn.ModuleList([])[0],
    "module: a key": lambda: nn.ModuleDict({})["nope"],
    "module: lazy": lambda: nn.LazyLinear(3).share_memory(),
    "module: features": lambda: nn.LSTM(3, 2)(torch.ones(2, 9)),
    "module: heads": lambda: nn.MultiheadAttention(5, 2),
    "module: a summary": lambda: nn.summary(Net(), input_size=(2, 9)),
    "Function: called": lambda: custom(fails)()(x),
    "Function: forward fails": lambda: custom(fails, fails).apply(leaf()),
    "Function: backward fails": lambda: custom(fails).apply(leaf()).sum().backward(),
    "Function: a shape": lambda: custom(lambda ctx, grad: torch.ones(5)).apply(leaf()).sum().backward(),
    "Function: no tensor": lambda: custom(lambda ctx, grad: 3).apply(leaf()).sum().backward(),
    "Function: too many": lambda: custom(lambda ctx, grad: (grad, grad)).apply(leaf()).sum().backward(),
    "Function: arguments": lambda: custom(fails).apply(leaf(), 3),
    "Function: in a transform": lambda: torch.func.grad(lambda given: custom(fails).apply(given).sum())(x),
    "Function: vmap": lambda: torch.vmap(custom(fails).apply)(x),
    "compile: the function fails": lambda: torch.compile(lambda given: given.view(7))(x),
    "compile: no function": lambda: torch.compile(3),
    "amp: a step": lambda: torch.amp.GradScaler("cpu").step(sgd()),
    "amp: a device": lambda: torch.autocast("nope"),
    "a generator's device": lambda: torch.Generator("nope"),
    "an operation of aten": lambda: torch.ops.aten.add(3),
    "an overload of aten": lambda: torch.ops.aten.add.Tensor(),
    "debug: gradient_flow": lambda: debug.gradient_flow(3),
    "debug: view": lambda: debug.view(3),
    "a tree": lambda: torch.utils._pytree.tree_map(fails, x),
}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("what", CALLS)
def test_one_line_of_the_library_at_most(what: str) -> None:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what is raised is not the question
        CALLS[what]()
    frames = [frame.f_code for frame, _ in traceback.walk_tb(caught.value.__traceback__)]
    assert sum(is_own(code.co_filename) for code in frames) <= 1, frames
