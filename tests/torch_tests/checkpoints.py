"""Checkpoints: with and without reentrance, nested, selective, in groups."""

from __future__ import annotations

import functools
import weakref
from copy import deepcopy

from tests.torch_tests.suite import Suite, function, heard, leaf, near, no_collector, refused, suite

plain = suite("TestAutograd")
nested = Suite("TestNestedCheckpoint")
selective = Suite("TestSelectiveActivationCheckpoint")


def again(torch, run, *args, **more):
    return torch.utils.checkpoint.checkpoint(run, *args, use_reentrant=False, **more)


def _network(torch):
    return torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.ReLU(), torch.nn.Linear(8, 4))


@plain
def checkpointing(torch):
    model = _network(torch)
    made = []
    for _ in range(20):
        x = torch.rand(1, 4, requires_grad=True)
        made.append(torch.utils.checkpoint.checkpoint(model, x, use_reentrant=True))
    torch.stack(made).mean().backward()
    assert all(p.grad is not None for p in model.parameters())


@plain
def checkpointing_without_reentrant(torch):
    for needs in (True, False):
        model = _network(torch)
        other = deepcopy(model)
        data = [torch.rand(1, 4, requires_grad=needs) for _ in range(10)]
        torch.stack([again(torch, model, x) for x in data]).mean().backward()
        torch.stack([other(x) for x in data]).mean().backward()
        for one, two in zip(model.parameters(), other.parameters(), strict=True):
            assert near(one.grad, two.grad)


@plain
def checkpointing_non_reentrant_autocast_cpu(torch):
    for enabled in (True, False):
        seen = []

        def run(x, y, z, seen=seen):
            z = torch.mm(torch.mm(torch.mm(x, y), z), z)
            seen.append(z.dtype)
            return z

        args = [torch.rand(3, 3, requires_grad=True) for _ in range(3)]
        with torch.autocast("cpu", enabled=enabled, dtype=torch.bfloat16):
            loss = again(torch, run, *args).sum()
        loss.backward()
        assert seen == [torch.bfloat16 if enabled else torch.float32] * 2 or len(seen) == 1


@plain
def checkpointing_without_reentrant_custom_function_works(torch):
    words = "Unpack is being triggered for a tensor that was already unpacked once"

    def forward(ctx, x, y):
        w = x * y
        ctx.save_for_backward(x, y, w)
        return w + w

    def backward(ctx, g):
        x, y, _ = ctx.saved_tensors
        with refused(words):
            ctx.saved_tensors
        return x, y

    made = function(torch, forward, backward)
    x, y = torch.tensor(1.0, requires_grad=True), torch.tensor(2.0, requires_grad=True)
    again(torch, lambda x, y: made.apply(x * y, y * y), x, y).sum().backward()


@plain
def checkpoint_warns_if_use_reentrant_not_passed_explcitly(torch):
    checkpoint, a = torch.utils.checkpoint.checkpoint, torch.rand(1, requires_grad=True)
    with heard() as texts:
        checkpoint(lambda x: x, a, use_reentrant=False)
    assert not texts
    with heard() as texts:
        checkpoint(lambda x: x, a)
    assert any("the use_reentrant parameter should be passed explicitly" in text for text in texts)


@plain
def checkpoint_sequential_warns_if_use_reentrant_not_passed_explcitly(torch):
    call, a = torch.utils.checkpoint.checkpoint_sequential, torch.rand(3, requires_grad=True)
    layers = [torch.nn.Linear(3, 3) for _ in range(3)]
    with heard() as texts:
        call(layers, 3, a, use_reentrant=False)
    assert not texts
    with heard() as texts:
        call(layers, 3, a)
    assert any("the use_reentrant parameter should be passed explicitly" in text for text in texts)


@plain
def checkpoint_graph_execution_group(torch):
    group = torch.utils.checkpoint.GraphExecGroup
    for together in (True, False):
        count = []

        def run(x, count=count):
            count.append(1)
            y = x.sin().cos()
            return y, y.sin().cos()

        x = leaf(torch, 3)
        y, z = again(torch, run, x)

        def backwards(x=x, y=y, z=z):
            (g,) = torch.autograd.grad(z, inputs=(y,), grad_outputs=(torch.ones(3),))
            torch.autograd.grad(y, inputs=(x,), grad_outputs=(g,))

        if together:
            with group():
                backwards()
        else:
            backwards()
        assert len(count) == (2 if together else 3)
    out = again(torch, lambda x: x.sin().cos(), leaf(torch, 3))
    with group():
        with refused("GraphExecGroup contexts cannot be nested"):
            group().__enter__()
        out.sum().backward(retain_graph=True)
        with refused("Performing two backward calls that overlap"):
            out.sum().backward()


