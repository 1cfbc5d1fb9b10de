"""Hooks in unusual circumstances: removed, added and repeated while backward runs, on nodes, leaves and several tensors."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("hooks_while_running")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


@program
def one_hook_removes_the_next(torch):
    log, x = [], leaf(torch)
    y = x * 2

    def first(g):
        log.append("first")
        second.remove()

    y.register_hook(first)
    second = y.register_hook(lambda g: log.append("second"))
    y.register_hook(lambda g: log.append("third"))
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    return log


@program
def a_hook_adds_another(torch):
    log, x = [], leaf(torch)
    y = x * 2

    def first(g):
        log.append("first")
        y.register_hook(lambda g: log.append("added"))

    y.register_hook(first)
    z = y.sum()
    z.backward(retain_graph=True)
    z.backward()
    return log


@program
def a_hook_adds_one_to_a_tensor_reached_later(torch):
    log, x = [], leaf(torch)
    y = x * 2
    z = y * 3
    z.register_hook(lambda g: y.register_hook(lambda g: log.append(g.tolist())) and None)
    z.sum().backward()
    return log


@program
def one_function_registered_twice(torch):
    x = leaf(torch)
    y = x * 1
    double = lambda g: g * 2  # noqa: E731
    y.register_hook(double)
    handle = y.register_hook(double)
    z = y.sum()
    z.backward(retain_graph=True)
    handle.remove()
    z.backward()
    return x.grad


@program
def handles_are_distinct(torch):
    x = leaf(torch)
    a, b = x.register_hook(print), x.register_hook(print)
    return a.id != b.id, type(a).__name__


@program
def hooks_before_and_after_in_place(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.register_hook(lambda g: log.append(["before", g.tolist()]))
    y.mul_(3)
    y.register_hook(lambda g: log.append(["after", g.tolist()]))
    y.sum().backward()
    return log, x.grad


@program
def hook_before_in_place_replaces(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 100)
    y.mul_(3)
    y.register_hook(lambda g: g + 1)
    y.sum().backward()
    return x.grad


@program
def retain_grad_around_in_place_and_hooks(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.register_hook(lambda g: g * 10)
    y.mul_(3)
    y.register_hook(lambda g: g * 100)
    y.sum().backward()
    return y.grad, x.grad


@program
def hooks_of_a_view_and_of_its_base(torch):
    log, x = [], leaf(torch)
    base = x * 2
    view = base[1:]
    view.register_hook(lambda g: log.append(["view", g.tolist()]))
    base.register_hook(lambda g: log.append(["base", g.tolist()]))
    view.mul_(2)
    view.register_hook(lambda g: log.append(["new view", g.tolist()]))
    base.sum().backward()
    return log, x.grad


@program
def hook_where_no_gradient_arrives(torch):
    log, x = [], leaf(torch)

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    y = x * 2
    y.register_hook(lambda g: log.append(g is None))
    Nothing.apply(y).sum().backward()
    return log, x.grad


@program
def node_hook_sees_none_for_inputs_without_grad(torch):
    log, x = [], leaf(torch)
    y = x * torch.ones(3, dtype=torch.float64)
    y.grad_fn.register_hook(lambda gi, go: log.append([g is None for g in gi]))
    y.sum().backward()
    return log


@program
def node_prehook_returns_a_single_tensor(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: go[0] * 5)
    return caught(y.sum().backward), x.grad


@program
def accumulator_prehook_returns(torch):
    found = []
    for result in (
        lambda g: g[0] * 5,
        lambda g: [g[0] * 5],
        lambda g: (g[0] * 5,),
        lambda g: (g[0][:1],),
        lambda g: (),
    ):
        x = leaf(torch)
        node = x.expand_as(x).grad_fn.next_functions[0][0]  # held: an accumulator that nobody holds loses its hooks
        node.register_prehook(result)
        found.append([caught(x.sum().backward), x.grad])
    return found


@program
def node_prehook_returns_too_many(torch):
    y = leaf(torch) * 2
    y.grad_fn.register_prehook(lambda go: (go[0], go[0]))
    return caught(y.sum().backward)


@program
def node_posthook_returns_a_single_tensor(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: gi[0] * 5)
    return caught(y.sum().backward), x.grad


@program
def node_posthook_returns_none_for_a_gradient(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (None, None))
    return caught(y.sum().backward), x.grad


@program
def node_posthook_returns_too_few(torch):
    y = leaf(torch) * leaf(torch)
    y.grad_fn.register_hook(lambda gi, go: (gi[0],))
    return caught(y.sum().backward)


@program
def node_posthook_changes_the_shape(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: (gi[0][:2], None))
    return caught(y.sum().backward)


@program
def node_prehook_changes_the_shape(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0][:2],))
    return caught(y.sum().backward)


@program
def node_hooks_in_order_with_chained_results(torch):
    x = leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] + 1,))
    y.grad_fn.register_prehook(lambda go: (go[0] * 10,))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] + 1, gi[1]))
    y.grad_fn.register_hook(lambda gi, go: (gi[0] * 10, gi[1]))
    y.sum().backward()
    return x.grad


@program
def posthook_of_the_engine_sees_the_prehooks_result(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: (go[0] * 7,))
    y.grad_fn.register_hook(lambda gi, go: log.append([gi[0].tolist(), go[0].tolist()]))
    y.sum().backward()
    return log


@program
def leaf_hook_accumulator_hooks_and_post_accumulate(torch):
    log, x = [], leaf(torch)
    node = (x * 1).grad_fn.next_functions[0][0]
    x.register_post_accumulate_grad_hook(lambda t: log.append("post accumulate"))
    node.register_hook(lambda gi, go: log.append(["node", len(gi), len(go)]))
    node.register_prehook(lambda go: log.append("node pre"))
    x.register_hook(lambda g: log.append("tensor"))
    (x * 2).sum().backward()
    return log


@program
def leaf_hooks_by_grad(torch):
    log, x = [], leaf(torch)
    node = (x * 1).grad_fn.next_functions[0][0]
    node.register_hook(lambda gi, go: log.append("node"))
    node.register_prehook(lambda go: log.append("node pre"))
    x.register_hook(lambda g: log.append("tensor"))
    x.register_post_accumulate_grad_hook(lambda t: log.append("post accumulate"))
    torch.autograd.grad((x * 2).sum(), x)
    return log


@program
def prehook_of_a_captured_node(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.grad_fn.register_prehook(lambda go: log.append("pre") or (go[0] * 3,))
    y.grad_fn.register_hook(lambda gi, go: log.append("post"))
    y.register_hook(lambda g: log.append("tensor") or g * 5)
    return torch.autograd.grad((y * 1).sum(), y), log


@program
def post_accumulate_hook_returns_something(torch):
    x = leaf(torch)
    x.register_post_accumulate_grad_hook(lambda t: t * 2)
    return caught(x.sum().backward), x.grad


@program
def post_accumulate_hook_with_chosen_inputs(torch):
    log, x, w = [], leaf(torch), leaf(torch)
    x.register_post_accumulate_grad_hook(lambda t: log.append("x"))
    w.register_post_accumulate_grad_hook(lambda t: log.append("w"))
    (x * w).sum().backward(inputs=[w])
    return log


@program
def post_accumulate_hook_steps_while_backward_runs(torch):
    x = leaf(torch)

    def step(t):
        with torch.no_grad():
            t -= t.grad
        t.grad = None

    x.register_post_accumulate_grad_hook(step)
    (x * x).sum().backward()
    return x, x.grad


@program
def post_accumulate_hook_sees_sums_only(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda t: log.append(t.grad.tolist()))
    (x * 2 + x * 3).sum().backward()
    (x * 5).sum().backward()
    return log


@program
def post_accumulate_hook_removes_itself(torch):
    log, x = [], leaf(torch)
    handle = x.register_post_accumulate_grad_hook(lambda t: (log.append("once"), handle.remove())[1])
    x.register_post_accumulate_grad_hook(lambda t: log.append("always"))
    x.sum().backward()
    x.sum().backward()
    return log


@program
def hook_of_what_is_no_function(torch):
    x = leaf(torch)
    x.register_hook(3)
    return caught(x.sum().backward)


@program
def hook_after_detach(torch):
    x = leaf(torch)
    return caught(x.detach().register_hook, print), caught(x.data.register_hook, print)


@program
def hook_survives_requires_grad_off_and_on(torch):
    log, x = [], leaf(torch)
    x.register_hook(lambda g: log.append("called"))
    x.requires_grad_(False)
    x.requires_grad_(True)
    x.sum().backward()
    return log


@program
def hooks_and_data_assignment(torch):
    log, x = [], leaf(torch)
    x.register_hook(lambda g: log.append(g.tolist()))
    x.data = torch.ones(2, dtype=torch.float64)
    x.sum().backward()
    return log, x.grad


@program
def error_in_a_hook_leaves_earlier_gradients(torch):
    x, w = leaf(torch), leaf(torch)

    def fail(g):
        raise ValueError("hook")

    y = x * 2
    y.register_hook(fail)
    z = (y * 1 + w * 3).sum()
    return caught(z.backward), x.grad


@program
def grad_mode_inside_node_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.grad_fn.register_hook(lambda gi, go: log.append(torch.is_grad_enabled()))
    y.grad_fn.register_prehook(lambda go: log.append(torch.is_grad_enabled()))
    y.sum().backward(retain_graph=True)
    y.sum().backward(create_graph=True)
    x.grad = None
    return log


# ---- several tensors ----
def multi(torch: Any, tensors: Any, fn: Any, **kwargs: Any) -> Any:
    return torch.autograd.graph.register_multi_grad_hook(tensors, fn, **kwargs)


@program
def multi_of_a_tensor_without_grad(torch):
    return caught(multi, torch, (leaf(torch), torch.ones(2)), print)


@program
def multi_of_nothing(torch):
    log = []
    handle = multi(torch, (), lambda gs: log.append(gs))
    leaf(torch).sum().backward()
    return log, caught(handle.remove)


@program
def multi_of_one_tensor_twice(torch):
    log, x = [], leaf(torch)
    y = x * 2
    multi(torch, (y, y), lambda gs: log.append([None if g is None else g.tolist() for g in gs]))
    y.sum().backward()
    return log


@program
def multi_result_is_ignored(torch):
    x = leaf(torch)
    y = x * 2
    multi(torch, (y,), lambda gs: [g * 100 for g in gs])
    y.sum().backward()
    return x.grad


@program
def multi_raises(torch):
    x = leaf(torch)

    def fail(gs):
        raise ValueError("multi")

    multi(torch, (x,), fail)
    return caught(x.sum().backward)


@program
def multi_any_in_every_backward(torch):
    log, x = [], leaf(torch)
    a, b = x * 2, x * 3
    multi(torch, (a, b), lambda g: log.append(g.tolist()), mode="any")
    a.sum().backward(retain_graph=True)
    b.sum().backward(retain_graph=True)
    (a + b).sum().backward()
    return log


@program
def multi_any_where_none_is_reached(torch):
    log, x = [], leaf(torch)
    a, b = x * 2, x * 3
    multi(torch, (a,), lambda g: log.append("a"), mode="any")
    b.sum().backward()
    return log


@program
def multi_all_where_none_is_reached(torch):
    log, x = [], leaf(torch)
    a, b = x * 2, x * 3
    multi(torch, (a,), lambda gs: log.append("a"))
    b.sum().backward()
    return log


@program
def multi_all_inside_a_nested_backward(torch):
    log, x = [], leaf(torch)
    a = x * 2
    multi(torch, (a,), lambda gs: log.append("outer" if gs[0][0] == 1 else "inner"))
    b = x * 1

    def again(g):
        (a * 5).sum().backward(retain_graph=True)

    b.register_hook(again)
    (a + b).sum().backward()
    return log


@program
def multi_handle_as_context(torch):
    log, x = [], leaf(torch)
    with multi(torch, (x,), lambda gs: log.append("inside")):
        x.sum().backward()
    x.sum().backward()
    return log


@program
def multi_sees_gradients_after_earlier_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g * 10)
    multi(torch, (y,), lambda gs: log.append(gs[0].tolist()))
    y.register_hook(lambda g: g * 100)
    y.sum().backward()
    return log, x.grad


test_as_torch, test_recording_is_torchs = program.tests()
