"""The graph and its engine: backward, grad, gradient edges, hooks, what hooks may ask."""

from __future__ import annotations

import gc
import importlib
import math
import pickle
import weakref
from collections import OrderedDict
from copy import deepcopy

from tests.torch_tests.suite import accumulator, function, heard, leaf, near, no_collector, refused, suite

graph = suite("TestAutograd")


@graph
def copy_slices_graph_task_updates(torch):
    x, y = leaf(torch, 2), leaf(torch, 2)
    failing = torch._C._functions.DelayedError("Boom", 1)(y)

    def once():
        out = x.clone().view(-1)
        out += failing
        return out

    def twice():
        out = x.clone().view(-1)
        b = out * 2
        out += failing
        return out + b

    for make in (once, twice):
        with refused("Boom"):
            make().sum().backward()
        with refused("Boom"):
            torch.autograd.grad(make().sum(), y)
        for wanted in (x, failing, (x, failing)):
            torch.autograd.grad(make().sum(), wanted)
    out = x.clone().view(-1)
    out.register_hook(lambda g: 1 / 0)
    b = out + failing
    out += failing
    torch.autograd.grad((out + b).sum(), (b, failing))


@graph
def tensor_grad_warnings(torch):
    x = torch.empty(1).requires_grad_()
    with heard() as texts:
        x.grad
    assert not texts
    y = x.clone()
    with heard() as texts:
        y.grad
    assert len(texts) == 1
    y.retain_grad()
    with heard() as texts:
        y.grad
    assert not texts


@graph
def not_implemented_grad(torch):
    a = leaf(torch, 2)
    with refused("the derivative for .* is not implemented", NotImplementedError):
        torch.igamma(a, a).sum().backward()


@graph
def not_implemented_fwad(torch):
    fw = torch.autograd.forward_ad
    with fw.dual_level():
        dual = fw.make_dual(torch.rand(3), torch.rand(3))
        with refused("Trying to use forward AD with .* that does not support it", NotImplementedError):
            torch.igamma(dual, dual)


@graph
def will_engine_execute_node(torch):
    own = function(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2)

    def node(t):
        return t.clone().grad_fn.next_functions[0][0] if t.grad_fn is None else t.grad_fn

    asked = torch._C._will_engine_execute_node
    a, other = leaf(torch, 2, 3), leaf(torch, 2, 3)
    b = a * other
    aside, c = b.cos(), own.apply(b)
    yes, no, seen = [node(t) for t in (a, b, c)], [node(t) for t in (other, aside)], []

    def hook(g):
        seen.append(all(map(asked, yes)) and not any(map(asked, no)))

    b.register_hook(hook), c.register_hook(hook)
    out = c.sum()
    torch.autograd.backward(out, inputs=(a, b), retain_graph=True)
    assert seen == [True, True]
    yes, no = [node(t) for t in (a, other, b, c)], [node(aside)]
    torch.autograd.backward(out, retain_graph=True)
    assert seen == [True] * 4
    with refused("are currently running autograd.grad"):
        torch.autograd.grad(out, (a,))
    with refused("during the backward pass"):
        asked(out.grad_fn)
    with refused("expects an grad_fn"):
        asked(out)
    inner = leaf(torch, 2) * 2
    b = inner * 2
    seen.clear()
    b.register_hook(lambda g: seen.append(asked(b.grad_fn)))
    torch.autograd.grad(b.sum(), (inner,))
    assert seen == [True]


@graph
def accumulate_grad(torch):
    def run(create_graph):
        x = leaf(torch, 5)
        y = x + 2
        y.backward(torch.ones(5), retain_graph=True)
        held, copy = x.grad, x.grad.clone()
        y.backward(torch.ones(5), create_graph=create_graph)
        return held, copy

    held, copy = run(False)
    assert near(held, 2 * copy)
    held, copy = run(True)
    assert near(held, copy)


@graph
def accumulate_grad_with_zero_numel_grad(torch):
    a, b = torch.rand(4, 0, requires_grad=True), torch.rand(4, 1, requires_grad=True)
    (a + b).sum().backward()
    assert near(b.grad, [[0.0]] * 4)
    assert a.grad.shape == (4, 0)


@graph
def hessian_vector(torch):
    x, y = leaf(torch, 2, 2), leaf(torch, 2, 2)
    (x**2 + y * x + y**2).backward(torch.ones(2, 2), create_graph=True)
    gx, gy = x.grad.detach().clone(), y.grad.detach().clone()
    assert near(gx, 2 * x + y)
    (2 * x.grad + y.grad).backward(torch.ones(2, 2))
    assert near(x.grad, gx + 5)
    assert near(y.grad, gy + 4)


@graph
def grad(torch):
    x, y = leaf(torch, 2, 2), leaf(torch, 2, 2)
    (x**2 + y * x + y**2).backward(torch.ones(2, 2), create_graph=True)
    total = 2 * x.grad + y.grad
    (found,) = torch.autograd.grad([total], [x], [torch.ones(2, 2)], create_graph=True)
    assert near(found, 5.0)
    assert near(x.grad, 2 * x + y)
    with refused(r"Mismatch in shape: grad_output\[0\] has a shape of torch.Size\(\[2\]\) and output\[0\] has"):
        torch.autograd.grad([total], [x], [torch.ones(2)], create_graph=True)


@graph
def grad_to_node(torch):
    def check(out, x):
        edge = torch.autograd.graph.get_gradient_edge(x)
        assert near(torch.autograd.grad(out.sum(), edge, retain_graph=True), torch.autograd.grad(out.sum(), x))

    x = leaf(torch, 2)
    check(x.clone(), x)
    x = x.clone()
    check(x.clone(), x)
    x = importlib.import_module(f"{torch.__name__}.autograd._functions").Resize.apply(x, (2,))
    check(x.clone(), x)
    x = torch.var_mean(x)[1]
    check(x.clone(), x)


@graph
def grad_to_node_set(torch):
    x = leaf(torch, 2)
    edge, out = torch.autograd.graph.get_gradient_edge(x), x.clone()
    with torch.no_grad():
        x.set_(torch.rand_like(x))
    with refused("to not have been used in the graph"):
        torch.autograd.grad(out.sum(), x)
    assert near(torch.autograd.grad(out.sum(), edge)[0], [1.0, 1.0])


@graph
def grad_to_node_inplace(torch):
    x = leaf(torch, 2).clone()
    edge = torch.autograd.graph.get_gradient_edge(x)
    x *= 2
    old, new = torch.autograd.grad(x.sum(), (edge, x))
    assert near(old, [2.0, 2.0])
    assert near(new, [1.0, 1.0])


@graph
def grad_to_node_multi(torch):
    kind = torch.autograd.graph.GradientEdge
    x, y = leaf(torch, 2).clone(), leaf(torch, 2).clone()
    out = x + y
    expected = torch.autograd.grad(out.sum(), (x, y))
    edges = [kind(t.grad_fn, t.output_nr) for t in (x, y)]
    assert near(torch.autograd.grad(out.sum(), edges), expected)


@graph
def grad_to_node_materialize(torch):
    kind = torch.autograd.graph.GradientEdge
    x, y = leaf(torch, 2).clone(), leaf(torch, 2).clone()
    of_x, of_y = (kind(t.grad_fn, t.output_nr) for t in (x, y))
    out, more = x.clone(), {"allow_unused": True}
    torch.autograd.grad(out.sum(), (of_x, y), materialize_grads=True, **more)
    torch.autograd.grad(out.sum(), (x, y), materialize_grads=True, **more)
    torch.autograd.grad(out.sum(), (x, of_y), **more)
    with refused("materialize_grads cannot be used when the given input is a GradientEdge"):
        torch.autograd.grad(out.sum(), (x, of_y), materialize_grads=True, **more)


@graph
def backward_to_node(torch):
    kind = torch.autograd.graph.GradientEdge
    x, y = leaf(torch, 2).clone(), leaf(torch, 2).clone()
    of_x, of_y = (kind(t.grad_fn, t.output_nr) for t in (x, y))
    out = x.clone()
    for inputs in ((of_x, y), (x, y), (x, of_y), (of_x, of_y)):
        torch.autograd.backward(out.sum(), inputs=inputs)


@graph
def grad_fn_input_metadata(torch):
    x, y = leaf(torch, 2, dtype=torch.float32), leaf(torch, 2, dtype=torch.float32)
    facts = (x * y).grad_fn._input_metadata[0]
    assert tuple(facts.shape) == (2,)
    assert facts.dtype is torch.float32
    variance, _ = torch.var_mean(leaf(torch, 3, 3), dim=0)
    assert [tuple(one.shape) for one in variance.grad_fn._input_metadata] == [(3,), (3,)]
    own = function(torch, lambda ctx, x: x, lambda ctx, g: g).apply(leaf(torch, 3, 3))
    assert tuple(own.grad_fn._input_metadata[0].shape) == (3, 3)


