"""torch.fx.experimental: what its passes make of a graph."""

from __future__ import annotations

import importlib
import operator
from typing import Any

import retrograd
from tests.autograd.recording import Programs, caught
from tests.fx.test_passes import part

program = Programs("fx_experimental")


def filled(torch: Any, module: Any) -> Any:
    with torch.no_grad():
        for p in module.state_dict().values():
            if p.is_floating_point():
                p.copy_((torch.arange(float(p.numel())).reshape(p.shape) % 7) / 5 + 0.3)
    return module


def network(torch: Any) -> Any:
    nn = torch.nn
    return filled(
        torch,
        nn.Sequential(
            nn.Conv1d(2, 3, 2),
            nn.BatchNorm1d(3),
            nn.Sequential(nn.ReLU(), nn.Dropout(0.5), nn.Flatten(), nn.Linear(9, 4), nn.BatchNorm1d(4)),
            nn.BatchNorm1d(4, track_running_stats=False),
        ),
    )


def example(torch: Any) -> Any:
    return torch.arange(16.0).reshape(2, 2, 4) / 9


# ---- optimization ----
@program
def norms_are_fused_into_the_layers_before_them(torch):
    passes = part(torch, "experimental.optimization")
    module = network(torch).eval()
    made = passes.fuse(module)
    no_trace = passes.fuse(part(torch).symbolic_trace(module), no_trace=True)
    kinds = [type(module.get_submodule(name)).__name__ for name in ("0", "1", "2.3", "2.4")]
    return made.code, made(example(torch)), module(example(torch)), kinds, no_trace.code, made.training


@program
def norms_in_training_are_not_fused(torch):
    return caught(lambda: part(torch, "experimental.optimization").fuse(network(torch)))