@plain
def checkpoint_detects_non_determinism(torch):
    def three(x):
        return x.sin().exp().sin()

    def two(x):
        return x.sin().exp()

    def other(x):
        return x.sin() * torch.tensor([1.0, 2.0])

    def differing(first, then):
        runs = iter([first, then, then])
        return lambda x: next(runs)(x)

    a, tools = torch.rand(1, requires_grad=True), torch.utils.checkpoint
    with refused("A different number of tensors was saved"):
        again(torch, differing(three, two), a).backward()
    with tools.set_checkpoint_early_stop(False), refused("trying to save more tensors during recomputation"):
        again(torch, differing(two, three), a).backward()
    again(torch, differing(two, three), a).backward()
    with refused("tensors have different metadata"):
        again(torch, differing(two, other), a).backward()
    debug = "You are seeing this error because you passed `debug=True` to checkpoint"
    with refused(debug):
        again(torch, differing(two, other), a, debug=True).backward()
    with refused(debug), tools.set_checkpoint_debug_enabled(True):
        again(torch, differing(two, other), a, debug=False).backward()
    with (
        refused("Recomputed values for the following tensors have different"),
        tools.set_checkpoint_debug_enabled(False),
    ):
        again(torch, differing(two, other), a, debug=True).backward()


@plain
def access_saved_tensor_twice_without_recomputation_works(torch):
    count = []
    d = again(torch, lambda a: count.append(1) or torch.exp(a), leaf(torch, 5))
    for expected in (2, 3):
        d.grad_fn._saved_result
        assert len(count) == expected
    d.sum().backward()
    assert len(count) == 4
    with refused("or directly access saved tensors after they have already been freed"):
        d.grad_fn._saved_result


@plain
def checkpoint_valid_reset_on_error(torch):
    a, checkpoint = torch.rand(2, requires_grad=True), torch.utils.checkpoint.checkpoint
    with refused("torch.utils.checkpoint is incompatible", Exception):
        torch.autograd.grad(checkpoint(torch.exp, a, use_reentrant=True).sum(), (a,))
    checkpoint(torch.exp, a, use_reentrant=True).sum().backward()


@plain
def checkpointing_without_reentrant_detached_tensor(torch):
    model = torch.nn.Linear(2, 2, bias=False)

    def run(x):
        with torch.no_grad():
            return model(x)

    a = torch.rand(2, 2, requires_grad=True)
    for _ in range(2):
        out = again(torch, run, a)
        (out + a).sum().backward()
    with refused("none of output has requires_grad=True"):
        out = torch.utils.checkpoint.checkpoint(run, a, use_reentrant=True)
        out += a
        out.sum().backward()


@plain
def checkpointing_without_reentrant_saved_object_identity(torch):
    seen = []

    def forward(ctx, x, y):
        ctx.save_for_backward(y)
        return x

    def backward(ctx, g):
        seen.append(ctx.saved_tensors[0])
        return g, None

    made = function(torch, forward, backward)
    a, b = torch.tensor(1.0, requires_grad=True), torch.tensor(1.0)
    made.apply(a, b).backward()
    again(torch, made.apply, a, b).backward()
    assert all(one is b for one in seen)
    assert len(seen) == 2


@plain
def checkpointing_without_reentrant_correct_grad(torch):
    a = leaf(torch, 2, 2)
    (expected,) = torch.autograd.grad(torch.exp(a).sum(), a)
    again(torch, torch.exp, a).sum().backward()
    assert near(a.grad, expected)
    assert near(torch.autograd.grad(again(torch, torch.exp, a).sum(), a)[0], expected)


@plain
def checkpointing_without_reentrant_parameter_used_in_an_out(torch):
    w, count = torch.rand(3, requires_grad=True), []
    w.register_hook(lambda g: count.append(1))
    again(torch, lambda x: w * x, w * torch.rand(3, requires_grad=True)).sum().backward()
    assert count == [1]


@plain
def checkpointing_without_reentrant_arbitrary_input_output(torch):
    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(5, 5, bias=False)

        def forward(self, given):
            return {"result": self.layer(given["tensor"])}

    one = Own()
    two, given = deepcopy(one), {"tensor": torch.rand(5, 5)}
    one(given)["result"].sum().backward()
    again(torch, two, given)["result"].sum().backward()
    assert near(one.layer.weight.grad, two.layer.weight.grad)