@graph
def gradient_edge_output(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)

    def run(reduce=True):
        mid = x.sin().cos()
        mid = mid.sum() if reduce else mid
        return mid.exp().clone().sin().sum(), torch.autograd.graph.get_gradient_edge(mid)

    out, edge = run()
    (g,) = torch.autograd.grad(out, (edge,))
    (found,) = torch.autograd.grad(edge, (x,), grad_outputs=(g,))
    assert near(found, torch.autograd.grad(run()[0], (x,))[0])
    with refused("grad can be implicitly created only for scalar output"):
        torch.autograd.grad(run(False)[1], (x,))
    torch.autograd.grad(run()[1], (x,))
    with refused("Mismatch in shape"):
        torch.autograd.grad(run()[1], (x,), grad_outputs=torch.ones(4))
    with refused("required to have the same dtype"):
        torch.autograd.grad(run()[1], (x,), grad_outputs=torch.ones((), dtype=torch.complex64))
    _, edge = run()
    torch.autograd.backward(edge, retain_graph=True)
    (expected,) = torch.autograd.grad(edge, (x,), retain_graph=True)
    assert near(x.grad, expected)
    x.grad = None
    torch.autograd.backward((edge,), retain_graph=True)
    assert near(x.grad, expected)
    (_, one), (out, _) = run(), run()
    (expected,) = torch.autograd.grad((one, out), (x,), retain_graph=True)
    x.grad = None
    torch.autograd.backward((one, out), retain_graph=True)
    assert near(x.grad, expected)
    with refused("Mismatch in shape"):
        torch.autograd.backward(run()[1], inputs=(x,), grad_tensors=torch.ones(4))


@graph
def gradient_edge_graph_ownership(torch):
    clone = function(torch, lambda ctx, x: x.clone(), lambda ctx, g: g.clone())
    x = torch.rand(1, requires_grad=True).clone()
    for make in (lambda: x.clone(), lambda: clone.apply(x)):
        out = make()
        edge = torch.autograd.graph.get_gradient_edge(out)
        torch.autograd.backward(edge)
        del out
        torch.autograd.backward(edge)


@graph
def grad_nonleaf(torch):
    first, y = leaf(torch, 2, 2), leaf(torch, 2, 2)
    x = first

    def f(x):
        return x**2 + y * x + y**2

    for _ in range(5):
        (g,) = torch.autograd.grad(f(x), x, grad_outputs=torch.ones(2, 2), create_graph=True)
        assert near(g, 2 * x + y)
        assert x.is_leaf is (x is first)
        assert y.grad is None
        x = x + 0.05 * g
    assert f(x).sum() > f(first).sum()
    x.backward(torch.ones(2, 2))
    assert y.grad is not None
    assert first.grad is not None


@graph
def grad_nonleaf_many_outputs(torch):
    x, called = leaf(torch, 4, 2), []
    a, b = x.chunk(2)
    x.register_hook(lambda g: called.append(1))
    g = torch.ones(2, 2) * 3
    ga, gb = torch.autograd.grad(a + 2 * b, [a, b], grad_outputs=g, create_graph=True)
    assert near(ga, 3.0)
    assert near(gb, 6.0)
    assert not called
    assert x.grad is None


@graph
def grad_nonleaf_register_hook(torch):
    x, seen = leaf(torch, 5), []
    parts = x.unbind()
    parts[0].register_hook(seen.append)
    parts[0].backward()
    assert near(seen, [1.0])
    assert near(x.grad, [1.0, 0, 0, 0, 0])
    for i in range(1, 5):
        parts[i].backward()
        assert near(x.grad, [1.0] * (i + 1) + [0] * (4 - i))
        assert parts[i].grad is None
    assert seen[1:] == [None] * 4