@program
def layers_that_others_use_are_not_fused(torch):
    class Both(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(2, 3), torch.nn.BatchNorm1d(3)

        def forward(self, x):
            y = self.first(x)
            return self.second(y) + y

    return part(torch, "experimental.optimization").fuse(Both().eval()).code


@program
def dropouts_are_removed(torch):
    return part(torch, "experimental.optimization").remove_dropout(network(torch)).code


@program
def models_for_inference(torch):
    optimize = part(torch, "experimental.optimization").optimize_for_inference
    module = network(torch).eval()
    without = optimize(module, {"mkldnn_layout_optimize": False})
    kept = optimize(module, {"mkldnn_layout_optimize": False, "conv_bn_fuse": False, "remove_dropout": False})
    return (
        without.code,
        without(example(torch)),
        optimize(module)(example(torch)),
        kept is module,
        caught(lambda: optimize(module, {"mkldnn_layout_optimize": 3})),
        caught(lambda: optimize(module, {"mkldnn_layout_optimize": {}})),
    )


@program
def parts_of_a_graph_as_modules(torch):
    passes = part(torch, "experimental.optimization")
    made = part(torch).symbolic_trace(network(torch).eval())
    nodes = list(made.graph.nodes)
    modules = dict(made.named_modules())
    matches = [passes.matches_module_pattern((torch.nn.Conv1d, torch.nn.BatchNorm1d), node, modules) for node in nodes]
    inner = passes.extract_subgraph(made, nodes[2:4], nodes[1:2], nodes[3:4])
    passes.replace_node_module(nodes[2], modules, torch.nn.Identity())
    return matches, inner.code, type(made.get_submodule("1")).__name__, type(modules["1"]).__name__


@program
def sets_that_grow_together(torch):
    passes = part(torch, "experimental.optimization")
    sets = passes.UnionFind(6)
    for i in range(5):
        sets.make_set(i)
    joined = [sets.join(0, 1), sets.join(2, 1), sets.join(3, 4), sets.join(4, 0), sets.join(3, 2)]
    subgraph = passes.MklSubgraph(part(torch).Graph())
    short = passes.use_mkl_length(subgraph)
    subgraph.nodes += [1, 2, 3]
    return (
        joined,
        [sets.find(i) for i in range(5)],
        caught(lambda: sets.find(5)),
        short,
        passes.use_mkl_length(subgraph),
    )


# ---- const_fold ----
def constants(torch: Any) -> Any:
    class Constants(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.arange(3.0))
            self.register_buffer("b", torch.full((3,), 2.0))
            self.linear = filled(torch, torch.nn.Linear(3, 3))
            self.rest = torch.nn.Sequential(torch.nn.ReLU())

        def forward(self, x):
            scale = torch.exp(self.a) + self.b
            shift = self.linear(scale)
            return self.rest(x * scale) + shift, self.b

    return Constants()


@program
def what_needs_only_parameters_runs_once(torch):
    fold = part(torch, "experimental.const_fold")
    made = fold.split_const_subgraphs(constants(torch))
    before = made.has_folding_been_run
    x = torch.ones(3)
    names = sorted(name for name, _ in made.named_parameters())
    return (
        made.code,
        made.const_subgraph_module.code,
        made.fx_const_folded_attrs_name,
        names,
        before,
        made(x),
        made.has_folding_been_run,
        constants(torch)(x),
        caught(made.run_folding),
    )


@program
def one_constant(torch):
    class One(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.a = torch.nn.Parameter(torch.arange(3.0))

        def forward(self, x):
            return x + (self.a * 2)

    fold = part(torch, "experimental.const_fold")
    made = fold.split_const_subgraphs(One())
    kept = fold.split_const_subgraphs(One(), skip_folding_node_fn=lambda node: node.target is operator.mul)
    return made.code, made(torch.ones(3)), made.const_subgraph_module.code, kept.code, kept.const_subgraph_module


@program
def random_numbers_are_no_constants(torch):
    class Noise(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("a", torch.arange(3.0))

        def forward(self, x):
            return x + torch.rand_like(self.a) + self.a.sin()

    return part(torch, "experimental.const_fold").split_const_subgraphs(Noise()).code


@program
def names_that_a_module_does_not_have(torch):
    module = torch.nn.Module()
    module.x, module.y_3 = 1, 2
    name = part(torch, "experimental.const_fold").get_unique_attr_name_in_module
    return [name(module, each) for each in ("x", "y_3", "2z", "a.b-c")]


# ---- merge_matmul ----
@program
def products_with_the_same_right_side(torch):
    class Products(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.right = torch.nn.Parameter(torch.arange(6.0).reshape(3, 2))

        def forward(self, a, b, c):
            first = torch.matmul(a, self.right)
            second = torch.matmul(b, self.right)
            return first.sum() + second.sum(), torch.matmul(a, c), first

    merge = part(torch, "experimental.merge_matmul")
    made = merge.merge_matmul(Products())
    a, b, c = torch.ones(2, 3), torch.arange(12.0).reshape(4, 3), torch.ones(3, 1)
    return made.code, made(a, b, c), Products()(a, b, c), merge.split_result_tensors(b, [torch.ones(1), torch.ones(3)])


@program
def products_that_need_each_other_stay(torch):
    merge = part(torch, "experimental.merge_matmul")
    made = merge.merge_matmul(lambda a, b: torch.matmul(torch.matmul(a, b), b))
    nodes = list(made.graph.nodes)
    pairs = [(merge.may_depend_on(nodes[-1], each), merge.may_depend_on(each, nodes[-1])) for each in nodes]
    deep = merge.may_depend_on(nodes[-1], nodes[0], search_depth=0)
    return made.code, pairs, deep, merge.are_nodes_independent(nodes[:2]), merge.are_nodes_independent(nodes[1:3])


# ---- normalize, types ----
@program
def arguments_by_keyword(torch):
    F = torch.nn.functional  # noqa: N806

    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return F.leaky_relu(F.relu(self.linear(x), True), 0.2) + F.elu(x)

    normalize = part(torch, "experimental.normalize")
    made = part(torch).symbolic_trace(Model())
    return normalize.NormalizeArgs(made).transform().code, normalize.NormalizeArgs(made, False).transform().code


@program
def operators_instead_of_functions(torch):
    def f(a, b):
        c = torch.add(a, b) * torch.mul(a, 2)
        d = torch.sub(c, b), torch.div(c, b), torch.floor_divide(c, 2), torch.remainder(c, 2)
        return d, torch.eq(a, b), torch.ne(a, b), torch.lt(a, b), torch.le(a, b), torch.gt(a, b), torch.ge(a, b)

    return part(torch, "experimental.normalize").NormalizeOperators(part(torch).symbolic_trace(f)).transform().code


@program
def types_from_signatures(torch):
    class Model(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)
            self.weight = torch.nn.Parameter(torch.ones(4))

        def forward(self, x):
            return torch.nn.functional.relu(self.linear(x)) * self.weight

    annotate = part(torch, "experimental.schema_type_annotation").AnnotateTypesWithSchema
    made = part(torch).symbolic_trace(Model())
    shown = []
    for options in ({}, {"annotate_functionals": False}, {"annotate_modules": False}, {"annotate_get_attrs": False}):
        shown.append([node.type is torch.Tensor for node in annotate(made, **options).transform().graph.nodes])
    return shown, annotate(made).transform().code


@program
def types_that_match(torch):
    matches = part(torch, "operator_schemas").type_matches
    typing = importlib.import_module("typing")
    pairs = [
        (int, int), (int, float), (int, bool), (typing.Union[int, str], str), (typing.Optional[int], float),
        (list[int], int), (list[int], list[int]), (list[int], list[bool]), (list[int], tuple[int, int]),
        (list[int], tuple[int, ...]), (list[int], tuple[float, int]), (int, torch.dtype),
        (torch.Tensor, torch.nn.Parameter), (importlib.import_module("numbers").Number, float), (list[float], int),
    ]  # fmt: skip
    return [matches(wanted, given) for wanted, given in pairs]


# ---- rewriter, debug ----
class Recording:
    """The library under the name that rewritten source uses."""

    def __getattr__(self, name: str) -> Any:
        return getattr(current["torch"], name)


current: dict[str, Any] = {}
torch = Recording()


def annotate(value: Any, kind: Any) -> Any:
    return value + kind


@program
def checks_in_rewritten_source(torch):
    current["torch"] = torch

    def checked(x, y=2):
        assert x.sum() > 0, "must be positive"
        assert x.max() < 9
        z: 3 = x * y
        return z

    rewriter = part(torch, "experimental.rewriter")
    graph = rewriter.RewritingTracer().trace(checked)
    made = part(torch).GraphModule(torch.nn.Module(), graph)
    return made.code, made(torch.ones(2)), caught(lambda: made(-torch.ones(2)))


@program
def checks_in_rewritten_modules(torch):
    current["torch"] = torch

    class Checked(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(2))

        def forward(self, x):
            assert x.sum() > 0, "must be positive"
            return x * self.weight

    rewriter = part(torch, "experimental.rewriter")
    module = Checked()
    graph = rewriter.RewritingTracer().trace(module)
    return part(torch).GraphModule(module, graph).code


@program
def lines_below_a_function(torch):
    lines = ["@wrap\n", "    def f(a):\n", "        x = 1\n", "  # outside\n", "    return x\n"]
    normalize = part(torch, "experimental.rewriter").normalize_source_lines
    return normalize(list(lines)), normalize(["x = 1\n"])


@program
def a_breakpoint_in_the_code(torch):
    made = part(torch).symbolic_trace(lambda a: a + 1)
    result = part(torch, "experimental.debug").set_trace(made)
    return result is made, made.code


# ---- what nodes remember ----
@program
def notes_for_the_nodes_of_a_function(torch):
    notes = part(torch, "traceback")

    @notes.annotate_fn({"stage": 1})
    def f(x):
        return dict(notes.get_current_meta())

    node = part(torch).Graph().placeholder("x")
    with notes.set_current_replay_node(node):
        inside = notes.get_current_replay_node() is node
    with notes.preserve_node_meta():
        notes.set_grad_fn_seq_nr(5)
        notes.set_grad_fn_seq_nr(6)
        two = dict(notes.get_current_meta())
        notes.reset_grad_fn_seq_nr()
        one = dict(notes.get_current_meta())
        notes.reset_grad_fn_seq_nr()
        none = dict(notes.get_current_meta())
        error = caught(notes.reset_grad_fn_seq_nr)
    notes.set_grad_fn_seq_nr(7)
    after = notes.get_current_meta(), notes.get_current_replay_node()
    return f(1), f.__name__, inside, two, one, none, error, after


@program
def where_nodes_come_from(torch):
    notes = part(torch, "traceback")
    graph = part(torch).Graph()
    x = graph.placeholder("x")
    made = graph.call_function(operator.add, (x, x))
    graph.call_function(operator.mul, (made, x))
    source = notes.NodeSource(x, "first", notes.NodeSourceAction.CREATE)
    made.meta["from_node"] = [source]
    shown = notes.get_graph_provenance_json(graph)
    shown["add"] = [{key: value for key, value in shown["add"][0].items() if key != "graph_id"}]
    again = notes.NodeSource(x, "first", notes.NodeSourceAction.CREATE)
    other = notes.NodeSource(made, "second")
    return (
        shown,
        source == again,
        source == other,
        hash(source) == hash(again),
        source == 3,
        len({source, again, other}),
    )


def test_products_with_two_right_sides_are_merged_to_two():
    """torch looks for the second ones in the graph of before, and fails."""

    def f(a, b, c, d):
        return [retrograd.matmul(left, right) for left in (a, b) for right in (c, d)]

    given = [
        retrograd.arange(6.0).reshape(2, 3),
        retrograd.ones(1, 3),
        retrograd.ones(3, 1),
        retrograd.full((3, 2), 2.0),
    ]
    made = part(retrograd, "experimental.merge_matmul").merge_matmul(f)
    assert len(made.graph.find_nodes(op="call_function", target=retrograd.matmul)) == 2
    assert all(retrograd.equal(ours, expected) for ours, expected in zip(made(*given), f(*given), strict=True))


def test_operators_keep_the_factor_that_functions_have():
    """torch drops it: torch.add(a, b, alpha=2) would become a + b."""
    traced = part(retrograd).symbolic_trace(lambda a, b: retrograd.add(a, b, alpha=2))
    made = part(retrograd, "experimental.normalize").NormalizeOperators(traced).transform()
    one = retrograd.ones(1)
    assert made(one, one).item() == 3


test_as_torch, test_recording_is_torchs = program.tests()
