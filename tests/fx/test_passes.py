"""torch.fx.passes: what each pass makes of a graph."""

from __future__ import annotations

import importlib
import logging
import operator
from typing import Any, NamedTuple

from tests.autograd.recording import Programs, caught

program = Programs("fx_passes")


def part(torch: Any, name: str = "") -> Any:
    return importlib.import_module(f"{torch.__name__}.fx{'.' if name else ''}{name}")


def model(torch: Any) -> Any:
    class Model(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.param = torch.nn.Parameter(torch.arange(12.0).reshape(3, 4) / 10)
            self.linear = torch.nn.Linear(4, 5)
            self.inner = torch.nn.Sequential(torch.nn.Linear(5, 2), torch.nn.ReLU())
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 7 - 1)

        def forward(self, x: Any, y: Any) -> Any:
            z = self.linear(x + self.param).clamp(min=0.0, max=1.0)
            w = self.linear(y).clamp(min=0.0, max=1.0)
            return self.inner(z + w), w

    return Model()


def traced(torch: Any) -> Any:
    return part(torch).symbolic_trace(model(torch))


def inputs(torch: Any) -> Any:
    x = torch.arange(12.0).reshape(3, 4) / 5
    return x, x.flip(0)


def codes(module: Any) -> Any:
    graph_modules = [(name, each.code) for name, each in module.named_modules() if hasattr(each, "code")]
    return graph_modules, sorted(name for name, _ in module.named_parameters())


def names(nodes: Any) -> list[str]:
    return [node.name for node in nodes]


# ---- split_module ----
def counting(parts: int) -> Any:
    count = iter(range(1000))
    return lambda node: next(count) % parts