@graph
def grad_materialize_grads(torch):
    x, a = torch.tensor(0.5, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    y = x * a
    first = torch.autograd.grad(y, x, create_graph=True)
    assert torch.autograd.grad(first, x, create_graph=True, allow_unused=True)[0] is None
    second = torch.autograd.grad(first, x, create_graph=True, allow_unused=True, materialize_grads=True)
    assert second[0].item() == 0
    assert torch.autograd.grad(second, x, materialize_grads=True)[0].item() == 0
    with refused("Expected allow_unused to be True or not passed when", ValueError):
        torch.autograd.grad(y, x, allow_unused=False, materialize_grads=True)


@graph
def unused_grad_requires_grad_with_materialize(torch):
    x, y = leaf(torch, 3), leaf(torch, 3)
    found = torch.autograd.grad((x**2).sum(), (x, y), allow_unused=True, materialize_grads=True)
    assert not any(one.requires_grad for one in found)


@graph
def post_accumulate_grad_hook_on_non_leaf(torch):
    with refused("post accumulate grad hooks cannot be registered on non-leaf tensors"):
        (2 * leaf(torch, 3)).register_post_accumulate_grad_hook(lambda t: t.sub_(1))


@graph
def post_accumulate_grad_hook_multiple_hooks(torch):
    x = leaf(torch, 3)
    before = x.detach().clone()
    with torch.no_grad():
        x.register_post_accumulate_grad_hook(
            lambda t: t.sub_(t.grad) and None if False else _in_no_grad(torch, t.sub_, t.grad)
        )
        x.register_post_accumulate_grad_hook(lambda t: _in_no_grad(torch, t.mul_, 4.0))
    x.sum().backward()
    assert near(x, 4 * (before - 1))


def _in_no_grad(torch, call, *args):
    with torch.no_grad():
        call(*args)


@graph
def post_accumulate_grad_hook_multiple_tensors(torch):
    for x in (leaf(torch, 3), leaf(torch, 5)):
        before = x.detach().clone()
        x.register_post_accumulate_grad_hook(lambda t: _in_no_grad(torch, t.sub_, t.grad))
        x.sum().backward()
        assert near(x, before - 1)


@graph
def post_accumulate_grad_hook_returns_not_None(torch):
    x = leaf(torch, 2, 3)
    x.register_post_accumulate_grad_hook(lambda t: t.grad)
    with refused("hooks should return None"):
        x.sum().backward()


@graph
def post_accumulate_grad_hook_e2e(torch):
    model = torch.nn.Linear(3, 2)
    x, optimizers, handles = torch.rand(2, 3), {}, []

    def step(p):
        optimizers[p].step()
        optimizers[p].zero_grad()

    for p in model.parameters():
        optimizers[p] = torch.optim.Adam([p])
        handles.append(p.register_post_accumulate_grad_hook(step))
    other = deepcopy(model)
    whole = torch.optim.Adam(other.parameters())

    def train():
        for _ in range(3):
            model(x).sum().backward()
            other(x).sum().backward()
            whole.step()
            whole.zero_grad()

    train()
    for one, two in zip(model.parameters(), other.parameters(), strict=True):
        assert near(one, two)
    frozen = [p.detach().clone() for p in model.parameters()]
    for handle in handles:
        handle.remove()
    train()
    for was, one, two in zip(frozen, model.parameters(), other.parameters(), strict=True):
        assert near(was, one)
        assert not near(one, two)


@graph
def post_accumulate_grad_hook_gets_cleaned_up(torch):
    def scope():
        kept, x = torch.rand(3), leaf(torch, 3)
        x.register_post_accumulate_grad_hook(lambda t: kept.sum() and None)
        x.sum().backward()
        return x, weakref.ref(kept)

    with no_collector():
        x, ref = scope()
        assert ref() is not None
        del x
        gc.collect()
        assert ref() is None


@graph
def post_accumulate_grad_hook_ordering(torch):
    x = leaf(torch, 3)
    node = accumulator(x)

    def last(grads_in, grads_out):
        x.grad = grads_out[0].mul(10)

    x.register_hook(lambda g: g.sub(2.0))
    node.register_prehook(lambda gs: (gs[0].div(5.0),))
    x.register_post_accumulate_grad_hook(
        lambda t: t.grad.add_(0.5) and None if False else _in_no_grad(torch, t.grad.add_, 0.5)
    )
    node.register_hook(last)
    x.sum().backward()
    assert near(x.grad, [3.0, 3.0, 3.0])


@graph
def hook_with_no_name(torch):
    class Hook:
        def __call__(self, g):
            return g.clone()

    x = leaf(torch, 5).clone()
    x.register_hook(Hook())
    x.sum().backward()


@graph
def prehook_ordering(torch):
    log = []
    a = torch.tensor(1.0, requires_grad=True)
    b = a.clone()
    on_tensor = lambda g: log.append(1) or g * 3  # noqa: E731
    on_node = lambda gs: log.append(2) or tuple(g * 2 for g in gs)  # noqa: E731
    b.grad_fn.register_prehook(on_node)
    b.register_hook(on_tensor)
    b.grad_fn.register_prehook(on_node)
    node = b.grad_fn.next_functions[0][0]
    a.register_hook(on_tensor)
    node.register_prehook(on_node)
    a.register_hook(on_tensor)
    b.sum().backward(retain_graph=True)
    assert log == [1, 2, 2, 1, 1, 2]
    log.clear()
    torch.autograd.grad(b.sum(), inputs=(a,), retain_graph=True)
    assert log == [1, 2, 2, 1, 1]
    log.clear()
    b.sum().backward(inputs=(b,))
    assert log == [1, 2, 2]
    assert b.grad.item() == 3


@graph
def retains_grad_can_always_observe_tensor_prehook(torch):
    for before in (True, False):
        b = torch.tensor(1.0, requires_grad=True).clone()
        if before:
            b.register_hook(lambda g: g * 2)
        b.retain_grad()
        b.register_hook(lambda g: g * 2)
        b.clone().backward()
        assert b.grad.item() == (4 if before else 2)


@graph
def accumulate_grad_posthooks_can_observe_tensor_prehook(torch):
    a, seen = torch.tensor(1.0, requires_grad=True), []
    b = a.clone()
    node = b.grad_fn.next_functions[0][0]
    node.register_hook(lambda out, got: seen.append((len(out), got[0].item())))
    node.register_prehook(lambda got: seen.append((len(got), got[0].item())))
    a.register_hook(lambda g: g * 2)
    b.backward()
    assert seen == [(1, 2.0), (0, 2.0)]


@graph
def accumulate_grad_posthooks_should_not_execute(torch):
    a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(1.0, requires_grad=True)
    a.register_hook(lambda g: 1 / 0)
    c = a.clone()
    c.grad_fn.next_functions[0][0].register_hook(lambda *g: 1 / 0)
    (a + b + c).sum().backward(inputs=[b])
    assert b.grad.item() == 1


@graph
def hook_edge_case_when_called_with_grad(torch):
    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    c = b * 2
    counts = {"tensor": 0, "pre": 0, "post": 0}

    def count(name):
        def hook(*grads):
            counts[name] += 1

        return hook

    for one in (a, b):
        one.register_hook(count("tensor"))
    for node in (b.grad_fn.next_functions[0][0], b.grad_fn):
        node.register_hook(count("post"))
        node.register_prehook(count("pre"))

    def run(call):
        counts.update(dict.fromkeys(counts, 0))
        call()
        return tuple(counts.values())

    assert run(lambda: torch.autograd.grad(c, inputs=b, retain_graph=True)) == (1, 0, 0)
    assert run(lambda: torch.autograd.grad(c, inputs=(a, b), retain_graph=True)) == (2, 1, 1)
    assert run(lambda: c.backward(retain_graph=True)) == (2, 2, 2)
    assert run(lambda: c.backward(inputs=(a, b), retain_graph=True)) == (2, 2, 2)


@graph
def sharded_grad(torch):
    leaves = [torch.zeros(2, 2, requires_grad=True) for _ in range(6)]
    middle = [one * i + one * one for i, one in enumerate(leaves)]
    loss = sum(one * i for i, one in enumerate(middle)).sum()
    grads = [g for at in range(0, 6, 2) for g in torch.autograd.grad(loss, middle[at : at + 2])]
    torch.autograd.backward(middle, grads)
    for i, one in enumerate(leaves):
        assert near(one.grad, i * i * (1 + one))


@graph
def backward_badcalls(torch):
    with refused("does not require grad"):
        torch.ones(1).backward()


@graph
def grad_badcalls(torch):
    x = torch.ones(1)
    for pair in ((x, x**2), (x**2, x)):
        with refused("does not require grad"):
            torch.autograd.grad(*pair)
    x.requires_grad_()
    torch.autograd.grad(x**2, x)


@graph
def grad_empty_inputs(torch):
    x = torch.tensor([1.0], requires_grad=True)
    with refused("cannot be empty|requires non-empty inputs", Exception):
        torch.autograd.grad(2 * x, [], grad_outputs=torch.tensor([1.0]))


@graph
def grad_fn_badcalls(torch):
    x = torch.ones(1, requires_grad=True)
    node = (x**2).grad_fn
    for grads in ((x.detach(), x.detach()), ()):
        with refused("expected .* arguments, got .* instead", TypeError):
            node(*grads)
    node(x.detach())


@graph
def grad_unreachable(torch):
    x, y = torch.ones(1, requires_grad=True), torch.ones(1, requires_grad=True)
    y * 2
    for other in (y, torch.ones(1, requires_grad=True)):
        gx, none = torch.autograd.grad(x * 2, [x, other], allow_unused=True)
        assert near(gx, [2.0])
        assert none is None
    with refused("Set allow_unused=True"):
        torch.autograd.grad(x * 2, [x, y], allow_unused=False)


@graph
def grad_unreachable_discovery(torch):
    own = function(torch, lambda ctx, x: x, lambda ctx, g: 1 / 0)
    y, z = torch.rand(1, requires_grad=True), torch.rand(1, requires_grad=True)
    x = own.apply(torch.rand(1, requires_grad=True) * 2)
    assert torch.autograd.grad(x, (y,), allow_unused=True)[0] is None
    gy, gz = torch.autograd.grad(x + z, (y, z), allow_unused=True)
    assert gy is None
    assert gz is not None
    torch.autograd.backward(x, inputs=(y,))
    assert y.grad is None


@graph
def grad_batched_grad(torch):
    x = torch.rand(2, 2, requires_grad=True)
    seeds = torch.arange(3).expand(2, 2, 3).transpose(0, 2)
    words = "If `is_grads_batched=True`, we interpret the first"
    (found,) = torch.autograd.grad(x.clone(), (x,), (seeds,), is_grads_batched=True)
    assert near(found, seeds.to(found.dtype))
    with refused(words):
        torch.autograd.grad(x.clone(), (x,), (torch.ones(2, 2),), is_grads_batched=True)
    (found,) = torch.autograd.grad(x.sum(), (x,), (torch.arange(3),), is_grads_batched=True)
    assert near(found, seeds.to(found.dtype))
    with refused(words):
        torch.autograd.grad(x.sum(), (x,), (torch.ones(2).unsqueeze(1),), is_grads_batched=True)


@graph
def hooks(torch):
    x, y, count = torch.ones(2, 2, requires_grad=True), (torch.ones(2, 2) * 4).requires_grad_(), [0]

    def counting(by):
        def hook(g):
            assert isinstance(g, torch.Tensor)
            count[0] += by

        return hook

    z = x**2 + x * 2 + x * y + y
    x.register_hook(counting(0))
    first = z.register_hook(counting(1))
    run = lambda **more: z.backward(torch.ones(2, 2), **more)  # noqa: E731
    run(retain_graph=True)
    assert count[0] == 1
    second = z.register_hook(counting(2))
    run(retain_graph=True)
    assert count[0] == 4
    second.remove()
    run(retain_graph=True)
    assert count[0] == 5
    first.remove()
    z.register_hook(lambda g: g.mul(2))
    y.grad = None
    run(retain_graph=True)
    assert near(y.grad, (x + 1) * 2)
    y.register_hook(lambda g: g.mul(2))
    y.grad = None
    run()
    assert near(y.grad, (x + 1) * 4)


def _doubles(torch):
    return function(torch, lambda ctx, x: x * 2, lambda ctx, g: g * 2).apply, lambda x: x * 2


@graph
def grad_fn_prehooks(torch):
    for double in _doubles(torch):
        a, seen = torch.tensor([1.0], requires_grad=True), []
        node = (b := double(a)).grad_fn
        for _ in range(2):
            node.register_hook(lambda got, given, seen=seen: seen.append((got[0].item(), given[0].item())) or got)
        for hook in (lambda g: (g[0] * 2,), lambda g: None, lambda g: (g[0] * 2,), lambda g: (g[0] * 2,), lambda g: g):
            node.register_prehook(hook)
        b.sum().backward()
        assert seen == [(16.0, 8.0)] * 2
        a = torch.rand(3, 3, requires_grad=True)
        b = double(a)
        b.grad_fn.register_prehook(lambda g: None)
        b.sum().backward()
        assert near(a.grad, 2.0)


@graph
def grad_fn_prehooks_multiple_outputs(torch):
    b = leaf(torch, 3, 3)
    (sum(torch.var_mean(b, dim=0))).sum().backward()
    a = b.detach().requires_grad_()
    variance, mean = torch.var_mean(a, dim=0)
    calls = []
    mean.grad_fn.register_prehook(lambda gs: calls.append(1) or tuple(2 * g for g in gs))
    (variance + mean).sum().backward()
    assert calls == [1]
    assert near(a.grad, 2 * b.grad)

    def forward(ctx, x, k, y):
        ctx.k = k
        return k * x * 2, k, k * y * 2

    own = function(torch, forward, lambda ctx, g, _, h: (ctx.k * g * 2, None, ctx.k * h * 2))
    a, b = leaf(torch, 2), leaf(torch, 2)
    c, _, d = own.apply(a, 3, b)
    seen = []
    c.grad_fn.register_prehook(lambda gs: seen.append(gs[1]) or (gs[0] * 2, None, gs[2] * 2))
    (c + d).sum().backward()
    assert seen == [None]
    assert near(a.grad, 12.0)
    assert near(b.grad, 12.0)


@graph
def grad_fn_prehooks_remove_hooks(torch):
    for double in _doubles(torch):
        a, count = torch.rand(3, requires_grad=True), []
        b = double(a)
        handle = b.grad_fn.register_prehook(lambda g, count=count: count.append(1))
        b.grad_fn.register_prehook(lambda g, count=count: count.append(1))
        handle.remove()
        b.sum().backward()
        assert count == [1]
        b, count, handles = double(a), [], []

        def first(g, handles=handles):
            for one in handles:
                one.remove()

        b.grad_fn.register_prehook(first)
        for _ in range(2):
            handles.append(b.grad_fn.register_prehook(lambda g, count=count: count.append(1)))
        handles[1].remove()
        b.sum().backward()
        assert count == [1]


@graph
def node_post_hook_registered_during_unpack_hook(torch):
    seen = []

    def unpack(x):
        def hook(out, got):
            seen.extend(got)
            return tuple(None if o is None else o / 2 for o in out)

        torch._C._current_autograd_node().register_hook(hook)
        return x

    a = torch.rand(3, 3, requires_grad=True)

    def run():
        (sum(torch.var_mean(a, dim=0))).sum().backward()

    run()
    plain = a.grad.clone()
    with torch.autograd.graph.saved_tensors_hooks(lambda x: x, unpack):
        run()
    assert all(one is None for one in seen)
    assert near(a.grad, 1.5 * plain)


@graph
def hooks_cpp(torch):
    layer = torch.nn.BatchNorm1d(5, affine=False).double().eval()
    x, calls = torch.ones(5, 5, dtype=torch.float64, requires_grad=True), []
    z = layer(x)
    z.register_hook(lambda g: calls.append(1) or g * 2)
    z.sum().backward()
    assert calls == [1]
    assert near(x.grad, 2.0)


@graph
def hook_none(torch):
    asked, called = [], []

    def forward(ctx, x, y):
        asked.append(ctx.needs_input_grad)
        return x, y

    own = function(torch, forward, lambda ctx, gx, gy: (gx, None))
    rx, ry = own.apply(torch.rand(5, requires_grad=True), torch.rand(5))
    rx.register_hook(lambda g: called.append(g is not None))
    ry.register_hook(lambda g: called.append(g is not None))
    (rx + ry).sum().backward()
    assert asked == [(True, False)]
    assert called
    assert all(called)


@graph
def retain_grad(torch):
    x = torch.rand(1, 3, requires_grad=True)
    h = x * 3
    out = (h * h).sum()
    h.retain_grad(), h.retain_grad()
    for times in (2, 4):
        out.backward(retain_graph=True)
        assert near(h.grad, h * times)
    x.grad = None
    x.retain_grad()
    out.backward()
    assert near(x.grad, x * 18)


@graph
def retain_grad_inplace(torch):
    for times in (1, 2):
        a = torch.tensor([1.0], requires_grad=True).clone()
        a.retain_grad()
        for _ in range(times):
            a.mul_(2)
        a.sum().backward()
        assert near(a.grad, [1.0])
    x = torch.tensor([1.0], requires_grad=True).clone()
    x.retain_grad()
    view = x[:]
    view *= 2
    x *= 2
    x.sum().backward()
    assert near(x.grad, [1.0])
    torch.zeros(4).view(2, 2).add_(torch.rand(2, 2, requires_grad=True))


@graph
def retains_grad_inplace_multiple_outputs(torch):
    own = function(torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    for run in (own.apply, lambda x: torch.var_mean(x, dim=0)):
        one, two = run(leaf(torch, 3, 3))
        one.retain_grad(), two.retain_grad()
        one.mul_(2)
        (one + two).sum().backward()
        a, b = run(leaf(torch, 3, 3))
        a.mul_(2)
        assert near((one.grad, two.grad), torch.autograd.grad((a + b).sum(), (a, b)))


@graph
def retain_grad_inplace_over_view(torch):
    base = torch.tensor([1.0], requires_grad=True).clone()
    view, other = base[:], base[:]
    view.retain_grad(), other.retain_grad()
    view.mul_(2)
    (view + other).sum().backward()
    assert near(view.grad, [1.0])
    assert near(other.grad, [1.0])


@graph
def tensor_hooks_inplace(torch):
    seen, a = [], torch.tensor([1.0], requires_grad=True)
    b = a.clone()
    b.register_hook(lambda g: seen.append(g.item()) or g * 2)
    b.mul_(2)
    b.register_hook(lambda g: seen.append(g.item()) or g * 2)
    b.sum().backward()
    assert seen == [1.0, 4.0]
    assert near(a.grad, [8.0])
    a = torch.tensor([1.0], requires_grad=True)
    b = a.clone()
    b.register_hook(lambda g: seen.append(g.item()) or g * 2)
    b.mul_(2)
    b.mul_(2)
    b.sum().backward()
    assert seen[2:] == [4.0]
    assert near(a.grad, [8.0])


@graph
def tensor_hooks_inplace_multiple_outputs(torch):
    own = function(torch, lambda ctx, x: (x * 2, x * 3), lambda ctx, g, h: g * 2 + h * 3)
    for run in (own.apply, lambda x: torch.var_mean(x, dim=0)):
        seen = []
        one, two = run(leaf(torch, 3, 3))
        one.register_hook(lambda g, seen=seen: seen.append(g.flatten()[0].item()))
        two.register_hook(lambda g, seen=seen: seen.append(g.flatten()[0].item()))
        one.mul_(2)
        one.register_hook(lambda g, seen=seen: seen.append(g.flatten()[0].item()))
        (one + two * 3).sum().backward()
        assert sorted(seen) == [1.0, 2.0, 3.0]


@graph
def tensor_hooks_inplace_over_view(torch):
    base, seen = torch.tensor([1.0], requires_grad=True).clone(), []
    view, other = base[:], base[:]
    view.register_hook(lambda g: 1 / 0), other.register_hook(lambda g: 1 / 0)
    view.mul_(2)
    other.grad_fn
    other.register_hook(lambda g: seen.append(g.item()))
    (view + other).sum().backward()
    assert seen == [1.0]


@graph
def retain_grad_cycle(torch):
    x = torch.ones(5, requires_grad=True)

    def run():
        y = x * 2
        y.retain_grad()
        return y / 2, weakref.ref(y)

    z, ref = run()
    assert ref() is None
    z.sum().backward()


@graph
def backward(torch):
    v, x, z = leaf(torch, 3), leaf(torch, 3), leaf(torch, 3)
    y = torch.tensor([0.5, 1.5, 2.5], requires_grad=True)
    g = torch.tensor([1.0, 2.0, 3.0])
    v.backward(g)
    assert near(v.grad, g)
    (x + (y * z) + 4 * z**2 * x / y).backward(g)
    assert near(x.grad, (4 * z.pow(2) / y + 1) * g)
    assert near(y.grad, (z - 4 * x * z.pow(2) / y.pow(2)) * g)
    assert near(z.grad, (8 * x * z / y + y) * g)


@graph
def multi_backward(torch):
    x, q, a, b = (leaf(torch, 3) for _ in range(4))
    shared = q * 2
    gz, gc_ = torch.tensor([1.0, 2.0, 3.0]), torch.tensor([3.0, 1.0, 2.0])
    torch.autograd.backward([x + shared, a * b + shared], [gz, gc_])
    assert near(x.grad, gz)
    assert near(a.grad, gc_ * b)
    assert near(q.grad, (gc_ + gz) * 2)


@graph
def multi_backward_no_grad(torch):
    x, y = leaf(torch, 3), torch.rand(3)
    with refused(""):
        torch.autograd.backward([x + y, y * 2], [torch.ones(3), torch.ones(3)])


@graph
def backward_with_inputs(torch):
    x, y = leaf(torch, 2, 2), leaf(torch, 2, 2)
    for inputs, of_x, of_y in (([x, y], True, True), ([x], True, False), ([y], False, True), (y, False, True)):
        x.grad = y.grad = None
        torch.autograd.backward(x**2 + y * x + y**2, torch.ones(2, 2), inputs=inputs)
        assert near(x.grad, 2 * x + y) if of_x else x.grad is None
        assert near(y.grad, x + 2 * y) if of_y else y.grad is None
    with refused("cannot be empty"):
        torch.autograd.backward(x**2, torch.ones(2, 2), inputs=[])


@graph
def backward_with_scalar_input(torch):
    x = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    (x**2).backward(inputs=x)
    assert near(x.grad, 2 * x)


@graph
def backward_with_nonleaf_inputs(torch):
    x, y, z = (leaf(torch, 2, 2) for _ in range(3))
    inner = x * 1
    out = inner**2 + y * inner + y**2
    out.backward(torch.ones(2, 2, dtype=torch.float64), create_graph=True, inputs=[x, y, inner])
    assert near(y.grad, x + 2 * y)
    assert near(x.grad, 2 * x + y)
    assert near(inner.grad, 2 * inner + y)
    out.backward(torch.ones(2, 2, dtype=torch.float64), create_graph=True, inputs=[z])
    assert z.grad is None
    x.grad = y.grad = inner.grad = None


@graph
def dependent_backward(torch):
    x = leaf(torch, 4)
    y = x**2
    gy, gz = torch.arange(4.0), torch.ones(4)
    torch.autograd.backward([y, y**3], [gy, gz])
    assert near(x.grad, 2 * x * gy + 6 * x.pow(5) * gz)


@graph
def first_grad_fn_access_in_no_grad_mode(torch):
    a = torch.tensor([1 + 1j], requires_grad=True).clone()
    part = a.real
    a.add_(1)
    with torch.no_grad():
        part.grad_fn


@graph
def free_deep_graph(torch):
    def scope():
        y = torch.rand(1, requires_grad=True).clone()
        for _ in range(50000):
            y = y + y * 0.000001

    scope()


@graph
def free_deep_graph_complicated(torch):
    def scope():
        y, before = torch.rand(1, requires_grad=True).clone(), []
        for i in range(30000):
            before = [*before[-2:], y]
            y = y + y * 0.000001
            if i % 3 == 0:
                y = y + torch.cat(before).sum()

    scope()


@graph
def free_deep_graph_pyfunction(torch):
    own = function(torch, lambda ctx, a, b: a + b, lambda ctx, g: (g, g))

    def scope():
        y = torch.rand(1, requires_grad=True).clone()
        for _ in range(20000):
            y = own.apply(y, y)

    scope()


@graph
def requires_grad(torch):
    x, y, z = torch.rand(3), torch.rand(3), torch.rand(3, requires_grad=True)
    a = x + y
    b = a + z
    assert not a.requires_grad
    assert b.requires_grad
    for one in (a, x, y):
        one._backward_hooks = OrderedDict()
        one._backward_hooks["test"] = lambda: 1 / 0
    b.backward(torch.ones(3))


@graph
def requires_grad__(torch):
    x, y = torch.rand(2), torch.rand(2, requires_grad=True)
    for one in (x, y):
        assert one is one.requires_grad_()
        assert one.requires_grad_(True).requires_grad
    z = x * y
    with refused(""):
        z.requires_grad_(False)
    assert z is z.requires_grad_()
    assert not x.requires_grad_(False).requires_grad


@graph
def requires_grad_inplace(torch):
    for a in (torch.rand(2), torch.rand(2) + 0):
        a += torch.rand(2, requires_grad=True)
        assert a.requires_grad


@graph
def no_requires_grad_inplace(torch):
    for through_view in (False, True):
        a = torch.rand(2, 3)
        (a[:] if through_view else a).add_(5)
        a.requires_grad = True
        a.sum().backward()
        assert near(a.grad, 1.0)
    a = torch.rand(2, 3)
    b = a[:]
    a.requires_grad = True
    for one in (a, b):
        with refused(""):
            one.add_(5)


@graph
def attribute_deletion(torch):
    x = torch.rand(5, 5, requires_grad=True)
    x.grad = torch.ones(5, 5)
    del x.grad
    assert x.grad is None
    for name in ("data", "requires_grad", "_grad_fn", "_backward_hooks"):
        with refused(""):
            delattr(x, name)
    with refused("", TypeError):
        x.data = None


@graph
def duplicate_backward_root(torch):
    a, b = leaf(torch, 3), leaf(torch, 3)
    x, g = a * b, torch.arange(3.0)
    torch.autograd.backward([x, x], [g, g])
    assert near(a.grad, b * g * 2)


@graph
def backward_no_grad(torch):
    with refused(""):
        torch.autograd.backward([leaf(torch, 5) + 2], [None])


def _picked(torch):
    b, c = leaf(torch, 3), torch.zeros(3, dtype=torch.float64)
    c[[1, 2]] = b[[1, 1]]
    return c


@graph
def backward_twice_with_saved_values(torch):
    c, g = _picked(torch), torch.ones(3, dtype=torch.float64)
    c.backward(g)
    with refused("Specify retain_graph=True"):
        c.backward(g)


@graph
def backward_twice_retained_graph_with_saved_values(torch):
    c, g = _picked(torch), torch.ones(3, dtype=torch.float64)
    c.backward(g, retain_graph=True)
    c.backward(g)


@graph
def backward_twice_without_saved_values(torch):
    c, g = leaf(torch, 3) + 1, torch.ones(3, dtype=torch.float64)
    c.backward(g)
    c.backward(g)


@graph
def backward_twice_retained_graph_without_saved_values(torch):
    c = leaf(torch, 3) + 1
    c.backward(torch.ones(3), retain_graph=True)
    c.backward(torch.ones(3))


@graph
def backward_create_graph_warns(torch):
    torch.set_warn_always(True)
    try:
        b = leaf(torch, 3)
        c = b * b
        with heard() as texts:
            c.backward(torch.ones_like(c), create_graph=True)
        b.grad = None
        assert any("Using backward() with create_graph=True" in text for text in texts)
        with heard() as texts:
            torch.autograd.grad(c, b, torch.ones_like(c), create_graph=True)
        assert not texts
    finally:
        torch.set_warn_always(False)


@graph
def next_functions(torch):
    x, y = leaf(torch, 2), leaf(torch, 2)
    a = x + y
    assert [type(one).__name__ for one, _ in a.grad_fn.next_functions] == ["AccumulateGrad"] * 2
    assert isinstance(a.grad_fn.next_functions[0][0], torch._C._functions.AccumulateGrad)
    following = (a + 5).grad_fn.next_functions
    assert following[0] == (a.grad_fn, 0)
    assert following[1][0] is None


@graph
def inplace(torch):
    x, y, g = torch.ones(3, requires_grad=True), (torch.ones(3) * 4).requires_grad_(), torch.ones(3)
    z = x * y
    q, w = z + y, z * y
    z.add_(2)
    q.backward(g, retain_graph=True)
    with refused("modified by an inplace"):
        w.backward(g)
    z = x * y
    q, r = z * y, z + y
    w = z.add_(y)
    w.backward(g, retain_graph=True)
    r.backward(g, retain_graph=True)
    with refused("modified by an inplace"):
        q.backward(g)
    x.grad = None
    z = x / 2 + y / 8
    q, r, version = z * y, z + y, z._version
    w = z.exp_()
    assert z._version != version
    r.backward(g, retain_graph=True)
    assert near(x.grad, 0.5)
    w.backward(g, retain_graph=True)
    assert near(x.grad, (1 + math.e) / 2)
    with refused("modified by an inplace"):
        q.backward(g)


@graph
def unused_output(torch):
    x = leaf(torch, 10, 2)
    (x.chunk(5)[2] * 4 + 2).sum().backward()
    assert near(x.grad[4:6], 4.0)
    assert near(x.grad[:4], 0.0)
    x.grad = None
    x.chunk(5)[0].backward(torch.ones(2, 2) * 3)
    assert near(x.grad[:2], 3.0)


@graph
def detach(torch):
    x, y = leaf(torch, 3), leaf(torch, 3)
    cut = (x + 2).detach()
    assert not (cut * 4 + 2).requires_grad
    assert cut.grad_fn is None
    (x + (x * 2).detach()).sum().backward()
    assert near(x.grad, 1.0)
    x.grad = None
    a = x * 2
    (y + a).sum().backward(retain_graph=True)
    a.detach_()
    (y + a).sum().backward()
    assert near(x.grad, 2.0)
    assert near(y.grad, 2.0)
    with refused("view"):
        x.narrow(0, 1, 2).detach_()


@graph
def detach_base(torch):
    x = leaf(torch, 10, 2)
    view = x.narrow(0, 1, 4)
    x.detach_()
    assert not x.requires_grad
    assert view.requires_grad
    assert view.grad_fn is not None
    assert view._base is x


@graph
def detach_then_inplace_raises_in_autograd(torch):
    x = torch.tensor(1.5, requires_grad=True)
    y = x**2
    x.detach().zero_()
    with refused("has been modified by an inplace"):
        y.backward()


@graph
def type_conversions(torch):
    x = torch.rand(5, 5)
    assert isinstance(x.float(), torch.FloatTensor)
    assert isinstance(x.int(), torch.IntTensor)
    for kind in (torch.DoubleTensor, torch.FloatTensor, torch.IntTensor, torch.ByteTensor):
        y = torch.randint(5, (5, 5), dtype=kind.dtype)
        assert isinstance(x.type(kind), kind)
        assert isinstance(x.type_as(y), kind)
        assert isinstance(x.type(kind.dtype), kind)
        assert y.data_ptr() == y.type(kind).data_ptr()
    for dtype, other in ((torch.float32, torch.float64), (torch.float64, torch.float32)):
        a = leaf(torch, 3, dtype=dtype)
        a.to(other).sum().backward()
        assert near(a.grad, 1.0)
        assert a.grad.dtype is dtype


@graph
def isolated_node(torch):
    a = leaf(torch, 5, 5) + leaf(torch, 5, 5)
    (torch.max(a, 1, True)[1].repeat(1, 5).double() + a).sum().backward()


@graph
def shape(torch):
    x = torch.rand(3, 4)
    assert len(x.shape) == 2
    assert (x.shape[0], x.shape[1]) == (3, 4)


@graph
def numpy_requires_grad(torch):
    x = torch.rand(2, 2, requires_grad=True)
    with refused(r"Can't call numpy\(\) on Tensor that requires grad. Use tensor.detach\(\).numpy\(\) instead."):
        x.numpy()
    with torch.no_grad():
        x.numpy()
    torch.rand(2).numpy()


@graph
def leaf_assignment(torch):
    x, y, z = torch.rand(5, 5), torch.rand(5, requires_grad=True), torch.rand(5, requires_grad=True)
    x[0] = y
    x[1] = 2 * z
    assert x.requires_grad
    assert x.grad_fn is not None
    x.sum().backward()
    assert near(y.grad, 1.0)
    assert near(z.grad, 2.0)


@graph
def no_grad_assignment(torch):
    x = torch.rand(5, 5, requires_grad=True)
    with torch.no_grad():
        x[0] = torch.rand(5)
    assert x.requires_grad
    assert x.grad_fn is None


@graph
def no_grad_modifies_version(torch):
    x, y = leaf(torch, 5), leaf(torch, 5)
    z = (x * y).sum()
    with torch.no_grad():
        x *= 2
    with refused("modified by an inplace operation"):
        z.backward()


@graph
def increment_version(torch):
    bump = torch.autograd.graph.increment_version
    for a in (torch.rand(5, requires_grad=True), torch.zeros(5, dtype=torch.int)):
        before = a._version
        bump(a)
        assert a._version == before + 1
    with torch.inference_mode():
        a = torch.rand(5, requires_grad=True)
        bump(a)
    bump(a)


@graph
def backward_copy(torch):
    x, y = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    a, b, c = x + 2, y + 2, x + 2
    near_end = a + b + c
    for _ in range(4):
        a, b, c = a * 2, b * 2, c * 2
    (near_end + (a + b + c)).backward(torch.ones(2))
    assert near(x.grad, 34.0)
    assert near(y.grad, 17.0)


@graph
def pickle_(torch):
    x, y = torch.rand(3, requires_grad=True), torch.rand(3)
    for protocol in range(3):
        one, two = pickle.loads(pickle.dumps([x, y], protocol=protocol))
        assert near(one, x)
        assert near(two, y)
        assert (one.requires_grad, two.requires_grad) == (True, False)


@graph
def simple_reentrant(torch):
    data = torch.rand(2, 2)

    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_()
            ctx.y = data.detach().requires_grad_()
            ctx.out = ctx.x * ctx.y
        return ctx.out.detach()

    def backward(ctx, g):
        with torch.enable_grad():
            ctx.out.sum().backward()
        return ctx.x.grad * g

    x = torch.rand(2, 2, requires_grad=True)
    function(torch, forward, backward).apply(x).sum().backward()
    assert near(x.grad, data)


@graph
def reentrant_child_error(torch):
    def fail(ctx, g):
        raise ValueError("Simulated")

    root = function(torch, lambda ctx, x: x.clone(), fail).apply(leaf(torch, 3) ** 2).sum()

    def backward(ctx, g):
        root.backward()
        return g

    with refused("Simulated", Exception):
        function(torch, lambda ctx, x: x.clone(), backward).apply(leaf(torch, 3) ** 2).sum().backward()


@graph
def var_mean_differentiable(torch):
    one = leaf(torch, 3, 4, 2, 2)
    two = deepcopy(one)
    v, m = torch.var_mean(one, dim=[1, 3], keepdim=False)
    w, n = two.var(dim=[1, 3]), two.mean(dim=[1, 3])
    g = torch.ones(3, 2, dtype=torch.float64)
    torch.autograd.backward(v * v * m * m, g)
    torch.autograd.backward(w * w * n * n, g)
    assert near(one.grad, two.grad)


@graph
def variable_traverse(torch):
    def scope():
        mid = torch.rand(10, requires_grad=True).view(10, 1)
        cycle = [mid]
        cycle.append(cycle)
        return mid.view(10)

    out = scope()
    gc.collect()
    out.backward(torch.rand(10))


@graph
def pow_zero_tensor_gradient(torch):
    for shape, exponent in (((10,), torch.zeros(10)), ((10, 10), torch.zeros(10, 10)), ((10,), 0)):
        x = torch.zeros(shape, requires_grad=True)
        x.pow(exponent).sum().backward()
        assert x.grad.abs().sum() == 0


@graph
def power_function(torch):
    for base in (torch.zeros(3), 0):
        b = torch.tensor([-1.0, 0.0, 1.0], requires_grad=True)
        torch.sum(base**b).backward()
        assert near(b.grad, [-math.inf, 0.0, 0.0])


@graph
def current_graph_task_id(torch):
    seen, asked = [], torch._C._current_graph_task_id
    t = torch.tensor(1.0, requires_grad=True).clone()
    t.register_hook(lambda g: seen.append(asked()))
    for _ in range(3):
        t.backward(retain_graph=True)
    assert [one - seen[0] for one in seen] == [0, 1, 2]
    assert asked() == -1


@graph
def current_graph_task_execution_order(torch):
    asked, predicted = torch._C._current_graph_task_execution_order, []

    def names():
        return [node.name().split("::")[-1] for node in predicted[-1]]

    t = torch.tensor(1.0, requires_grad=True).clone().sin().exp()
    t.register_hook(lambda g: predicted.append(asked()))
    with torch.autograd.set_multithreading_enabled(False):
        t.backward()
    assert names() == ["ExpBackward0", "SinBackward0", "CloneBackward0", "AccumulateGrad"]
    a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    c, d = b.sin(), a.cos()
    out, actual = c * d, []
    for one in (a, b, c, d, out):
        node = one.grad_fn if one.grad_fn is not None else accumulator(one)
        one.register_hook(lambda g, node=node: actual.append(node))
    out.register_hook(lambda g: predicted.append(asked()))
    with torch.autograd.set_multithreading_enabled(False):
        out.backward()
    assert predicted[-1] == actual
    a = torch.tensor(1.0, requires_grad=True)
    b = a * 2
    one, two, three = b.sin(), b.cos(), b.cos()
    three.register_hook(lambda g: predicted.append(asked()))
    with torch.autograd.set_multithreading_enabled(False):
        torch.autograd.grad((one, three, two), inputs=(a,))
    assert names() == ["CosBackward0", "CosBackward0", "SinBackward0", "MulBackward0", "AccumulateGrad"]
    with refused("should only be called during the backward pass"):
        asked()
    t = torch.tensor(1.0, requires_grad=True).clone()
    t.register_hook(lambda g: asked())
    with refused("expects the current backward to be executed with multithreading disabled"):
        t.backward()


@graph
def backward_hook_relative_ordering(torch):
    order = []

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.linear = torch.nn.Linear(4, 4)

        def forward(self, x):
            return self.linear(x)

    x, model = torch.rand(4, 4, requires_grad=True), Own()
    model.register_full_backward_hook(lambda *a: order.append("module"))
    loss = model(x).sum()

    def watch(node):
        name = node.name().split("::")[-1]
        node.register_prehook(lambda g: order.append(f"before {name}"))
        node.register_hook(lambda *g: order.append(f"after {name}"))
        for following, _ in node.next_functions:
            watch(following)

    watch(loss.grad_fn)
    for name, one in (("x", x), ("weight", model.linear.weight), ("bias", model.linear.bias)):
        one.register_hook(lambda g, name=name: order.append(f"tensor {name}"))
        one.register_post_accumulate_grad_hook(lambda t, name=name: order.append(f"accumulated {name}"))
    loss.backward()

    def of(name, *between):
        return [f"before {name}", *between, f"after {name}"]

    def of_leaf(name):
        return [f"tensor {name}", *of("AccumulateGrad", f"accumulated {name}")]

    hooked = "BackwardHookFunctionBackward"
    expected = [*of("SumBackward0"), *of(hooked), *of("AddmmBackward0"), *of_leaf("bias"), *of("TBackward0")]
    assert order == [*expected, *of_leaf("weight"), *of(hooked, "module"), *of_leaf("x")]


@graph
def view_replay_enabled(torch):
    switch, asked = torch.autograd._force_original_view_tracking, torch.autograd.is_view_replay_enabled

    def node():
        out = torch.ones(2, 2, requires_grad=True).clone().view(-1)
        out.add_(1)
        return out.grad_fn.name()

    try:
        with switch(False):
            assert "AsStridedBackward" in node()
            assert not asked()
        with switch(True):
            assert "ViewBackward" in node()
            assert asked()
        assert "AsStridedBackward" in node()
        with switch(False):
            switch(True)
            assert asked()
        assert not asked()
        switch(True)
        assert "ViewBackward" in node()
    finally:
        switch(False)


@graph
def unsafe_set_version_counter(torch):
    x, y = torch.ones(2, requires_grad=True).clone(), torch.ones(2, requires_grad=True).clone()
    x.add_(1), x.add_(2)
    with torch.autograd._unsafe_preserve_version_counter(x):
        x.mul_(2), x.mul_(3)
    assert x._version == 2
    torch._C._autograd._unsafe_set_version_counter((x,), (0,))
    assert x._version == 0
    with refused("Cannot set"):
        torch._C._autograd._unsafe_set_version_counter((x,), (-1,))
    with torch.autograd._unsafe_preserve_version_counter((x, y)):
        x.mul_(2), y.mul_(3)
    assert (x._version, y._version) == (0, 0)


@graph
def version_counter(torch):
    x = torch.rand(1, 2)
    before = x._version
    x.add_(1).add_(1)
    assert x._version > before
    view = x[:]
    view.add_(1)
    assert x._version == view._version
    before = x._version
    x.data = torch.rand(2, 3)
    assert x._version == before
    x.add_(1)
    assert x._version > before
    assert x._version == view._version
    view.add_(1)
    assert x._version == view._version


@graph
def set_data_preserve_pyobj(torch):
    a, b = torch.rand(1, 2), torch.rand(1, 2)
    before = id(b)
    b.data = a
    assert id(b) == before


@graph
def set_data_self_requires_grad(torch):
    a = torch.tensor(1.0, requires_grad=True)
    a.data = torch.tensor(2.0)
    with refused("must be floating point or complex dtype"):
        a.data = torch.tensor(3)


@graph
def callback_adds_callback(torch):
    called = []
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def first():
        called.append(1)
        queue(lambda: called.append(2))

    def backward(ctx, g):
        queue(first)
        return g

    function(torch, lambda ctx, x: x, backward).apply(torch.rand(3, requires_grad=True)).sum().backward()
    assert called == [1, 2]


def _reentrant(torch, depths):
    counts = {"inner": 0, "outer": 0}
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def count(name):
        counts[name] += 1

    def inner(ctx, g):
        if 1 in depths:
            queue(lambda: count("inner"))
        return g

    def outer(ctx, g):
        if 0 in depths:
            queue(lambda: count("outer"))
        x = g.detach().requires_grad_()
        with torch.enable_grad():
            out = function(torch, lambda ctx, x: x, inner).apply(x).sum()
        out.backward()
        return g

    function(torch, lambda ctx, x: x, outer).apply(torch.rand(3, requires_grad=True)).sum().backward()
    return counts["outer"], counts["inner"]


@graph
def reentrant_with_callbacks_depth_0(torch):
    assert _reentrant(torch, [0]) == (1, 0)


@graph
def reentrant_with_callbacks_depth_1(torch):
    assert _reentrant(torch, [1]) == (0, 1)


@graph
def reentrant_with_callbacks_both_depths(torch):
    assert _reentrant(torch, [0, 1]) == (1, 1)


@graph
def reentrant_with_leaf_variable_hook(torch):
    p = torch.rand(10, requires_grad=True)

    def hook(g):
        handle.remove()
        p.grad = None
        with torch.enable_grad():
            inner, new = g.detach().requires_grad_(), p.detach().requires_grad_()
            ((inner * 2) + new).sum().backward()
        p.grad = g
        return inner.grad + g

    handle = p.register_hook(hook)
    (p * p).sum().backward()


@graph
def reentrant_with_non_leaf_variable_hook(torch):
    p = leaf(torch, 10)
    mid = p * p

    def hook(g):
        handle.remove()
        with torch.enable_grad():
            inner = g.detach().requires_grad_()
            ((inner * 2) + 5).sum().backward()
        return inner.grad + g

    handle = mid.register_hook(hook)
    mid.sum().backward()
    assert near(p.grad, 6 * p)


@graph
def deep_reentrant(torch):
    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    def backward(ctx, g):
        if ctx.x >= 0:
            with torch.enable_grad():
                own.apply(ctx.x).sum().backward()
        return g

    own = function(torch, forward, backward)
    for depth in (600.0, 100.0):
        own.apply(torch.tensor(depth, requires_grad=True)).sum().backward()


@graph
def reentrant_priority(torch):
    order = []

    def forward(ctx, x):
        with torch.enable_grad():
            ctx.x = x.detach().requires_grad_() - 1
        return ctx.x.detach()

    def backward(ctx, g):
        order.append("again")
        if ctx.x >= 0:
            with torch.enable_grad():
                own.apply(ctx.x).backward()
        return g

    own = function(torch, forward, backward)
    plain = function(torch, lambda ctx, x: x, lambda ctx, g: order.append("plain") or g)
    a = plain.apply(torch.tensor(6.0, requires_grad=True))
    b = own.apply(torch.tensor(9.0, requires_grad=True))
    (a * b).backward()
    assert order == ["again"] * 10 + ["plain"]


@graph
def multi_grad_all_hooks(torch):
    own = function(torch, lambda ctx, a: a.clone(), lambda ctx, g: g)
    a, b, c = leaf(torch, 2).mul(2), own.apply(leaf(torch, 2)), torch._C._functions.UndefinedGrad()(leaf(torch, 2))
    seen = []
    handle = torch.autograd.graph.register_multi_grad_hook(
        (a, b, c), lambda gs: seen.append([g is not None for g in gs])
    )
    out = b * c
    out.sum().backward(inputs=(b, c), retain_graph=True)
    assert seen == [[False, True, True]]
    out.sum().backward(inputs=(a,), retain_graph=True)
    assert len(seen) == 1
    out.sum().backward(inputs=(a, c), retain_graph=True)
    assert seen[1:] == [[False, False, True]]

    def fail(ctx, g):
        raise RuntimeError("mine")

    failing = function(torch, lambda ctx, x: x, fail).apply(b) * c
    with refused("mine"):
        failing.sum().backward(inputs=(b, c), retain_graph=True)
    assert len(seen) == 2
    handle.remove()
    out.sum().backward(inputs=(a, c), retain_graph=True)
    assert len(seen) == 2


@graph
def multi_grad_any_hooks(torch):
    order, x = [], leaf(torch, 3)
    handles = []

    def layer(name, x):
        z = x * 2
        out = torch.sin(z), torch.cos(z)
        z.register_hook(lambda g: order.append(f"{name} z"))
        any_of = torch.autograd.graph.register_multi_grad_hook
        handles.append(any_of(out, lambda g: order.append(f"{name} any"), mode="any"))
        return out

    a, b = layer("second", sum(layer("first", x)))
    (a + b).sum().backward()
    assert order == ["second any", "second z", "first any", "first z"]
    order.clear()
    a, b = layer("second", sum(layer("first", x)))
    for handle in handles:
        handle.remove()
    (a + b).sum().backward()
    assert order == ["second z", "first z"]


@graph
def multi_grad_hooks_invalid_mode(torch):
    with refused(r"Expects mode to be one of \('all', 'any'\) but got foo", ValueError):
        torch.autograd.graph.register_multi_grad_hook((leaf(torch, 2),), lambda _: None, mode="foo")


@graph
def pynode_destruction_deadlock(torch):
    own = function(torch, lambda ctx, x: x.clone(), lambda ctx, g: g.clone())

    def run():
        x = torch.rand(2, requires_grad=True)
        right, left = own.apply(x), x.clone()
        square = left**2
        left += 1
        return square + right

    with refused("one of the variables needed for gradient computation"):
        run().sum().backward()


@graph
def input_buffer_accum(torch):
    x = leaf(torch, 2, 2)
    one, two = x.clone(), x.gather(0, torch.tensor([[0, 0]]))
    g = torch.ones(2, 2, dtype=torch.float64) * 3
    before = g.clone()
    torch.autograd.backward((one, two), (g, torch.ones_like(two)))
    assert near(g, before)


@graph
def autograd_node_isinstance(torch):
    kind = torch.autograd.graph.Node
    a = torch.rand(3, 3, requires_grad=True)
    b = a.exp()
    assert isinstance(b.grad_fn, kind)
    assert issubclass(type(b.grad_fn), kind)
    assert kind not in type(b.grad_fn).mro()
    functions = torch._C._functions
    assert not isinstance(functions.AccumulateGrad, kind)
    assert issubclass(functions.AccumulateGrad, kind)
    assert isinstance(b.grad_fn.next_functions[0][0], kind)
    assert issubclass(functions.DelayedError, kind)
    assert not any(isinstance(one, kind) for one in (None, 1, kind))
    assert issubclass(kind, kind)
    assert issubclass(torch.autograd.function.BackwardCFunction, kind)
    seen = []
    own = function(
        torch,
        lambda ctx, x: seen.append(isinstance(ctx, kind)) or x,
        lambda ctx, g: seen.append(isinstance(ctx, kind)) or g,
    )
    out = own.apply(a)
    assert issubclass(type(out.grad_fn), kind)
    assert kind not in type(out.grad_fn).mro()
    out.sum().backward()
    assert seen == [True, True]


@graph
def full_backward_hook_double_backward(torch):
    x, y, count = torch.rand(1, requires_grad=True), torch.rand(1), []
    loss = torch.nn.MSELoss()
    loss.register_full_backward_hook(lambda *a: count.append(1))
    (g,) = torch.autograd.grad(loss(x, y), x, create_graph=True)
    assert count == [1]
    torch.autograd.grad(g, x)
    assert count == [1]


@graph
def create_graph_and_full_backward_hook_cycle(torch):
    class Marker:
        pass

    def scope(needs, hooks):
        t, a = torch.rand(10, requires_grad=needs), torch.tensor(1.0, requires_grad=True)

        class Own(torch.nn.Module):
            def forward(self, x):
                return x**2 * a**2

        model = Own()
        for _ in range(hooks):
            model.register_full_backward_hook(lambda *x: None)
        out, marker = model(t), Marker()
        ref = weakref.ref(marker)
        out.grad_fn.metadata["a"] = marker
        out.exp().sum().backward(create_graph=True)
        a.grad = t.grad = None
        return ref

    for hooks in (1, 2):
        for needs in (True, False):
            ref = scope(needs, hooks)
            gc.collect()
            assert ref() is None


@graph
def hook_closure_cycle(torch):
    class Marker:
        pass

    own = function(torch, lambda ctx, x: x, lambda ctx, g: g)
    for make in (own.apply, lambda x: x.clone()):
        for on_tensor in (True, False):
            count = []

            def scope(make=make, on_tensor=on_tensor, count=count):
                b = make(torch.tensor(1.0, requires_grad=True))
                node, marker = b.grad_fn, Marker()

                def hook(*grads):
                    count.append((node, marker) is None)

                (b if on_tensor else node).register_hook(hook)
                return b.clone(), weakref.ref(marker)

            with no_collector():
                out, ref = scope()
                out.backward(retain_graph=True)
                gc.collect()
                out.backward(retain_graph=True)
                assert len(count) == 2
                assert ref() is not None
                del out
                gc.collect()
                assert ref() is None


@graph
def grad_dtype(torch):
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    assert x.grad_dtype is torch.float32
    x.grad_dtype = torch.float16
    assert x.grad_dtype is torch.float16
    x.grad_dtype = None
    assert x.grad_dtype is None
    with refused("grad_dtype can only be accessed on leaf tensors"):
        (x * 2).grad_dtype
    with refused("grad_dtype can only be set on leaf tensors"):
        (x * 2).grad_dtype = torch.float16
    x.grad = torch.ones(2, dtype=torch.float64)
    assert x.grad.dtype is torch.float64
    x.grad = None
    x.grad_dtype = torch.float16
    with refused("attempting to assign a gradient with dtype.*float.*to a tensor with grad_dtype.*Half"):
        x.grad = torch.ones(2)
    own = function(torch, lambda ctx, x: x * 2, lambda ctx, g: g.to(torch.float64))
    for dtype, expected in (("own", torch.float32), (None, torch.float64), (torch.float16, torch.float16)):
        x = torch.tensor([1.0, 2.0], requires_grad=True)
        if dtype != "own":
            x.grad_dtype = dtype
        own.apply(x).sum().backward()
        assert x.grad.dtype is expected
    x = torch.tensor([1.0, 2.0], requires_grad=True)
    x.grad = torch.ones(2)
    with refused("Cannot set grad_dtype.*because there is already a gradient"):
        x.grad_dtype = torch.float16
    x.grad_dtype = None
    x = torch.tensor([3.0, 4.0], requires_grad=True, dtype=torch.bfloat16)
    x.grad_dtype = None
    (x * 2).sum().backward()
    x.grad = x.grad.to(torch.float32)
    (x * 3).sum().backward()
    assert x.grad.dtype is torch.float32


@graph
def anomaly_assign_parent_cleanup(torch):
    class Marker:
        pass

    def scope():
        x = torch.rand(2, requires_grad=True)
        t = x.exp()
        with torch.autograd.detect_anomaly():
            torch.autograd.grad(t, x, torch.ones_like(t), create_graph=True)
        marker = t.grad_fn.metadata[0] = Marker()
        return t, weakref.ref(marker)

    t, ref = scope()
    assert ref() is not None
    del t
    assert ref() is None


@graph
def anomaly_detect_nan(torch):
    def backward(ctx, g):
        made = g.clone().expand(10).clone()
        made[0] = math.nan
        return (made, None, None) if ctx.first else (None, made, None)

    def forward(ctx, x, y, first):
        ctx.first = first
        return x.sum(0, keepdim=True)

    own = type(
        "Own", (torch.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)}
    )
    x = torch.rand(10, requires_grad=True)
    own.apply(x, x, True).backward()
    out = own.apply(x, x, True)
    with heard() as texts, refused("Function 'OwnBackward' returned nan values in its 0th output."):
        with torch.autograd.detect_anomaly():
            out.backward()
    assert any("No forward pass information" in text for text in texts)
    with heard() as texts, refused("Function 'OwnBackward' returned nan values in its 1th output."):
        with torch.autograd.detect_anomaly():
            own.apply(x, x, False).backward()
    assert any("own.apply" in text for text in texts)


@graph
def nested_anomaly_detect_nan(torch):
    class Inner(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, y, first):
            ctx.first = first
            return x * 2.0 + y

        @staticmethod
        def backward(ctx, g):
            one, two = g.clone(), g.clone()
            (one if ctx.first else two)[0] = math.nan
            return one, two, None

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, first):
            ctx.first = first
            ctx.save_for_backward(x)
            return x.sum(0, keepdim=True)

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            g = g.clone().expand(10)
            return Inner.apply(g * x, g + x, ctx.first), None

    def twice(first, create=True):
        x = torch.rand(10, requires_grad=True)
        (g,) = torch.autograd.grad(Outer.apply(x, first), (x,), create_graph=True)
        return g.sum()

    twice(True).backward()
    total = twice(True)
    with heard() as texts, refused("Function 'InnerBackward' returned nan values in its 0th output."):
        with torch.autograd.detect_anomaly():
            total.backward()
    assert "No forward pass information" in texts[1]
    with heard() as texts, refused("Function 'InnerBackward' returned nan values in its 1th output."):
        with torch.autograd.detect_anomaly():
            twice(False).backward()
    assert "Inner.apply" in texts[1]
    assert "Outer.apply" in texts[2]