plain.cannot("nn.DataParallel", "checkpointing_without_reentrant_dataparallel")
plain.cannot("__torch_dispatch__", "checkpointing_without_reentrant_with_context_fn")


# ---- nested ----
def _derivative(torch, run):
    def wrapped(x):
        with torch.enable_grad():
            (g,) = torch.autograd.grad(run(x), inputs=(x,), create_graph=True)
        return g

    return wrapped


def _stops(torch):
    return [torch.utils.checkpoint.set_checkpoint_early_stop(one) for one in (True, False)]


def _dies(torch, run):
    class Handle:
        pass

    def scope():
        seen, refs, queue = set(), [], [run(torch.tensor(0.4, requires_grad=True)).grad_fn]
        while queue:
            node = queue.pop()
            if node is None or node in seen:
                continue
            seen.add(node)
            handle = node.metadata["mark"] = Handle()
            refs.append(weakref.ref(handle))
            queue.extend(one for one, _ in node.next_functions)
        return refs

    with no_collector():
        assert all(ref() is None for ref in scope())


@nested
def nested_checkpoint(torch):
    d, c = functools.partial(_derivative, torch), lambda run: lambda *x: again(torch, run, *x)

    def f(x):
        return x.sin().exp().sin()

    def g(x):
        torch.autograd.grad(x.sin().exp(), x)
        return x.sin()

    for stop in _stops(torch):
        with stop:
            x = torch.tensor(0.7, requires_grad=True)
            for run in (f, g):
                for expected, forms in (
                    (run, (c(run), c(c(run)))),
                    (d(run), (d(c(run)), d(c(c(run))))),
                    (d(d(run)), (d(c(d(run))), c(d(d(c(run)))), d(c(d(c(run)))))),
                    (d(d(d(run))), (d(c(d(d(c(run))))),)),
                ):
                    for form in forms:
                        assert near(form(x), expected(x))
                        _dies(torch, form)


@nested
def nested_checkpoint_two_children(torch):
    d, c = functools.partial(_derivative, torch), lambda run: lambda *x: again(torch, run, *x)
    total = lambda run: lambda x: run(x).sum()  # noqa: E731

    def f(x):
        return x.sin().exp().sin()

    def g(x):
        return x.cos().sin().exp()

    for stop in _stops(torch):
        with stop:
            a = leaf(torch, 3)
            both = lambda x: c(g)(c(f)(x))  # noqa: E731
            expected = d(total(d(total(lambda x: g(f(x))))))(a)
            assert near(d(total(d(total(c(both)))))(a), expected)
            assert near(d(total(c(d(total(c(both))))))(a), expected)
            _dies(torch, d(c(both)))


@nested
def nested_checkpoint_non_tensor_inputs_and_outputs(torch):
    def run(k, a, b, f):
        return f(k * a * b.exp()), 1, "abcd"

    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    for stop in _stops(torch):
        with stop:
            out, _, _ = again(torch, run, 3, a, b, torch.sin)
        assert near(torch.autograd.grad(out, (a, b)), torch.autograd.grad(run(3, a, b, torch.sin)[0], (a, b)))


@nested
def nested_checkpoint_kwargs(torch):
    def run(a, blah=None):
        out = a.sin().exp()
        return (out if blah is None else out * blah).sin().exp()

    a, b = torch.tensor(2.0, requires_grad=True), torch.tensor(3.0, requires_grad=True)
    for stop in _stops(torch):
        with stop:
            found = torch.autograd.grad(again(torch, run, a, blah=b), (a, b))
        assert near(found, torch.autograd.grad(run(a, blah=b), (a, b)))


@nested
def nested_checkpoint_same_graph(torch):
    for stop in _stops(torch):
        count = []
        with stop:
            out = again(torch, lambda a: a.sin().cos().sin(), torch.tensor(1.0, requires_grad=True))
        out.grad_fn.next_functions[0][0].register_hook(lambda *g, count=count: count.append(1))
        out.backward()
        assert count == [1]


@nested
def nested_checkpoint_reentrant_backwards(torch):
    def run(a):
        x = a.sin().cos()
        return x, x.sin()

    for stop in _stops(torch):
        with stop:
            x, out = again(torch, run, torch.tensor(1.0, requires_grad=True))
        out.grad_fn.register_hook(lambda *g, x=x: x.backward(retain_graph=True))
        out.backward(retain_graph=True)


