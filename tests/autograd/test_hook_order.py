"""In which order hooks run, those of tensors, nodes, leaves and modules, and what happens to hooks that come, go or fail meanwhile."""

from __future__ import annotations

import gc
import weakref
from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("hook_order")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def accumulator(x: Any) -> Any:
    return x.view_as(x).grad_fn.next_functions[0][0]


def doubling(torch: Any) -> Any:
    class Double(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return g * 2

    return Double.apply


def ways_to_double(torch: Any) -> list[Any]:
    """Two ways to double: a node of the library and one of the user."""
    return [lambda x: x * 2, doubling(torch)]


# ---- tensors and nodes ----
@program
def all_hooks_of_one_tensor(torch):
    found = []
    for double in ways_to_double(torch):
        log, x = [], leaf(torch)
        y = double(x)
        y.grad_fn.register_hook(lambda i, o, log=log: log.append(["node", i[0].tolist(), o[0].tolist()]))
        y.grad_fn.register_prehook(lambda o, log=log: log.append(["pre", o[0].tolist()]) or (o[0] * 2,))
        y.register_hook(lambda g, log=log: log.append(["tensor", g.tolist()]) or g * 3)
        y.grad_fn.register_prehook(lambda o, log=log: log.append(["pre", o[0].tolist()]) or (o[0] * 5,))
        y.retain_grad()
        y.register_hook(lambda g, log=log: log.append(["tensor", g.tolist()]) or g * 7)
        y.sum().backward()
        found.append([log, y.grad, x.grad])
    return found


@program
def all_hooks_of_a_leaf(torch):
    log, x = [], leaf(torch)
    node = accumulator(x)
    node.register_hook(lambda i, o: log.append(["node", len(i), o[0].tolist()]))
    x.register_post_accumulate_grad_hook(lambda x: log.append(["post", x.grad.tolist()]))
    node.register_prehook(lambda o: log.append(["pre", o[0].tolist()]) or (o[0] * 2,))
    x.register_hook(lambda g: log.append(["tensor", g.tolist()]) or g * 3)
    x.register_post_accumulate_grad_hook(lambda x: log.append(["post 2", x.grad.tolist()]))
    x.register_hook(lambda g: log.append(["tensor 2", g.tolist()]) or g * 3)
    (x * 1).sum().backward()
    torch.autograd.grad((x * 1).sum(), x)
    y = x * 1
    y.sum().backward(inputs=(x,))
    return log, x.grad


@program
def post_accumulate_hook_changes_grad_and_leaf(torch):
    x = leaf(torch)

    def step(x):
        with torch.no_grad():
            x.sub_(x.grad)
        x.grad = None

    x.register_post_accumulate_grad_hook(step)

    def grow(x):
        x.data.mul_(10.0)

    x.register_post_accumulate_grad_hook(grow)
    for _ in range(2):
        (x * x).sum().backward()
    return x, x.grad


@program
def hooks_of_inner_tensors_by_grad(torch):
    log, x = [], leaf(torch)
    y = x * 2
    z = y * 3
    y.register_hook(lambda g: log.append("tensor y") or g * 2)
    x.register_hook(lambda g: log.append("tensor x"))
    y.grad_fn.register_prehook(lambda o: log.append("pre y"))
    y.grad_fn.register_hook(lambda i, o: log.append("post y"))
    accumulator(x).register_prehook(lambda o: log.append("pre x"))
    found = []
    for inputs in (y,), (x,), (x, y), (y, x):
        grads = torch.autograd.grad(z.sum(), inputs, retain_graph=True)
        found.append([list(log), list(grads)])
        log.clear()
        z.sum().backward(inputs=inputs, retain_graph=True)
        found.append([list(log)])
        log.clear()
    return found, y.grad, x.grad


@program
def hook_of_a_root(torch):
    log, x = [], leaf(torch)
    y = (x * 2).sum()
    y.register_hook(lambda g: log.append(g.tolist()) or g * 2)
    y.retain_grad()
    y.backward(retain_graph=True)
    torch.autograd.grad(y, y, retain_graph=True)
    torch.autograd.grad(y, x)
    return log, y.grad, x.grad


@program
def tensor_hooks_of_one_node_with_several_outputs(torch):
    log, x = [], leaf(torch)
    parts = x.unbind()
    for k in (2, 0, 1):
        parts[k].register_hook(lambda g, k=k: log.append([k, None if g is None else g.tolist()]))
        parts[k].retain_grad()
    parts[0].grad_fn.register_prehook(lambda gs: log.append([None if g is None else g.tolist() for g in gs]))
    (parts[0] * 2).backward(retain_graph=True)
    (parts[1] + parts[2]).backward()
    return log, [p.grad for p in parts], x.grad


@program
def a_hook_registered_twice_is_called_twice(torch):
    log, x = [], leaf(torch)
    y = x * 2

    def pre(grads):
        log.append("pre")
        return tuple(g * 2 for g in grads)

    handles = [y.grad_fn.register_prehook(pre), y.grad_fn.register_prehook(pre)]
    z = y.sum()
    z.backward(retain_graph=True)
    handles[0].remove()
    handles[0].remove()
    z.backward()
    return log, x.grad


# ---- coming and going while hooks run ----
@program
def node_prehook_removes_the_next(torch):
    found = []
    for double in ways_to_double(torch):
        log, x, handles = [], leaf(torch), []
        y = double(x)

        def first(grads, log=log, handles=handles):
            log.append("first")
            handles[0].remove()

        y.grad_fn.register_prehook(first)
        handles.append(y.grad_fn.register_prehook(lambda g, log=log: log.append("second")))
        y.grad_fn.register_prehook(lambda g, log=log: log.append("third"))
        z = y.sum()
        z.backward(retain_graph=True)
        z.backward()
        found.append(log)
    return found


@program
def node_hook_removes_the_next(torch):
    found = []
    for double in ways_to_double(torch):
        log, x, handles = [], leaf(torch), []
        y = double(x)

        def first(inputs, outputs, log=log, handles=handles):
            log.append("first")
            handles[0].remove()

        y.grad_fn.register_hook(first)
        handles.append(y.grad_fn.register_hook(lambda i, o, log=log: log.append("second")))
        y.grad_fn.register_hook(lambda i, o, log=log: log.append("third"))
        z = y.sum()
        z.backward(retain_graph=True)
        z.backward()
        found.append(log)
    return found


@program
def node_hooks_that_add_hooks(torch):
    found = []
    for double in ways_to_double(torch):
        log, x = [], leaf(torch)
        y = double(x)
        node = y.grad_fn

        def pre(grads, log=log, node=node):
            log.append("pre")
            node.register_prehook(lambda g: log.append("added pre"))
            node.register_hook(lambda i, o: log.append("added post"))

        def post(inputs, outputs, log=log, node=node):
            log.append("post")
            node.register_hook(lambda i, o: log.append("added by post"))

        node.register_prehook(pre)
        node.register_hook(post)
        z = y.sum()
        z.backward(retain_graph=True)
        log.append("again")
        z.backward()
        found.append(log)
    return found


@program
def tensor_hook_adds_node_hooks(torch):
    log, x = [], leaf(torch)
    y = x * 2

    def add(g):
        log.append("tensor")
        y.grad_fn.register_prehook(lambda g: log.append("pre"))
        y.grad_fn.register_hook(lambda i, o: log.append("post"))

    y.register_hook(add)
    y.sum().backward()
    return log


@program
def post_hook_added_while_the_node_computes(torch):
    log, x = [], leaf(torch)

    class Adding(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2

        @staticmethod
        def backward(ctx, g):
            y.grad_fn.register_hook(
                lambda i, o: log.append([[None if t is None else t.tolist() for t in ts] for ts in (i, o)])
            )
            return g * 2

    y = Adding.apply(x)
    y.sum().backward()
    return log, x.grad


@program
def post_hook_added_while_a_saved_tensor_is_unpacked(torch):
    log, x = [], leaf(torch)

    def unpack(t):
        node = torch._C._current_autograd_node()
        node.register_hook(
            lambda i, o: (
                log.append([[None if t is None else t.tolist() for t in ts] for ts in (i, o)])
                or tuple(None if t is None else t / 2 for t in i)
            )
        )
        return t

    with torch.autograd.graph.saved_tensors_hooks(lambda t: t, unpack):
        y = x * x.detach()
    y.sum().backward()
    return log, x.grad


@program
def leaf_hooks_that_add_leaf_hooks(torch):
    log, x = [], leaf(torch)

    def tensor(g):
        log.append("tensor")
        x.register_post_accumulate_grad_hook(lambda x: log.append("added post"))
        x.register_hook(lambda g: log.append("added tensor"))

    def post(x):
        log.append("post")
        x.register_post_accumulate_grad_hook(lambda x: log.append("added by post"))

    x.register_hook(tensor)
    x.register_post_accumulate_grad_hook(post)
    (x * 2).sum().backward()
    log.append("again")
    (x * 2).sum().backward()
    return log


@program
def post_accumulate_hook_removes_the_next(torch):
    log, x = [], leaf(torch)

    def first(x):
        log.append("first")
        second.remove()

    x.register_post_accumulate_grad_hook(first)
    second = x.register_post_accumulate_grad_hook(lambda x: log.append("second"))
    (x * 2).sum().backward()
    (x * 2).sum().backward()
    return log


@program
def hooks_that_return_what_they_were_given(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: g)
    y.grad_fn.register_prehook(lambda gs: gs)
    y.grad_fn.register_hook(lambda i, o: i)
    x.register_hook(lambda g: g)
    x.register_post_accumulate_grad_hook(lambda x: x)
    return caught(y.sum().backward), x.grad


@program
def a_later_hook_sees_what_a_post_accumulate_hook_returned(torch):
    log, x = [], leaf(torch)
    x.register_post_accumulate_grad_hook(lambda x: log.append(x.tolist()) or x.grad)
    x.register_post_accumulate_grad_hook(lambda x: log.append(x.tolist()))
    return caught((x * 2).sum().backward), log, x.grad


@program
def retain_grad_asked_for_in_a_hook(torch):
    x = leaf(torch)
    y = x * 2
    z = y * 3
    z.register_hook(lambda g: y.retain_grad())
    z.sum().backward(retain_graph=True)
    first = y.grad
    y.register_hook(lambda g: y.retain_grad())
    z.sum().backward()
    return first, y.grad


@program
def retain_grad_of_itself_asked_for_in_a_hook(torch):
    x = leaf(torch)
    y = x * 2
    y.register_hook(lambda g: y.retain_grad())
    z = y.sum()
    z.backward(retain_graph=True)
    first = None if y.grad is None else y.grad.clone()
    z.backward()
    return first, y.grad


@program
def a_hook_changes_the_gradient_in_place(torch):
    x = leaf(torch)
    y = x * 2
    w = x * 3

    def grow(g):
        g.mul_(10.0)

    y.register_hook(grow)
    (y + w).backward(torch.ones(3, dtype=torch.float64))
    return x.grad


# ---- hooks that fail ----
@program
def a_failing_hook_of_every_kind(torch):
    def fail(*_):
        raise ValueError("no")

    found = []
    for double in ways_to_double(torch):
        for kind in ("tensor", "pre", "post", "leaf", "leaf pre", "leaf post", "accumulated"):
            x = leaf(torch)
            y = double(x)
            if kind == "tensor":
                handle = y.register_hook(fail)
            elif kind == "pre":
                handle = y.grad_fn.register_prehook(fail)
            elif kind == "post":
                handle = y.grad_fn.register_hook(fail)
            elif kind == "leaf":
                handle = x.register_hook(fail)
            elif kind == "leaf pre":
                handle = accumulator(x).register_prehook(fail)
            elif kind == "leaf post":
                handle = accumulator(x).register_hook(fail)
            else:
                handle = x.register_post_accumulate_grad_hook(fail)
            z = y.sum()
            first = caught(z.backward, retain_graph=True)
            before = x.grad
            handle.remove()
            found.append([kind, first, None if before is None else before.clone(), caught(z.backward), x.grad])
    return found


@program
def what_ran_before_a_failing_hook_stays(torch):
    a, b = leaf(torch), leaf(torch)
    u, v = a * 2, b * 3

    def fail(g):
        raise KeyError("k")

    u.register_hook(fail)
    w = u + v
    error = caught(w.sum().backward)
    return error, a.grad, b.grad


@program
def results_of_hooks_that_do_not_fit(torch):
    found = []
    for result in (1, "a", [1], torch.ones(2), torch.ones(3, dtype=torch.float32), (torch.ones(3),), ()):
        for kind in ("tensor", "pre", "post", "leaf", "leaf pre", "leaf post", "accumulated"):
            x = leaf(torch)
            y = x * 2
            node = accumulator(x)
            register = {
                "tensor": y.register_hook,
                "pre": y.grad_fn.register_prehook,
                "post": y.grad_fn.register_hook,
                "leaf": x.register_hook,
                "leaf pre": node.register_prehook,
                "leaf post": node.register_hook,
                "accumulated": x.register_post_accumulate_grad_hook,
            }[kind]

            def hook(*_, result=result):
                return result

            register(hook)
            found.append([kind, caught(y.sum().backward), x.grad])
    return found


# ---- callbacks of the engine ----
@program
def a_callback_that_adds_a_callback(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def second():
        log.append("second")
        queue(lambda: log.append("third"))

    def first():
        log.append(["first", x.grad.tolist()])
        queue(second)

    y = x * 2
    y.register_hook(lambda g: queue(first))
    y.register_hook(lambda g: queue(lambda: log.append("other")))
    y.sum().backward()
    log.append("end")
    return log


@program
def a_callback_that_fails(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def fail():
        log.append("fails")
        raise ValueError("no")

    y = x * 2
    y.register_hook(lambda g: queue(lambda: log.append("before")))
    y.register_hook(lambda g: queue(fail))
    y.register_hook(lambda g: queue(lambda: log.append("after")))
    error = caught(y.sum().backward)
    return log, error, x.grad


@program
def callbacks_of_nested_backwards(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def nest(g):
        z = leaf(torch)
        with torch.enable_grad():
            w = (z * 2).sum()
        w.register_hook(lambda g: queue(lambda: log.append("inner")))
        w.backward()
        log.append("nested done")
        queue(lambda: log.append("outer"))

    y = x * 2
    y.register_hook(nest)
    y.sum().backward()
    log.append("end")
    return log


@program
def a_backward_inside_a_callback(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def nest():
        z = leaf(torch)
        with torch.enable_grad():
            w = (z * 2).sum()
        w.register_hook(lambda g: queue(lambda: log.append("inner callback")))
        w.backward()
        log.append(z.grad.tolist())

    y = x * 2
    y.register_hook(lambda g: queue(nest))
    y.sum().backward()
    return log


@program
def a_callback_outside_backward(torch):
    return caught(torch.autograd.Variable._execution_engine.queue_callback, lambda: None)


@program
def callbacks_after_a_failing_backward(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback

    def fail(g):
        raise ValueError("no")

    y = x * 2
    z = y * 2
    z.register_hook(lambda g: queue(lambda: log.append("callback")))
    y.register_hook(fail)
    return caught(z.sum().backward), log


@program
def callback_sees_the_modes(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback
    y = x * 2
    y.register_hook(lambda g: queue(lambda: log.append(torch.is_grad_enabled())))
    z = y.sum()
    z.backward(create_graph=True)
    with torch.no_grad():
        z.backward()
    x.grad = None
    return log


# ---- hooks and double backward ----
@program
def tensor_hook_in_double_backward(torch):
    log, x = [], leaf(torch)
    y = x * x
    y.register_hook(lambda g: log.append(g.requires_grad) or g * x)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return log, g, h


@program
def node_hooks_in_double_backward(torch):
    log, x = [], leaf(torch)
    y = x * x
    y.grad_fn.register_prehook(lambda gs: log.append("pre") or tuple(g * x for g in gs))
    y.grad_fn.register_hook(lambda i, o: log.append([t.requires_grad for t in i]) or tuple(t * 2 for t in i))
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    (h,) = torch.autograd.grad(g.sum(), x)
    return log, g, h


@program
def hook_on_a_gradient(torch):
    log, x = [], leaf(torch)
    y = x**3
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    g.register_hook(lambda h: log.append(h.tolist()) or h * 2)
    g.sum().backward()
    return log, x.grad


@program
def hook_removed_between_orders(torch):
    log, x = [], leaf(torch)
    y = x**3
    handle = y.register_hook(lambda g: log.append(g.tolist()) or g * 2)
    (g,) = torch.autograd.grad(y.sum(), x, create_graph=True)
    handle.remove()
    g.sum().backward()
    return log, x.grad


# ---- in place ----
@program
def hooks_around_in_place_with_retained_gradients(torch):
    log, x = [], leaf(torch)
    y = x * 1
    y.register_hook(lambda g: log.append(["old", g.tolist()]))
    y.retain_grad()
    y.mul_(2.0)
    y.register_hook(lambda g: log.append(["new", g.tolist()]) or g * 2)
    y.retain_grad()
    y.add_(1.0)
    y.register_hook(lambda g: log.append(["newest", g.tolist()]))
    y.sum().backward()
    return log, y.grad, x.grad, y.retains_grad


@program
def hooks_after_two_writes(torch):
    log, x = [], leaf(torch)
    y = x * 1
    handles = [y.register_hook(lambda g: log.append(["a", g.tolist()]))]
    y.mul_(2.0)
    y.mul_(3.0)
    handles.append(y.register_hook(lambda g: log.append(["b", g.tolist()])))
    y.sum().backward(retain_graph=True)
    handles[0].remove()
    y.sum().backward()
    return log, x.grad


@program
def prehooks_of_a_written_node(torch):
    log, x = [], leaf(torch)
    y = x * 1
    y.grad_fn.register_prehook(lambda g: log.append("old pre"))
    y.grad_fn.register_hook(lambda i, o: log.append("old post"))
    y.mul_(2.0)
    y.grad_fn.register_prehook(lambda g: log.append("new pre"))
    y.grad_fn.register_hook(lambda i, o: log.append("new post"))
    y.sum().backward()
    return log


@program
def leaf_that_becomes_an_inner_tensor(torch):
    log, x = [], torch.ones(3, dtype=torch.float64)
    w = leaf(torch)
    x.requires_grad_()
    x.register_hook(lambda g: log.append(["leaf", g.tolist()]))
    x.requires_grad_(False)
    x.mul_(w)
    x.register_hook(lambda g: log.append(["inner", g.tolist()]))
    x.sum().backward()
    return log, w.grad


# ---- lives ----
@program
def a_hook_is_kept_by_its_tensor(torch):
    x = leaf(torch)
    y = x * 2

    class Hook:
        def __call__(self, g):
            return None

    hook = Hook()
    there = weakref.ref(hook)
    y.register_hook(hook)
    del hook
    gc.collect()
    first = there() is not None
    del y
    gc.collect()
    return first, there() is None


@program
def a_post_accumulate_hook_lives_with_its_leaf(torch):
    class Thing:
        pass

    thing, x = Thing(), leaf(torch)
    there = weakref.ref(thing)
    x.register_post_accumulate_grad_hook(lambda x, thing=thing: None)
    (x * 2).sum().backward()
    del thing
    gc.collect()
    first = there() is not None
    del x
    gc.collect()
    return first, there() is None


@program
def a_hook_without_a_name(torch):
    class Hook:
        def __call__(self, *given):
            return torch.ones(7)

    x = leaf(torch)
    y = x * 2
    y.register_hook(Hook())
    return caught(y.sum().backward)


@program
def a_handle_outlives_its_tensor(torch):
    x = leaf(torch)
    y = x * 2
    handle = y.register_hook(lambda g: None)
    node = y.grad_fn.register_prehook(lambda g: None)
    del y
    gc.collect()
    handle.remove()
    node.remove()
    return True


test_as_torch, test_recording_is_torchs = program.tests()