@graph
def nested_anomaly_printstack_cleanup(torch):
    class Marker:
        pass

    class Inner(torch.autograd.Function):
        forward = staticmethod(lambda ctx, x: x)
        backward = staticmethod(lambda ctx, g: g + math.nan)

    class Outer(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x

        @staticmethod
        def backward(ctx, g):
            return Inner.apply(ctx.saved_tensors[0])

    def scope():
        x = torch.rand(1, requires_grad=True)
        out = Outer.apply(x)
        (g,) = torch.autograd.grad(out, (x,), create_graph=True)
        with refused("returned nan values in its 0th output"), torch.autograd.detect_anomaly():
            g.backward()
        marker = out.grad_fn.metadata[0] = Marker()
        return out, weakref.ref(marker)

    out, ref = scope()
    assert ref() is not None
    del out
    gc.collect()  # in Python 3.12 a generator that is left by an error stays in a cycle with it
    assert ref() is None


@graph
def anomaly_grad_warnings(torch):
    def run():
        a = torch.rand(5, requires_grad=True)
        b = a + 1
        c = b**2
        b += 1
        torch.autograd.grad(c.sum(), a)

    with heard() as texts, refused("modified by an inplace operation"):
        with torch.autograd.detect_anomaly():
            run()
    assert len(texts) == 2
    assert "Anomaly Detection has been enabled" in texts[0]
    assert "Error detected in PowBackward0" in texts[1]


@graph
def anomaly_mode_no_check_nan(torch):
    own = type(
        "Own",
        (torch.autograd.Function,),
        {
            "forward": staticmethod(lambda ctx, x: x.clone()),
            "backward": staticmethod(lambda ctx, g: torch.tensor(math.nan).expand(10, 10)),
        },
    )
    with torch.autograd.detect_anomaly(check_nan=False):
        out = own.apply(torch.rand(10, 10, requires_grad=True)).sum()
        out.backward(retain_graph=True)
        with torch.autograd.detect_anomaly(check_nan=True):
            with refused("Function 'OwnBackward' returned nan values in its 0th output."):
                out.backward(retain_graph=True)
        out.backward()


@graph
def out_variant_raises_when_inputs_require_grad(torch):
    a, b = torch.rand(2, 2, requires_grad=True), torch.rand(2, 2, requires_grad=True)
    x = torch.zeros(2, 2)
    with refused("out="):
        torch.mul(a, b, out=x)
    with torch.no_grad():
        torch.mul(a, b, out=x)
    assert near(x, a * b)
    with refused("out="):
        torch.mul(torch.rand(2, 2), torch.rand(2, 2), out=torch.zeros(2, 2, requires_grad=True))


@graph
def integer_outputs(torch):
    x = leaf(torch, 4)
    for out in (
        x.argmax(),
        x.argmin(),
        x.argsort(),
        torch.searchsorted(x, torch.rand((), dtype=torch.float64)),
        x.count_nonzero(),
    ):
        assert not out.requires_grad
        assert not out.dtype.is_floating_point
    bins = torch.linspace(0, 1, steps=10, requires_grad=True)
    assert not torch.bucketize(torch.rand(5, 5, requires_grad=True), bins).requires_grad
    for more in (
        {},
        {"return_inverse": True},
        {"return_counts": True},
        {"return_inverse": True, "return_counts": True},
    ):
        for call in (torch.unique, torch.unique_consecutive):
            for dim in ({}, {"dim": 0}):
                found = call(x, **more, **dim)
                found = found if isinstance(found, tuple) else (found,)
                assert [one.requires_grad for one in found] == [True] + [False] * (len(found) - 1)


@graph
def grad_mode_restored_reentrant(torch):
    seen = []

    def backward(ctx, g):
        before = torch.is_grad_enabled()
        with torch.enable_grad():
            x = torch.rand(g.size(), requires_grad=True)
            (found,) = torch.autograd.grad(x**3, x, grad_outputs=g)
            seen.append(torch.is_grad_enabled())
        seen.append(torch.is_grad_enabled() == before)
        return found

    own, x = function(torch, lambda ctx, x: x.clone(), backward), torch.rand(3, requires_grad=True)
    own.apply(x).sum().backward()
    own.apply(x).sum().backward(create_graph=True)
    x.grad = None
    assert seen == [True] * 4


@graph
def grad_thread_safety(torch):
    from concurrent.futures import ThreadPoolExecutor

    x = torch.tensor([1.0, 2.0], requires_grad=True)
    (x**2).sum().backward()
    with ThreadPoolExecutor(4) as pool:
        refs = list(pool.map(lambda _: weakref.ref(x.grad), range(8)))
    assert all(ref() is x.grad for ref in refs)


graph.cannot("sparse tensors", "to_sparse_backward", "sparse_mm_backward", "accumulate_grad_tensor_reference", "no_grad_copy_sparse",
    "sparse_gather_dim0", "sparse_gather_dim1", "sparse_gather_dim_neg", "sparse_gather_ind_scalar", "sparse_gather_x_scalar",
    "sparse_gather_both_scalar", "set_data_tensorimpl_type")  # fmt: skip
graph.cannot("CUDA", "node_ordering_when_none_returned", "callback_propagates_errors_from_device_thread")
graph.cannot("__torch_dispatch__", "current_node")
graph.cannot("nested tensors", "calculate_shape_util")
graph.cannot("torch._C's cache of tensors", "multiple_insert_removal_caching")
graph.cannot("torch's own log of what is used", "thread_shutdown")
graph.cannot("_view_func of torch's C++ views", "view_func_replay", "view_func_replay_with_modified_state")
