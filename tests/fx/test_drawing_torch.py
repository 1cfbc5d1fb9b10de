"""Drawings of graphs: what is handed to pydot is what torch hands to it."""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any

import pytest

import retrograd

torch: Any = pytest.importorskip("torch")
pytestmark = pytest.mark.oracle


class Part:
    """A node, an edge or a drawing of pydot."""

    def __init__(self, *names: str, **options: str) -> None:
        self.shown: list[Any] = [names, options]
        self.obj_dict = {"attributes": options}

    def add(self, part: Part) -> None:
        self.shown.append(part)

    add_node = add_edge = add_subgraph = add

    def get_name(self) -> str:
        return self.shown[0][0]

    def get_node_list(self) -> list[Part]:
        return [part for part in self.shown[2:] if "label" in part.shown[1]]

    def write(self, path: str) -> None:
        with open(path, "w") as out:
            out.write(str(self.plain()))

    def plain(self) -> Any:
        return [each.plain() if isinstance(each, Part) else each for each in self.shown]


@pytest.fixture
def drawers(monkeypatch: pytest.MonkeyPatch) -> Any:
    pydot = types.ModuleType("pydot")
    pydot.Dot = pydot.Node = pydot.Edge = pydot.Cluster = Part  # type: ignore[attr-defined]
    monkeypatch.setitem(sys.modules, "pydot", pydot)
    name = "torch.fx.passes.graph_drawer"
    monkeypatch.setitem(sys.modules, name, types.ModuleType(name))  # so that it is as before, afterwards
    del sys.modules[name]
    monkeypatch.setattr(torch.fx.passes, "graph_drawer", None, raising=False)
    return importlib.import_module(name), importlib.import_module("retrograd.fx.passes.graph_drawer")


def model(library: Any) -> Any:
    class Model(library.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.norm = library.nn.Linear(3, 3), library.nn.BatchNorm1d(3)
            self.scale = library.nn.Parameter(library.ones(3))

        def forward(self, x: Any, y: Any = None) -> Any:
            h = library.relu(self.norm(self.linear(x)) * self.scale)
            return {"h": h.reshape(-1, 1).clamp(min=0.0, max=2.0), "sum": library.sum(h, dim=[0, 1], keepdim=True)}

    return library.fx.symbolic_trace(Model())


@pytest.mark.parametrize(
    "options", [{}, {"ignore_getattr": True}, {"skip_node_names_in_args": False}, {"dot_graph_shape": "box"}]
)
def test_drawings_are_torchs(drawers: Any, options: dict[str, Any]) -> None:
    drawn = []
    for library, module in zip((torch, retrograd), drawers, strict=True):
        traced = model(library)
        importlib.import_module(f"{library.__name__}.fx.passes.shape_prop").ShapeProp(traced).propagate(
            library.ones(2, 3)
        )
        drawn.append(module.FxGraphDrawer(traced, "net", **options).get_dot_graph().plain())
    assert drawn[0] == drawn[1]


def test_without_pydot_the_package_is_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pydot", None)
    drawer = importlib.import_module("retrograd.fx.passes.graph_drawer").FxGraphDrawer
    with pytest.raises(RuntimeError, match="requires the pydot package to be installed"):
        drawer(model(retrograd), "net")


def test_a_pass_is_watched(drawers: Any, tmp_path: Any) -> None:
    observing = importlib.import_module("retrograd.fx.passes.graph_transform_observer").GraphTransformObserver
    traced = model(retrograd)

    def to_sigmoid(graph: Any) -> str:
        (old,) = graph.find_nodes(op="call_function", target=retrograd.relu)
        with graph.inserting_after(old):
            new = graph.call_function(retrograd.sigmoid, old.args)
        old.replace_all_uses_with(new)
        graph.erase_node(old)
        return new.name

    count = observing.get_current_pass_count()
    name = observing(traced, "swap", log_url=str(tmp_path)).apply_graph_pass(to_sigmoid)
    assert len(list(tmp_path.iterdir())) == 2
    assert observing.get_current_pass_count() == count + 1
    (node,) = [node for node in traced.graph.nodes if node.name == name]
    (source,) = node.meta["from_node"]
    assert (source.name, source.pass_name, source._actions) == ("relu", "swap", "replace+create")
    assert not traced._create_node_hooks
    assert not traced._deepcopy_hooks
    assert observing(traced, "none").apply_gm_pass(lambda gm: gm) is traced