@nested
def nested_checkpoint_set_early_stop(torch):
    setting = torch.utils.checkpoint.set_checkpoint_early_stop

    def clones(*blocks, **more):
        count = []

        def run(x):
            y = x.sin().cos()
            count.append(1)
            return y.clone()

        for block in blocks:
            block.__enter__()
        out = again(torch, run, torch.tensor(1.0, requires_grad=True), **more)
        for block in reversed(blocks):
            block.__exit__(None, None, None)
        out.backward()
        return len(count)

    assert clones() == 1
    assert clones(early_stop=False) == 2
    assert clones(early_stop=True) == 1
    assert clones(setting(False)) == 2
    assert clones(setting(True)) == 1
    assert clones(setting(False), setting(True), early_stop=False) == 1
    assert clones(setting(False), early_stop=True) == 2
    assert clones(setting(True), early_stop=False) == 1


nested.cannot("__torch_dispatch__", "nested_checkpoint_set_early_stop_no_recompution_needed")


# ---- selective ----
def _chosen(torch, policy, **more):
    return functools.partial(torch.utils.checkpoint.create_selective_checkpoint_contexts, policy, **more)


def _saves(torch, op):
    kinds = torch.utils.checkpoint.CheckpointPolicy
    return lambda ctx, asked, *a, **k: kinds.MUST_SAVE if asked == op else kinds.PREFER_RECOMPUTE


@selective
def output_already_has_autograd_meta(torch):
    x, y = torch.tensor([1, 2, 3]), torch.rand(3, requires_grad=True)
    out = again(
        torch, lambda x, y: (x.view(-1), y.sin().cos()), x, y, context_fn=_chosen(torch, [torch.ops.aten.view.default])
    )
    out[1].sum().backward()


@selective
def bad_inputs(torch):
    make = torch.utils.checkpoint.create_selective_checkpoint_contexts
    with refused("Expected op in `op_list` to be an OpOverload", ValueError):
        make([2])
    with refused("update the OpOverloadPacket to a specific OpOverload", ValueError):
        make([torch.ops.aten.sin])
    with refused("either a function or a list of ops.", TypeError):
        make(2)


@selective
def policy_with_state(torch):
    seen = []

    class Policy:
        counts = [0, 0]  # noqa: RUF012

        def __call__(self, ctx, func, *args, **kwargs):
            self.counts[ctx.is_recompute] += 1
            seen.append(self.counts[ctx.is_recompute])
            return torch.utils.checkpoint.CheckpointPolicy.PREFER_RECOMPUTE

    Policy.counts = [0, 0]
    context = _chosen(torch, Policy(), allow_cache_entry_mutation=True)
    again(torch, lambda x: x.sin().sin().sin(), leaf(torch, 3), context_fn=context).sum().backward()
    assert seen in ([1, 2, 3, 1, 2], [1, 2, 3])  # torch asks once, since it keeps the answers


@selective
def version_counter(torch):
    policy = _saves(torch, torch.ops.aten.sin.default)
    run = lambda x: x.sin().mul_(2).cos().exp()  # noqa: E731
    with refused("has been mutated"):
        again(torch, run, leaf(torch, 3), context_fn=_chosen(torch, policy)).sum().backward()
    again(
        torch, run, leaf(torch, 3), context_fn=_chosen(torch, policy, allow_cache_entry_mutation=True)
    ).sum().backward()


@selective
def function_with_more_than_one_output(torch):
    count, kinds = [], torch.utils.checkpoint.CheckpointPolicy

    def policy(ctx, op, *args, **kwargs):
        if op == torch.ops.aten.var_mean.correction:
            count.append(1)
            return kinds.MUST_SAVE
        return kinds.PREFER_RECOMPUTE

    def run(x):
        a, b = torch.var_mean(x)
        return a * b

    x = leaf(torch, 3)
    found = torch.autograd.grad(again(torch, run, x, context_fn=_chosen(torch, policy)).sum(), x)
    assert near(found, torch.autograd.grad(run(x).sum(), x))
    assert count


@selective
def can_only_trigger_recompute_once(torch):
    policy = _saves(torch, torch.ops.aten.sin.default)
    out = again(torch, lambda x: x.sin().cos().exp(), leaf(torch, 3), context_fn=_chosen(torch, policy))
    out.sum().backward(retain_graph=True)
    with refused("Trying to backward an extra time"):
        out.sum().backward(retain_graph=True)


selective.cannot("CUDA", "flops_and_mem")
selective.cannot("__torch_dispatch__", "subclass_dispatching_sizes", "storage_lifetime")
selective.cannot("torch.library", "function_with_non_tensor_output")
