"""torch.fx: what is traced, the code that is written, and what may be done with a graph."""

from __future__ import annotations

import copy
import math
import operator
import pickle
from typing import Any, NamedTuple

from tests.autograd.recording import Programs, caught

program = Programs("fx_tracing")


def shape_of(graph: Any) -> list[Any]:
    return [
        (n.op, n.name, str(n.target) if isinstance(n.target, str) else n.target.__name__, str(n.args))
        for n in graph.nodes
    ]


def small(torch: Any) -> Any:
    class Small(torch.nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = torch.nn.Linear(3, 3)
            self.scale = torch.nn.Parameter(torch.full((3,), 2.0))
            self.register_buffer("shift", torch.ones(3))
            self.body = torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Linear(3, 2))
            with torch.no_grad():
                for p in self.parameters():
                    p.copy_(torch.arange(float(p.numel())).reshape(p.shape) / 5)

        def forward(self, x: torch.Tensor, factor: float = 1.5) -> torch.Tensor:
            h = torch.relu(self.linear(x)) * self.scale + self.shift
            h = torch.softmax(h, dim=-1) * factor
            rows = h.shape[0]
            return self.body(h).reshape(rows * 2, -1).sum(dim=1)

    return Small()


def ours(torch: Any) -> Any:
    import importlib

    return importlib.import_module(f"{torch.__name__}.fx")


# ---- the code of a graph ----
@program
def a_module_as_code(torch):
    traced = ours(torch).symbolic_trace(small(torch))
    x = torch.arange(6.0).reshape(2, 3)
    return traced.code, str(traced.graph), traced(x), traced(x, 2.0), small(torch)(x)


