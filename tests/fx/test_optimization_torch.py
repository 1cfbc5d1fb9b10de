"""torch.fx.experimental.optimization and the older pass manager: graphs and numbers are torch's."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import pytest

import retrograd


def network(torch: Any) -> Any:
    torch.manual_seed(0)
    made = torch.nn.Sequential(
        torch.nn.Conv2d(1, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.Dropout(0.5),
        torch.nn.Flatten(),
        torch.nn.Linear(8, 1),
    )
    with torch.no_grad():
        made[1].running_mean.fill_(0.3)
        made[1].running_var.fill_(2.0)
    return made.eval()


def fused(torch: Any, tools: Any) -> Any:
    made = tools.fuse(network(torch))
    return [str(node) for node in made.graph.nodes], round(made(torch.ones(1, 1, 4, 4)).item(), 5)


def without_dropout(torch: Any, tools: Any) -> Any:
    class Dropping(torch.nn.Module):  # type: ignore[misc, name-defined]
        def __init__(self) -> None:
            super().__init__()
            self.first, self.drop = torch.nn.Linear(2, 2), torch.nn.Dropout(0.5)

        def forward(self, x: Any) -> Any:
            return self.drop(self.first(x)) + 1

    return [str(node) for node in tools.remove_dropout(Dropping()).graph.nodes]


def extracted(torch: Any, tools: Any) -> Any:
    fx = importlib.import_module(f"{torch.__name__}.fx")
    traced = fx.symbolic_trace(network(torch))
    nodes = list(traced.graph.nodes)
    made = tools.extract_subgraph(traced, nodes[4:6], [nodes[3]], [nodes[5]])
    return [str(node) for node in made.graph.nodes], len(made(torch.ones(1, 2, 2, 2)))


@pytest.mark.oracle
@pytest.mark.parametrize("program", [fused, without_dropout, extracted])
def test_a_graph_becomes_what_it_becomes_in_torch(program: Any) -> None:
    torch = pytest.importorskip("torch")
    with warnings.catch_warnings(action="ignore"):  # torch's own file uses what torch has deprecated
        found = [
            program(library, importlib.import_module(f"{library.__name__}.fx.experimental.optimization"))
            for library in (retrograd, torch)
        ]
    assert found[0] == found[1]


def test_passes_run_in_an_order_that_rules_allow() -> None:
    tools = importlib.import_module("retrograd.fx.passes.pass_manager")

    def double(x: int) -> int:
        return 2 * x

    def increase(x: int) -> int:
        return x + 1

    manager = tools.PassManager([double, increase], [tools.this_before_that_pass_constraint(double, increase)])
    assert manager(3) == 7
    manager.add_pass(tools.loop_pass(increase, n_iter=3))
    assert manager(3) == 10
    wrong = tools.PassManager([increase, double], [tools.this_before_that_pass_constraint(double, increase)])
    with pytest.raises(RuntimeError, match="pass schedule constraint violated"):
        wrong(3)