@program
def modules_of_parts(torch):
    split = part(torch, "passes.split_module").split_module
    made, old = traced(torch), {}
    order = {node: i for i, node in enumerate(made.graph.nodes)}
    result = split(made, model(torch), lambda node: order[node] // 4, qualname_map=old)
    return codes(result), old, sorted(result.meta["partition_names"]), result(*inputs(torch)), made(*inputs(torch))


@program
def parts_that_wait_for_each_other_are_an_error(torch):
    split = part(torch, "passes.split_module").split_module
    return caught(lambda: split(traced(torch), None, counting(3)))


@program
def parts_in_the_order_of_the_graph(torch):
    split = part(torch, "passes.split_module").split_module

    def f(a, b):
        c = a + 1
        d = b * 2
        e = c.sin()
        return e + d, d

    table = {"add": 2, "mul": 0, "sin": 2, "add_1": 1}
    shown = []
    for options in (
        {},
        {"keep_original_order": True},
        {"keep_original_node_name": True},
        {"keep_original_input_name": False},
        {"partition_affix": "pp"},
        {"tuple_return": True},
    ):
        made = part(torch).symbolic_trace(f)
        shown.append(codes(split(made, made, lambda node: table[node.name], **options)))
    return shown


@program
def parts_by_a_table(torch):
    passes = part(torch, "passes.split_module")

    def f(a, b):
        c = a + 1
        d = b * 2
        return (c.sin() + d).cos(), d

    made = part(torch).symbolic_trace(f)
    table = {
        node: i // 2 for i, node in enumerate(n for n in made.graph.nodes if n.op not in ("placeholder", "output"))
    }
    result = passes.split_module_simple(made, table, partition_affix="p")
    a = torch.arange(3.0)
    return [name for name, _ in result.named_children()], result.graph.nodes.__len__(), result(a, a + 1), made(a, a + 1)


@program
def a_part_as_text(torch):
    made = part(torch, "passes.split_module").Partition("3")
    return repr(made), made.submod_name


# ---- split_utils ----
@program
def parts_by_tags(torch):
    passes = part(torch, "passes.split_utils")
    shown = []
    for options in ({}, {"return_tuple": True}, {"return_fqn_mapping": True}):
        made = traced(torch)
        for node in made.graph.nodes:
            node.tag = "first" if node.name in ("add", "linear", "clamp") else "second"
        result = passes.split_by_tags(made, ["first", "second"], **options)
        result, moved = result if isinstance(result, tuple) else (result, None)
        shown.append((codes(result), moved, result(*inputs(torch))))
    return shown


@program
def tags_in_a_wrong_order_are_an_error(torch):
    passes = part(torch, "passes.split_utils")
    made = traced(torch)
    untagged = caught(lambda: passes.split_by_tags(made, ["first", "second"]))
    for node in made.graph.nodes:
        node.tag = "first" if node.name in ("add", "linear", "clamp") else "second"
    return untagged, caught(lambda: passes.split_by_tags(made, ["second", "first"]))


@program
def attributes_at_paths(torch):
    passes = part(torch, "passes.split_utils")
    module = torch.nn.ModuleDict({"a": torch.nn.ModuleList([torch.nn.ReLU()])})
    passes.setattr_recursive(module, "a.word", "x")
    get = passes.getattr_recursive
    return get(module, "a.0") is module["a"][0], get(module, "a.1"), get(module, "b"), module["a"].word


@program
def nodes_without_tensors_move_to_their_users(torch):
    passes = part(torch, "passes.split_utils")

    class Part:
        def __init__(self, is_acc, nodes):
            self.is_acc, self.nodes = is_acc, nodes

    def f(x):
        y = x.relu()
        rows = y.size(0)
        twice = rows * 2
        return y.reshape(twice, -1).sum()

    made = part(torch).symbolic_trace(f)
    part(torch, "passes.shape_prop").ShapeProp(made).propagate(torch.ones(2, 4))
    nodes = [node for node in made.graph.nodes if node.op not in ("placeholder", "output")]
    parts = [Part(True, nodes[:3]), Part(False, nodes[3:])]
    passes.move_non_tensor_nodes_on_boundary(parts)
    return [names(each.nodes) for each in parts]


# ---- which nodes a backend runs ----
@program
def support_by_names_and_dtypes(torch):
    passes = part(torch, "passes.operator_support")
    made = traced(torch)
    part(torch, "passes.shape_prop").ShapeProp(made).propagate(*inputs(torch))
    modules = dict(made.named_modules())
    rules = {
        "names": passes.OperatorSupport({"_operator.add": None, "torch.nn.modules.linear.Linear": None, "clamp": None}),
        "dtypes": passes.OperatorSupport(
            {"_operator.add": (([torch.float32], [torch.int64]), {}), "clamp": ((None,), {"min": [torch.int64]})}
        ),
        "no dtype": passes.OpSupports.decline_if_input_dtype(torch.float32),
        "no name": passes.OpSupports.decline_if_node_in_names({"add"}),
    }
    rules["all"] = passes.chain(rules["names"], rules["no name"])
    rules["any"] = passes.any_chain(rules["dtypes"], rules["no dtype"])
    rules["own"] = passes.create_op_support(lambda submodules, node: node.target == "linear" and "linear" in submodules)
    return {
        key: names(n for n in made.graph.nodes if rule.is_node_supported(modules, n)) for key, rule in rules.items()
    }


@program
def names_of_targets(torch):
    passes = part(torch, "passes.tools_common")
    made = traced(torch)
    calls = [node for node in made.graph.nodes if node.op.startswith("call")]
    shown = [passes.get_node_target(dict(made.named_modules()), node) for node in calls]
    return shown, passes.get_acc_ops_name("word"), passes.get_acc_ops_name(torch.nn.ReLU)


def partitioned(torch: Any, f: Any, allowed: Any, **options: Any) -> Any:
    passes, support = part(torch, "passes.infra.partitioner"), part(torch, "passes.operator_support")
    made = part(torch).symbolic_trace(f)
    rule = support.create_op_support(lambda submodules, node: node.op == "call_function" and allowed(node))
    partitioner = passes.CapabilityBasedPartitioner(made, rule, **options)
    groups = partitioner.propose_partitions()
    shown = [sorted(names(each.nodes)) for each in groups]
    partitioner.remove_bookend_non_compute_ops(groups)
    without = [sorted(names(each.nodes)) for each in groups]
    return shown, without, codes(partitioner.fuse_partitions(groups))


@program
def groups_that_grow_together(torch):
    def f(a, b, c):
        d = torch.add(a, b)
        e = torch.mul(d, c)
        g = torch.relu(e)
        h = torch.add(g, d)
        i = torch.add(c, 1)
        return torch.mul(h, i), torch.neg(i)

    allowed = lambda node: node.target is not torch.relu  # noqa: E731
    return [
        partitioned(torch, f, allowed),
        partitioned(torch, f, allowed, allows_single_node_partition=True),
        partitioned(torch, f, allowed, skip_horizontal_fusion=True, allows_single_node_partition=True),
        partitioned(torch, f, lambda node: True, non_compute_ops=["torch.add"]),
        partitioned(torch, f, lambda node: node.target is torch.neg, allowed_single_node_partition_ops=["torch.neg"]),
    ]


@program
def items_stay_with_their_source(torch):
    def f(a):
        b, c = torch.chunk(torch.add(a, a), 2)
        return torch.mul(b, c)

    return partitioned(torch, f, lambda node: node.target is not operator.getitem)


@program
def a_group_has_nodes(torch):
    passes = part(torch, "passes.infra.partitioner")
    nodes = list(traced(torch).graph.nodes)
    group = passes.Partition(id=3, nodes=nodes[:2])
    group.add_node(nodes[2], 7)
    group.remove_node(nodes[0])
    return group.id, group.size(), repr(group), caught(lambda: passes.Partition(nodes=nodes[:2], node_orders=[1]))


@program
def fusing_by_hand(torch):
    utils = part(torch, "passes.utils.fuser_utils")

    def f(a, b):
        c = a + b
        d = c.sin()
        e = d * c
        return e.cos() + d

    made = part(torch).symbolic_trace(f)
    by_name = {node.name: node for node in made.graph.nodes}
    c, d, e = (by_name[name] for name in ("add", "sin", "mul"))
    valid = utils.validate_partition([c, d]), utils.validate_partition([c, e])
    backwards = names(utils.topo_sort([e, d, c]))
    cycle = caught(lambda: utils.fuse_as_graphmodule(made, [c, e], "Fused"))
    fused, given, taken = utils.fuse_as_graphmodule(made, [c, d, e], "Fused")
    whole = utils.fuse_as_graphmodule(made, [by_name["cos"]], "Single", always_return_tuple=True)[0]
    utils.insert_subgm(made, fused, given, taken)
    utils.erase_nodes(made, [c, d, e])
    utils.legalize_graph(made).graph.lint()
    a = torch.arange(3.0)
    return valid, backwards, cycle, names(given), names(taken), codes(made), whole.code, made(a, a + 1)


@program
def equal_graphs(torch):
    compare, trace = part(torch, "passes.utils").compare_graphs, part(torch).symbolic_trace
    f, g = trace(lambda a, b: torch.relu(a) + b), trace(lambda x, y: torch.relu(x) + y)
    h = trace(lambda a, b: torch.relu(a) * b)
    return compare(f.graph, g.graph), compare(f.graph, h.graph)


# ---- orders ----
@program
def nodes_in_an_order_in_which_they_can_run(torch):
    tools = part(torch, "passes.tools_common")

    def f(a, b):
        return (b.cos() + a.sin()).exp() * (a + 1)

    shown = []
    for sort in (tools.legalize_graph, tools.stable_topological_sort):
        made = part(torch).symbolic_trace(f)
        nodes = list(made.graph.nodes)
        nodes[-1].prepend(nodes[2])  # cos comes after what uses it
        shown.append((names(made.graph.nodes), names(sort(made).graph.nodes)))
        first, last = [node for node in made.graph.nodes if node.name in ("sin", "exp")]
        first.args = (last,)
        shown.append(caught(lambda made=made, sort=sort: sort(made)))
    return shown


@program
def nodes_that_hand_on_no_tensors(torch):
    tools = part(torch, "passes.tools_common")

    def f(x):
        y = x.relu()
        rows = y.size(0)
        twice = rows * 2
        return y.reshape(twice, -1).sum().exp()

    made = part(torch).symbolic_trace(f)
    part(torch, "passes.shape_prop").ShapeProp(made).propagate(torch.ones(2, 4))
    by_name = {node.name: node for node in made.graph.nodes}
    calls = {node for node in made.graph.nodes if node.op.startswith("call")}
    few = {by_name["relu"], by_name["size"], by_name["mul"]}
    found = [tools.FxNetAccFusionsFinder(made, each)() for each in (calls, few)]
    is_tensor = {node.name: tools.is_node_output_tensor(node) for node in made.graph.nodes}
    return (
        [{n.name: sorted(names(g)) for n, g in sorted(each.items())} for each in found],
        sorted(names(few)),
        is_tensor,
    )


# ---- small passes ----
@program
def passes_one_after_another(torch):
    passes = part(torch, "passes.pass_manager")
    seen = []

    def grow(numbers):
        numbers.append(len(numbers))
        return "ignored"

    def double(numbers):
        return [2 * each for each in numbers]

    grows = passes.inplace_wrapper(passes.log_hook(grow, level=logging.DEBUG))
    manager = passes.PassManager([passes.loop_pass(grows, n_iter=3), double])
    seen.append(manager([]))
    manager.add_constraint(passes.these_before_those_pass_constraint(grow, double))
    seen.append(manager([5]))
    manager.add_pass(passes.loop_pass(double, predicate=lambda numbers: numbers[0] < 50))
    seen.append(manager([5]))
    manager.remove_pass(["grow"])
    seen.append(manager([5]))
    manager.replace_pass(double, lambda numbers: numbers[::-1])
    seen.append(manager([5, 6]))
    wrong = passes.PassManager.build_from_passlist([double, grows])
    wrong.add_constraint(passes.this_before_that_pass_constraint(grows, double))
    return (
        seen,
        str(caught(lambda: wrong([1]))).split("Expected")[0],
        caught(lambda: passes.loop_pass(double)),
        caught(lambda: passes.loop_pass(double, n_iter=0)([1])),
    )


@program
def other_targets(torch):
    passes = part(torch, "passes.graph_manipulation")
    made = part(torch).symbolic_trace(lambda a: torch.relu(a.sin()) + a.sin())
    passes.replace_target_nodes_with(made, "call_method", "sin", "call_function", torch.cos)
    return made.code


@program
def bytes_of_nodes(torch):
    passes = part(torch, "passes.graph_manipulation")
    made = traced(torch)
    unknown = caught(lambda: passes.get_tensor_meta(next(iter(made.graph.nodes))))
    passes.get_size_of_all_nodes(made, list(inputs(torch)))
    return unknown, {node.name: tuple(node.size_bytes) for node in made.graph.nodes if node.op != "output"}


Pair = NamedTuple("Pair", [("left", int), ("right", float)])  # noqa: UP014 - the types themselves, not their names


@program
def types_of_items(torch):
    annotate = part(torch, "passes.annotate_getitem_nodes").annotate_getitem_nodes
    shown = []
    for kind in (tuple[int, str], tuple[int, ...], list[float], Pair, None, int):
        graph = part(torch).Graph()
        source = graph.placeholder("a", type_expr=kind)
        items = [graph.call_function(operator.getitem, (source, i)) for i in (0, 1)]
        graph.output(tuple(items))
        annotate(graph)
        shown.append([None if item.type is None else str(getattr(item.type, "__name__", item.type)) for item in items])
    graph = part(torch).Graph()
    graph.call_function(operator.getitem, (graph.placeholder("a", type_expr=tuple[int, str]), 2))
    return shown, caught(lambda: annotate(graph))


@program
def nothing_twice(torch):
    cse = part(torch, "passes.dialect.common.cse_pass")

    def f(a, b):
        c, d = torch.add(a, b), torch.add(a, b)
        e, g = torch.stack([c, d]), torch.stack([d, c])
        return e + g, torch.rand_like(a), torch.rand_like(a), torch.sum(a, dim=0), torch.sum(a, dim=0), torch.sum(a, 1)

    made = part(torch).symbolic_trace(f)
    result = cse.CSEPass(banned_ops={torch.rand_like})(made)
    again = cse.CSEPass(banned_ops={torch.rand_like})(result.graph_module)
    known = torch.ops.aten.add_ in cse.get_CSE_banned_ops(), len(cse.rand_ops), len(cse.inplace_ops)
    return result.modified, result.graph_module.code, again.modified, again.graph_module is result.graph_module, known


@program
def nodes_by_their_source(torch):
    utils = part(torch, "passes.utils.source_matcher_utils")
    graph = part(torch).Graph()
    x = graph.placeholder("x")
    weight = graph.get_attr("weight")
    product = graph.call_function(torch.mul, (x, weight))
    added = graph.call_function(torch.add, (product, x))
    active = graph.call_function(torch.relu, (added,))
    other = graph.call_function(torch.neg, (active,))
    graph.output((other, added))
    for node in (weight, product, added):
        node.meta["source_fn_stack"] = [("linear_1", torch.nn.Linear)]
    active.meta["torch_fn"] = ("relu_1", "builtin_function_or_method.relu")
    other.meta["nn_module_stack"] = {"": ("", "Model"), "inner": ("inner", torch.nn.ReLU6)}
    found = utils.get_source_partitions(graph, [torch.nn.Linear, "relu", torch.nn.Hardtanh])
    shown = [
        [sorted(names(each)) for each in (p.nodes, p.input_nodes, p.output_nodes, p.params)]
        for groups in found.values()
        for p in groups
    ]
    linear, relu = found[torch.nn.Linear][0], found["relu"][0]
    joined = utils.check_subgraphs_connected(linear, relu), utils.check_subgraphs_connected(relu, linear)
    filtered = utils.get_source_partitions(graph, [torch.nn.Linear], filter_fn=lambda node: node.op != "get_attr")
    return shown, joined, {str(key.__name__): len(value) for key, value in filtered.items()}


@program
def shapes_without_values(torch):
    passes = part(torch, "passes.fake_tensor_prop")
    fake = importlib.import_module(f"{torch.__name__}._subclasses.fake_tensor")
    made = traced(torch)
    result = passes.FakeTensorProp(made, fake.FakeTensorMode(allow_non_fake_inputs=True)).propagate(*inputs(torch))
    noted = {n.name: list(n.meta["val"].shape) for n in made.graph.nodes if n.op != "output"}
    values = [isinstance(n.meta["val"], fake.FakeTensor) for n in made.graph.nodes if n.op != "output"]
    sizes = part(torch).symbolic_trace(lambda a: (a + 1, a.size(0)))
    passes.FakeTensorProp(sizes).propagate(torch.ones(3, 2))
    return noted, all(values), [list(each.shape) for each in result], [n.meta["val"] for n in sizes.graph.nodes][2]


@program
def patterns_with_named_nodes(torch):
    utils = part(torch, "passes.utils.matcher_with_name_node_map_utils")

    def pattern(pair):
        added = torch.add(*pair)
        active = torch.relu(added)
        return active, {"added": added, "active": active}

    def target(a, b):
        return torch.relu(torch.add(a, b)) * torch.relu(torch.add(b, 2.0))

    trace, slot = part(torch).symbolic_trace, part(torch).PH
    given = {"pair": (slot, slot)}
    named = trace(pattern, concrete_args=given)
    matcher = utils.SubgraphMatcherWithNameNodeMap(named)
    found = matcher.match(trace(target).graph)
    plain = trace(lambda pair: torch.add(*pair), concrete_args=given)
    no_names = trace(lambda pair: (pair[0], torch.add(*pair)), concrete_args=given)
    return (
        [{key: str(node) for key, node in each.name_node_map.items()} for each in found],
        caught(lambda: utils.SubgraphMatcherWithNameNodeMap(plain)),
        caught(lambda: utils.SubgraphMatcherWithNameNodeMap(no_names)),
    )


@program
def a_module_of_its_source(torch):
    reduce = part(torch, "graph_module").reduce_graph_module
    old = part(torch).symbolic_trace(model(torch).inner)
    body = {key: value for key, value in old.__dict__.items() if key != "_graph"}
    made = reduce({**body, "word": 3}, f"import {torch.__name__} as torch\n")
    return made.code, made(torch.ones(1, 5)), made.word


test_as_torch, test_recording_is_torchs = program.tests()