@program
def operators_as_code(torch):
    def f(a, b):
        c = a + b * 2 - 3 / a
        d = (a**2 // 2) % 3 @ b
        e = (a & 1) | (b ^ 2) << 1 >> 1
        g = -c + ~d
        return a < b, a >= 1, a == b, a != b, g[0], g[1:, None], g[..., ::2], abs(e), +g

    return ours(torch).symbolic_trace(f).code


@program
def reflected_operators_as_code(torch):
    return ours(torch).symbolic_trace(lambda a: (2 + a, 3 - a, 4 * a, 5 / a, 2**a, 7 // a, 8 % a)).code


@program
def in_place_operators_make_new_values(torch):
    def f(a):
        a += 1
        a *= 2
        return a

    return ours(torch).symbolic_trace(f).code


@program
def values_are_freed_after_their_last_use(torch):
    def f(a, b):
        c = a.sin()
        d = c.cos()
        unused = b.exp()  # noqa: F841
        return d * c

    return ours(torch).symbolic_trace(f).code


@program
def names_that_clash_get_numbers(torch):
    def f(input, sum, add_1):
        add = input + sum
        return (add + add_1).max()

    return ours(torch).symbolic_trace(f).code


@program
def defaults_and_keywords_as_code(torch):
    def f(a, b=2.5, *, c=None, d="x"):
        return torch.add(a, b, alpha=2)

    return ours(torch).symbolic_trace(f, concrete_args={"c": None, "d": "x"}).code.split("\n")[4:]


@program
def containers_as_code(torch):
    def f(a, b):
        return {"sum": a + b, "both": [a, (b,)], "part": slice(1, None)}, torch.cat([a, b], dim=0), torch.stack((a, b))

    return ours(torch).symbolic_trace(f).code


@program
def dtypes_and_devices_as_code(torch):
    def f(a):
        return a.to(torch.float64), torch.zeros(2, dtype=torch.int64, device=torch.device("cpu")) + a, a.to("cpu")

    text = ours(torch).symbolic_trace(f).code
    return text, [n.op for n in ours(torch).symbolic_trace(f).graph.nodes]


@program
def special_numbers_as_code(torch):
    traced = ours(torch).symbolic_trace(lambda a: (a + math.inf, a * -math.inf, a - math.nan))
    return traced.code, traced(torch.tensor(1.0))[:2]


@program
def variable_arguments(torch):
    def f(a, *args, **kwargs):
        return a + args[0] * kwargs["scale"]

    graph = ours(torch).symbolic_trace(f).graph
    return str(graph), shape_of(graph)


@program
def unpacking_a_known_number(torch):
    def f(a):
        b, c = a.chunk(2)
        return b - c

    traced = ours(torch).symbolic_trace(f)
    return traced.code, traced(torch.arange(4.0))


@program
def nested_arguments(torch):
    def f(x, d):
        return {"a": x + d["k"][0], "b": [x, d["k"][1]]}

    PH = ours(torch).PH  # noqa: N806 - torch's name
    traced = ours(torch).symbolic_trace(f, concrete_args={"d": {"k": [PH, PH]}})
    one = torch.ones(2)
    return traced.code, traced(one, {"k": [one * 2, one * 3]})


@program
def arguments_that_are_fixed(torch):
    def f(x, flag, n):
        return x * n if flag else x

    traced = ours(torch).symbolic_trace(f, concrete_args={"flag": True, "n": 3})
    return str(traced.graph), traced(torch.ones(2), True, 3), caught(lambda: traced(torch.ones(2), False, 3))


# ---- what cannot be traced ----
@program
def branches_and_loops_are_refused(torch):
    fx = ours(torch)
    return [
        caught(lambda: fx.symbolic_trace(lambda a: 1 if a else 2)),
        caught(lambda: fx.symbolic_trace(lambda a: [b for b in a])),
        caught(lambda: fx.symbolic_trace(lambda a: len(a))),
        caught(lambda: fx.symbolic_trace(lambda a: {a: 1})),
    ]


@program
def a_module_that_is_not_below_the_root(torch):
    inner = torch.nn.Linear(2, 2)
    return caught(lambda: ours(torch).symbolic_trace(lambda a: inner(a)))


@program
def a_parameter_that_is_not_below_the_root(torch):
    weight = torch.nn.Parameter(torch.ones(2))
    return caught(lambda: ours(torch).symbolic_trace(lambda a: a * weight))


@program
def tensors_of_the_program_become_attributes(torch):
    constant = torch.tensor([1.0, 2.0])
    traced = ours(torch).symbolic_trace(lambda a: a * constant + constant)
    return traced.code, [name for name, _ in traced.named_buffers()], traced(torch.ones(2))


# ---- tracers ----
@program
def a_tracer_chooses_leaves(torch):
    fx = ours(torch)

    class NoLeaves(fx.Tracer):
        def is_leaf_module(self, m, name):
            return not isinstance(m, (torch.nn.ReLU, torch.nn.Sequential))

    return [(n.op, n.name) for n in NoLeaves().trace(small(torch)).nodes]


@program
def nodes_know_their_modules(torch):
    graph = ours(torch).Tracer().trace(small(torch))
    return [
        (n.name, [(k, v[0], v[1].__name__) for k, v in n.meta.get("nn_module_stack", {}).items()]) for n in graph.nodes
    ]


@program
def shapes_of_parameters_may_be_constants(torch):
    fx = ours(torch)

    class Module(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.weight = torch.nn.Parameter(torch.ones(4, 2))

        def forward(self, x):
            return x[:, : self.weight.shape[1]] + self.weight.numel() + self.weight.dim()

    module = Module()
    return fx.GraphModule(module, fx.Tracer(param_shapes_constant=True).trace(module)).code


@program
def functions_of_math_are_recorded(torch):
    return shape_of(ours(torch).symbolic_trace(lambda a: math.sqrt(a) + 1).graph)


# ---- building and changing ----
@program
def a_graph_built_by_hand(torch):
    fx = ours(torch)
    graph = fx.Graph()
    x = graph.placeholder("x")
    y = graph.placeholder("y", default_value=3)
    a = graph.call_function(operator.add, (x, y))
    b = graph.call_method("relu", (a,))
    c = graph.call_function(torch.mul, (b, 2.0), {})
    graph.output((c, [a, b]))
    graph.lint()
    module = fx.GraphModule({}, graph)
    return module.code, str(graph), module(torch.tensor([-5.0, 1.0]))


@program
def users_and_inputs(torch):
    graph = ours(torch).symbolic_trace(lambda a, b: (a + b) * (a - b)).graph
    return [(n.name, list(map(str, n.users)), list(map(str, n.all_input_nodes))) for n in graph.nodes]


@program
def nodes_are_replaced_and_erased(torch):
    fx = ours(torch)
    traced = fx.symbolic_trace(lambda a, b: torch.relu(a + b) * a)
    for node in traced.graph.nodes:
        if node.target is operator.add:
            with traced.graph.inserting_after(node):
                new = traced.graph.call_function(torch.sub, node.args, {"alpha": 2})
            node.replace_all_uses_with(new)
            refused = caught(lambda: traced.graph.erase_node(new))  # noqa: B023 - called at once
            traced.graph.erase_node(node)
    traced.graph.lint()
    traced.recompile()
    return traced.code, refused, traced(torch.ones(2), torch.ones(2) * 3)


@program
def arguments_are_changed(torch):
    traced = ours(torch).symbolic_trace(lambda a, b: torch.add(a, b))
    a, b, add, _ = traced.graph.nodes
    add.args = (b, a)
    add.kwargs = {"alpha": 3}
    one = traced.graph.python_code("self").src
    add.update_arg(0, a)
    add.update_kwarg("alpha", 5)
    add.insert_arg(2, 7)
    two = [str(x) for x in add.args], dict(add.kwargs)
    refused = caught(lambda: add.kwargs.update(x=1))
    return one, two, refused, [str(n) for n in a.users]


@program
def nodes_are_moved(torch):
    graph = ours(torch).symbolic_trace(lambda a: (a.sin(), a.cos())).graph
    _, sin, cos, _ = graph.nodes
    sin.prepend(cos)
    order = [n.name for n in graph.nodes]
    cos.append(sin)
    return order, [n.name for n in graph.nodes], [n.name for n in reversed(graph.nodes)], len(graph.nodes), sin > cos


@program
def lint_finds_what_is_wrong(torch):
    fx = ours(torch)
    graph = fx.symbolic_trace(lambda a: a.sin().cos()).graph
    _, sin, cos, _ = graph.nodes
    cos.append(sin)
    other = fx.Graph()
    foreign = other.placeholder("z")
    second = fx.symbolic_trace(lambda a: a + 1)
    next(n for n in second.graph.nodes if n.name == "add").args = (foreign, 1)
    return caught(graph.lint), caught(second.graph.lint)


@program
def dead_code_goes(torch):
    def f(a):
        a.sin()
        torch.exp(a)
        a.add_(1)
        return a * 2

    graph = ours(torch).symbolic_trace(f).graph
    return graph.eliminate_dead_code(), [n.name for n in graph.nodes], graph.eliminate_dead_code()


@program
def graphs_are_copied(torch):
    fx = ours(torch)
    traced = fx.symbolic_trace(small(torch))
    new = fx.Graph()
    mapping: dict[Any, Any] = {}
    result = new.graph_copy(traced.graph, mapping)
    new.output(result)
    return str(new) == str(traced.graph).replace(" torch.Tensor", " torch.Tensor"), len(new.nodes), len(mapping)


@program
def modules_are_copied_and_pickled(torch):
    traced = ours(torch).symbolic_trace(small(torch))
    x = torch.arange(6.0).reshape(2, 3)
    deep, shallow = copy.deepcopy(traced), copy.copy(traced)
    again = pickle.loads(
        pickle.dumps(ours(torch).symbolic_trace(torch.nn.Sequential(torch.nn.ReLU(), torch.nn.Flatten())))
    )
    return (
        deep(x),
        shallow(x),
        deep.code == traced.code,
        type(deep).__name__,
        deep.linear is traced.linear,
        again(x - 2),
    )


@program
def finding_nodes(torch):
    graph = ours(torch).symbolic_trace(lambda a: torch.relu(torch.relu(a) + a).sum()).graph
    return [n.name for n in graph.find_nodes(op="call_function", target=torch.relu)], [
        n.name for n in graph.find_nodes(op="placeholder")
    ]


@program
def submodules_come_and_go(torch):
    traced = ours(torch).symbolic_trace(small(torch))
    added = traced.add_submodule("extra.inner", torch.nn.ReLU())
    names = [name for name, _ in traced.named_modules()]
    gone = traced.delete_submodule("extra.inner"), traced.delete_submodule("nothing.here")
    traced.add_submodule("unused", torch.nn.ReLU())
    traced.delete_all_unused_submodules()
    return added, names, gone, [name for name, _ in traced.named_modules()]


@program
def code_is_changed_before_it_runs(torch):
    traced = ours(torch).symbolic_trace(lambda a: a + 1)
    with traced.graph.on_generate_code(lambda before: lambda body: ["a = a * 10\n", *body]):
        traced.recompile()
        inside = traced(torch.ones(2))
    traced.recompile()
    return inside, traced(torch.ones(2))


# ---- walking a graph ----
@program
def an_interpreter_that_swaps_functions(torch):
    fx = ours(torch)

    class Swap(fx.Interpreter):
        def call_function(self, target, args, kwargs):
            return (
                torch.neg(*args, **kwargs) if target is torch.sigmoid else super().call_function(target, args, kwargs)
            )

        def call_method(self, target, args, kwargs):
            return args[0] * 100 if target == "neg" else super().call_method(target, args, kwargs)

    traced = fx.symbolic_trace(lambda x: torch.sigmoid(x).neg() + 1)
    return (
        Swap(traced).run(torch.ones(3)),
        fx.Interpreter(traced).run(torch.zeros(1)),
        caught(lambda: fx.Interpreter(traced).run()),
    )


@program
def a_transformer_that_writes_another_graph(torch):
    fx = ours(torch)

    class Swap(fx.Transformer):
        def call_function(self, target, args, kwargs):
            return super().call_function(torch.mul if target is operator.add else target, args, kwargs)

    traced = fx.symbolic_trace(small(torch))
    other = Swap(traced).transform()
    return other.code, other(torch.ones(2, 3))


@program
def proxies_around_nodes(torch):
    fx = ours(torch)
    graph = fx.Graph()
    x = fx.Proxy(graph.placeholder("x"))
    y = torch.relu(x + 1) @ x.T
    graph.output(y.node)
    return str(graph), repr(y)


@program
def patterns_are_replaced(torch):
    fx = ours(torch)

    def f(x, w1, w2):
        val1 = torch.neg(w1)
        m1 = torch.cat([val1, w2]).sum()
        val2 = torch.neg(w1)
        m2 = torch.cat([val2, w2]).sum()
        return x + torch.max(m1) + torch.max(m2)

    traced = fx.symbolic_trace(f)
    matches = fx.replace_pattern(traced, lambda a, b: torch.cat([a, b]).sum(), lambda a, b: torch.stack([a, b]).mean())
    one = torch.arange(3.0)
    return len(matches), traced.code, traced(one, one, one)


@program
def a_pattern_that_others_use_stays(torch):
    fx = ours(torch)
    traced = fx.symbolic_trace(lambda a: (a.relu() + 1, a.relu().sin(), a.sin()))
    shared = fx.symbolic_trace(lambda a: (lambda r: (r + 1, r))(a.relu()))
    return (
        len(fx.replace_pattern(traced, lambda a: a.relu().sin(), lambda a: a.cos())),
        len(fx.replace_pattern(shared, lambda a: a.relu() + 1, lambda a: a.cos())),
        traced.code,
    )


@program
def shapes_are_noted(torch):
    from importlib import import_module

    traced = ours(torch).symbolic_trace(small(torch))
    import_module(f"{torch.__name__}.fx.passes.shape_prop").ShapeProp(traced).propagate(torch.ones(2, 3))
    metas = [(n.name, n.meta["tensor_meta"]) for n in traced.graph.nodes if "tensor_meta" in n.meta]
    return [(name, tuple(m.shape), str(m.dtype), m.stride, m.requires_grad) for name, m in metas]


class Pair(NamedTuple):
    a: Any
    b: Any


@program
def named_tuples_are_built_by_nodes(torch):
    traced = ours(torch).symbolic_trace(lambda a: Pair(a + 1, a * 2))
    return [n.op for n in traced.graph.nodes], list(traced(torch.ones(1)))


@program
def wrap_wants_the_top_of_a_module(torch):
    return caught(lambda: ours(torch).wrap("len")), caught(lambda: ours(torch).wrap(3))


@program
def gradients_through_a_traced_module(torch):
    module = small(torch)
    traced = ours(torch).symbolic_trace(module)
    traced(torch.ones(2, 3)).sum().backward()
    return [p.grad for p in module.parameters()]


test_as_torch, test_recording_is_torchs = program.tests()
