"""What custom Functions return and mark: inputs as they are, views, several views, dirty and constant outputs, and what ctx keeps."""

from __future__ import annotations

import gc
import weakref
from functools import partial
from typing import Any

from tests.autograd.recording import Programs, caught, warned

program = Programs("function_outputs")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0, 4.0), dtype=torch.float64, requires_grad=True)


def make(torch: Any, forward: Any, backward: Any = None, **more: Any) -> Any:
    def same(ctx, *gs):
        return gs[0]

    body = {"forward": staticmethod(forward), "backward": staticmethod(backward or same)}
    return type("Custom", (torch.autograd.Function,), {**body, **{k: staticmethod(v) for k, v in more.items()}})


def facts(t: Any) -> list[Any]:
    node = caught(lambda: t.grad_fn)
    base = caught(lambda: t._base)
    return [
        caught(t._is_view),
        base if isinstance(base, Exception) else None if base is None else list(base.shape),
        caught(lambda: t._version),
        node if isinstance(node, Exception) else None if node is None else node.name(),
        caught(lambda: t.requires_grad),
        caught(lambda: t.is_leaf),
        caught(lambda: t.output_nr),
    ]


RETURNS = {
    "input": lambda ctx, x: x,
    "input twice": lambda ctx, x: (x, x),
    "view": lambda ctx, x: x.view(2, 2),
    "slice": lambda ctx, x: x[1:],
    "two views": lambda ctx, x: (x[:2], x[2:]),
    "split": lambda ctx, x: x.split(2),
    "unbind": lambda ctx, x: x.unbind(),
    "input and view": lambda ctx, x: (x, x[1:]),
    "view of a new one": lambda ctx, x: (x * 2)[1:],
    "two views of a new one": lambda ctx, x: (x * 2).split(2),
    "detached": lambda ctx, x: x.detach(),
    "data": lambda ctx, x: x.data,
    "alias": lambda ctx, x: x.view_as(x),
    "expanded": lambda ctx, x: x.expand(2, 4),
    "new": lambda ctx, x: x * 2,
    "new twice": lambda ctx, x: (x * 2,) * 2,
    "list": lambda ctx, x: [x * 2, x * 3],
    "real": lambda ctx, x: x.real,
}


def summed(torch: Any, out: Any) -> Any:
    return sum(o.sum() * (k + 2) for k, o in enumerate(out)) if isinstance(out, (tuple, list)) else out.sum() * 2


def handing(forward: Any, thing: Any, ctx: Any, x: Any) -> Any:
    return forward(ctx, x, thing)


def spread(ctx: Any, *gs: Any) -> Any:
    """Send the sum of all gradients back, whatever their shapes."""
    return sum(g.sum() for g in gs).expand(4)


@program
def every_kind_of_output(torch):
    found = []
    for name, forward in RETURNS.items():
        for source in ("leaf", "inner", "view", "constant"):
            x = leaf(torch)
            given = {"leaf": x, "inner": x * 1, "view": (x * 1).view(4), "constant": x.detach().clone()}[source]
            out = caught(make(torch, forward, spread).apply, given)
            outs = out if isinstance(out, (tuple, list)) else [out]
            found.append([name, source, [facts(o) for o in outs if not isinstance(o, Exception)], out is given])
            if isinstance(out, Exception):
                found[-1].append(out)
            elif source != "constant":
                found[-1] += [caught(lambda out=out: summed(torch, out).backward()), x.grad]
    return found


@program
def every_kind_of_output_written(torch):
    found = []
    for name, forward in RETURNS.items():
        if name == "list":
            continue
        for source in ("inner", "view", "constant"):
            x = leaf(torch)
            given = {"inner": x * 1, "view": (x * 1).view(4), "constant": x.detach().clone()}[source]
            out = make(torch, forward, spread).apply(given)
            first = out[0] if isinstance(out, tuple) else out
            error = caught(first.mul_, 3)
            found.append([name, source, error if isinstance(error, Exception) else None, facts(first), facts(given)])
            if source != "constant":
                found[-1] += [caught(lambda out=out: summed(torch, out).backward()), x.grad]
    return found


@program
def input_written_after_every_kind_of_output(torch):
    found = []
    for name, forward in RETURNS.items():
        if name == "list":
            continue
        x = leaf(torch)
        given = x * 1
        out = make(torch, forward, spread).apply(given)
        error = caught(given.mul_, 3)
        first = out[0] if isinstance(out, tuple) else out
        found.append([name, error if isinstance(error, Exception) else None, facts(first)])
        found[-1] += [caught(lambda out=out: summed(torch, out).backward()), x.grad]
    return found


@program
def views_of_what_a_function_returned_written(torch):
    found = []
    for name in ("input", "view", "two views", "view of a new one", "new", "alias"):
        x = leaf(torch)
        given = x * 1
        out = make(torch, RETURNS[name], spread).apply(given)
        first = out[0] if isinstance(out, tuple) else out
        part = first[:1]
        error = caught(part.mul_, 3)
        found.append([name, error if isinstance(error, Exception) else None, facts(part), facts(first)])
    return found


@program
def outputs_made_under_no_grad_and_inference(torch):
    found = []
    for name, forward in RETURNS.items():
        if name == "list":
            continue
        for mode in (torch.no_grad, torch.inference_mode):
            x = leaf(torch)
            given = x * 1
            with mode():
                out = make(torch, forward, spread).apply(given)
            first = out[0] if isinstance(out, tuple) else out
            found.append([name, mode.__name__, facts(first)])
            error = caught(first.mul_, 3)
            found[-1].append(error if isinstance(error, Exception) else None)
    return found


# ---- dirty ----
@program
def dirty_inputs(torch):
    found = []

    def write(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    def write_detached(ctx, x):
        ctx.mark_dirty(x)
        x.data.mul_(2)
        return x

    for name, forward in {"written": write, "through data": write_detached}.items():
        for source in ("leaf", "inner", "view", "part", "view of a leaf", "constant", "split", "no_grad view"):
            x = leaf(torch)
            with torch.set_grad_enabled(source != "no_grad view"):
                given = {
                    "leaf": x,
                    "inner": x * 1,
                    "view": (x * 1).view(4),
                    "part": (x * 1)[1:],
                    "view of a leaf": x.view(4),
                    "constant": x.detach().clone(),
                    "split": (x * 1).split(4)[0],
                    "no_grad view": (x * 1)[1:],
                }[source]
            out = caught(make(torch, forward, lambda ctx, g: g * 2).apply, given)
            found.append([name, source, out if isinstance(out, Exception) else None, out is given, facts(given)])
            if not isinstance(out, Exception) and out.requires_grad:
                found[-1] += [caught(lambda out=out: out.sum().backward()), x.grad]
    return found


@program
def dirty_and_what_else_is_returned(torch):
    found = []

    def with_new(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x + 1

    def not_first(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x + 1, x

    def twice(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x

    def with_view(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, x[1:]

    def not_returned(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x + 1

    def constant(ctx, x):
        ctx.mark_dirty(x)
        ctx.mark_non_differentiable(x)
        x.mul_(2)
        return x

    def constant_other(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        y = x + 1
        ctx.mark_non_differentiable(y)
        return x, y

    def with_text(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        return x, "text"

    def marked_twice(ctx, x):
        ctx.mark_dirty(x, x)
        x.mul_(2)
        return x

    def new(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    def view_of_input(ctx, x):
        y = x[1:]
        ctx.mark_dirty(y)
        y.mul_(2)
        return y

    kinds = (
        with_new,
        not_first,
        twice,
        with_view,
        not_returned,
        constant,
        constant_other,
        with_text,
        marked_twice,
        new,
    )
    for forward in (*kinds, view_of_input):
        for source in ("leaf", "inner", "part", "constant"):
            x = leaf(torch)
            given = {"leaf": x, "inner": x * 1, "part": (x * 1)[:], "constant": x.detach().clone()}[source]
            out = caught(make(torch, forward, spread).apply, given)
            found.append([forward.__name__, source])
            if isinstance(out, Exception):
                found[-1].append(out)
                continue
            outs = out if isinstance(out, tuple) else (out,)
            outs = [o for o in outs if not isinstance(o, str)]
            found[-1] += [[facts(o) for o in outs], [o is given for o in outs], facts(given)]
            if source != "constant":
                found[-1] += [caught(lambda outs=outs: summed(torch, outs).backward()), x.grad]
    return found


@program
def dirty_with_retained_gradient_and_hook(torch):
    log, x = [], leaf(torch)
    y = x * 1
    y.retain_grad()
    y.register_hook(lambda g: log.append(["before", g.tolist()]))

    def write(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    z = make(torch, write, lambda ctx, g: g * 2).apply(y)
    z.register_hook(lambda g: log.append(["after", g.tolist()]))
    z.sum().backward()
    return log, z is y, y.grad, x.grad


@program
def views_and_retained_gradients_of_dirty_inputs(torch):
    found = []
    for count in (1, 2):

        def write(ctx, x, count=count):
            ctx.mark_dirty(x)
            x.mul_(2)
            return (x, x + 1)[:count] if count > 1 else x

        log, x = [], leaf(torch)
        y = x * 1
        v = y[1:]
        y.retain_grad()
        v.retain_grad()
        out = make(torch, write, spread).apply(y)
        first = out[0] if count > 1 else out
        _ = v.grad_fn  # else torch 2.13 crashes
        v.register_hook(lambda g, log=log: log.append(g.tolist()))
        (first.sum() + v.sum() * 10).backward()
        found.append([facts(v), facts(y), log, v.grad, y.grad, x.grad])
    return found


@program
def warning_of_dirty_outputs_that_are_no_inputs(torch):
    def new(ctx, x):
        y = x * 2
        ctx.mark_dirty(y)
        return y

    return [entry[0] for entry in warned(make(torch, new).apply, leaf(torch))]


@program
def dirty_two_of_three(torch):
    def swap(ctx, a, b, c):
        ctx.mark_dirty(a, c)
        a.mul_(2)
        c.add_(1)
        return c, a, b * 2

    x, y, z = leaf(torch), leaf(torch), leaf(torch)
    a, b, c = x * 1, y * 1, z * 1
    out = make(torch, swap, lambda ctx, gc, ga, gb: (ga * 2, gb * 2, gc)).apply(a, b, c)
    (out[0] * 3 + out[1] * 5 + out[2] * 7).sum().backward()
    return out[0] is c, out[1] is a, x.grad, y.grad, z.grad, [t._version for t in (a, b, c)]


# ---- constant outputs and missing gradients ----
@program
def constant_outputs_and_materialized_gradients(torch):
    found = []
    for materialize in (True, False):
        for used in (0, 1):
            log = []

            def forward(ctx, x, materialize=materialize):
                ctx.set_materialize_grads(materialize)
                a, b, c, d = x * 2, x * 3, (x > 2), x.to(torch.int64)
                ctx.mark_non_differentiable(b)
                return a, b, c, d, x * 5, "text"

            def backward(ctx, *gs, log=log):
                log.append([None if g is None else [str(g.dtype), g.tolist()] for g in gs])
                return next(g for g in (gs[0], gs[4]) if g is not None)

            x = leaf(torch)
            out = make(torch, forward, backward).apply(x)
            out[(0, 4)[used]].sum().backward()
            found.append([materialize, used, log, [facts(o) for o in out[:5]], x.grad])
    return found


@program
def non_differentiable_things(torch):
    found = []

    def an_input(ctx, x):
        ctx.mark_non_differentiable(x)
        return x

    def a_view(ctx, x):
        y = x[1:]
        ctx.mark_non_differentiable(y)
        return y

    def nothing(ctx, x):
        ctx.mark_non_differentiable()
        return x * 2

    def something_else(ctx, x):
        ctx.mark_non_differentiable(x + 1)
        return x * 2

    def no_tensor(ctx, x):
        ctx.mark_non_differentiable(1)
        return x * 2

    def twice(ctx, x):
        y, z = x * 2, x * 3
        ctx.mark_non_differentiable(y)
        ctx.mark_non_differentiable(z)
        return y, z

    for forward in (an_input, a_view, nothing, something_else, no_tensor, twice):
        x = leaf(torch)
        given = x * 1
        out = caught(make(torch, forward, spread).apply, given)
        if isinstance(out, Exception):  # torch forgets to say what it got
            found.append([forward.__name__, type(out), str(out)[:55]])
            continue
        outs = out if isinstance(out, tuple) else (out,)
        found.append([forward.__name__, [facts(o) for o in outs], [o is given for o in outs]])
        found[-1].append(caught(lambda out=out: summed(torch, out).backward()))
        found[-1].append(x.grad)
    return found


@program
def missing_gradients_and_second_order(torch):
    found = []
    for materialize in (True, False):
        log = []

        def forward(ctx, x, y, materialize=materialize):
            ctx.set_materialize_grads(materialize)
            ctx.save_for_backward(x, y)
            return x * y, x * 2

        def backward(ctx, g, h, log=log):
            x, y = ctx.saved_tensors
            log.append([g is None, h is None])
            if g is None:
                return h * 2, None
            if h is None:
                return g * y, g * x
            return g * y + h * 2, g * x

        f = make(torch, forward, backward)
        x, y = leaf(torch), leaf(torch)
        a, _ = f.apply(x, y)
        (g,) = torch.autograd.grad(a.sum(), x, create_graph=True)
        (h,) = torch.autograd.grad(g.sum(), y, allow_unused=True)
        found.append([log, g, h, torch.autograd.grad(f.apply(x, y)[1].sum(), (x, y), allow_unused=True)])
    return found


@program
def set_materialize_grads_late_and_odd(torch):
    found = []
    for value in (0, 1, None, "a"):
        log = []

        def forward(ctx, x, value=value):
            ctx.set_materialize_grads(value)
            return x * 2, x * 3

        def backward(ctx, g, h, log=log):
            log.append([g is None, h is None])
            return g

        x = leaf(torch)
        out = caught(make(torch, forward, backward).apply, x)
        if not isinstance(out, Exception):
            out[0].sum().backward()
        found.append([[type(out), str(out)[:60]] if isinstance(out, Exception) else None, log])
    return found


@program
def a_node_that_no_gradient_reaches(torch):
    log, x = [], leaf(torch)

    def forward(ctx, x):
        return x * 2

    def backward(ctx, g):
        log.append(g.tolist())
        return g * 2

    class Nothing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return None

    f = make(torch, forward, backward)
    Nothing.apply(f.apply(x)).sum().backward()
    return log, x.grad


# ---- inputs and outputs that are no tensors ----
@program
def without_tensors(torch):
    found = []

    def number(ctx, n):
        return n + 1

    def new(ctx, n):
        return torch.ones(2) * n

    def nothing(ctx):
        return None

    def empty(ctx):
        return ()

    for forward, args in ((number, (2,)), (new, (3,)), (nothing, ()), (empty, ())):
        out = caught(make(torch, forward).apply, *args)
        found.append([out, getattr(out, "requires_grad", None)])
    x = leaf(torch)
    for out in (None, 3, "a", (), (1, None), [1], {"a": x}, (x.detach(), 1)):
        found.append(caught(make(torch, lambda ctx, x, out=out: out).apply, x))
    return [one if not isinstance(one, dict) else sorted(one) for one in found]


@program
def tensors_inside_containers_are_not_seen(torch):
    log, x = [], leaf(torch)

    def forward(ctx, pair, table):
        log.append([ctx.needs_input_grad, pair[0].requires_grad])
        return pair[0] * table["w"]

    out = make(torch, forward).apply((x, x), {"w": x})
    return log, out.requires_grad, out.grad_fn is None


@program
def needs_input_grad_everywhere(torch):
    log = []

    def forward(ctx, a, n, b, c, text=None):
        log.append(["forward", list(ctx.needs_input_grad)])
        return a * n + b + c

    def backward(ctx, g):
        log.append(["backward", list(ctx.needs_input_grad)])
        return g, None, g, g, None

    f = make(torch, forward, backward)
    x, y, k = leaf(torch), leaf(torch), torch.ones(4, dtype=torch.float64)
    f.apply(x, 2, y, k, "t").sum().backward()
    f.apply(x * 1, 2, k, y * 1, None).sum().backward(inputs=(x,))
    torch.autograd.grad(f.apply(x, 2, y, k, "t").sum(), y)
    with torch.no_grad():
        f.apply(x, 2, y, k, "t")
    f.apply(k, 2, k, k, "t")
    with torch.inference_mode():
        f.apply(x, 2, y, k, "t")
    out = f.apply(x, 2, x, k, "t")
    log.append([list(out.grad_fn.needs_input_grad), out.grad_fn.next_functions[1][0] is None])
    x.requires_grad_(False)
    out.sum().backward()
    return log


@program
def needs_input_grad_with_setup_context(torch):
    log = []

    class Split(torch.autograd.Function):
        @staticmethod
        def forward(a, b=3):
            return a * b

        @staticmethod
        def setup_context(ctx, inputs, output):
            log.append([list(ctx.needs_input_grad), len(inputs), inputs[1], output.requires_grad])
            ctx.b = inputs[1]

        @staticmethod
        def backward(ctx, g):
            return g * ctx.b, None

    x = leaf(torch)
    Split.apply(x).sum().backward()
    Split.apply(x, 5).sum().backward()
    return log, x.grad


@program
def gradients_for_inputs_that_need_none(torch):
    def forward(ctx, a, b, n):
        return a * 2 + b

    found = []
    for grads in (
        ("g", "g", None),
        ("g", None, "g"),
        ("g", "wrong", None),
        ("g",),
        ("g", "g", None, None),
        ("g", "g", None, "g"),
    ):

        def backward(ctx, g, grads=grads):
            return tuple(g if one == "g" else torch.ones(7) if one == "wrong" else one for one in grads)

        x = leaf(torch)
        out = make(torch, forward, backward).apply(x, x.detach(), 3)
        found.append([caught(out.sum().backward), x.grad])
    return found


# ---- what ctx keeps ----
@program
def saved_in_every_way(torch):
    found = []

    def inputs(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def outputs(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    def returned(ctx, x):
        ctx.save_for_backward(x)
        return x

    def a_view(ctx, x):
        ctx.save_for_backward(x[1:])
        return x * 2

    def intermediate(ctx, x):
        ctx.save_for_backward(x * 3)
        return x * 2

    def twice(ctx, x):
        ctx.save_for_backward(x)
        ctx.save_for_backward(x * 1, None)
        return x * 2

    def for_forward(ctx, x):
        ctx.save_for_forward(x)
        return x * 2

    def both(ctx, x):
        ctx.save_for_forward(x * 5)
        ctx.save_for_backward(x)
        return x * 2

    def dirty(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        ctx.save_for_backward(x)
        return x

    for forward in (inputs, outputs, returned, a_view, intermediate, twice, for_forward, both, dirty):
        log = []

        def backward(ctx, g, log=log):
            log.append([None if t is None else [t.tolist(), t.requires_grad, t.is_leaf] for t in ctx.saved_tensors])
            return g

        x = leaf(torch)
        out = make(torch, forward, backward).apply(x * 1)
        out.sum().backward()
        found.append([forward.__name__, log])
    return found


@program
def saved_and_then_written(torch):
    found = []

    def inputs(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def outputs(ctx, x):
        y = x * 2
        ctx.save_for_backward(y)
        return y

    def dirty(ctx, x):
        ctx.mark_dirty(x)
        x.mul_(2)
        ctx.save_for_backward(x)
        return x

    def backward(ctx, g):
        return g * ctx.saved_tensors[0]

    for forward in (inputs, outputs, dirty):
        x = leaf(torch)
        given = x * 1
        out = make(torch, forward, backward).apply(given)
        total = out.sum()
        given.mul_(2)
        found.append(caught(total.backward))
        given = x * 1
        out = make(torch, forward, backward).apply(given)
        total = out.sum()
        out.mul_(2)
        found.append(caught(total.backward))
    return found


@program
def a_second_backward_looks_for_saved_tensors(torch):
    found = []

    def saving(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    def keeping_nothing(ctx, x):
        return x * 2

    def looking(ctx, g):
        return g * (2 + len(ctx.saved_tensors))

    def blind(ctx, g):
        return g * 2

    for forward in (saving, keeping_nothing):
        for backward in (looking, blind):
            x = leaf(torch)
            out = make(torch, forward, backward).apply(x * 1).sum()
            out.backward()
            found.append([caught(out.backward), x.grad])
    return found


@program
def backward_of_a_wanted_inner_tensor_is_called(torch):
    log, x = [], leaf(torch)
    y = make(torch, lambda ctx, x: x * 2, lambda ctx, g: log.append(g.tolist()) or g * 2).apply(x)
    z = y * 3
    z.sum().backward(inputs=(y,), retain_graph=True)
    y.backward(torch.ones_like(y), inputs=(y,), retain_graph=True)
    torch.autograd.grad(z.sum(), y)
    return log, y.grad, x.grad


@program
def saved_tensors_of_nodes_that_no_gradient_reaches_are_checked(torch):
    x = leaf(torch)
    y = x.relu()
    z = -y
    y.pow_(2)
    out = make(torch, lambda ctx, x: x * 2, lambda ctx, g: None).apply(z)
    return caught(out.sum().backward), x.grad


@program
def dirty_inputs_lose_their_gradient(torch):
    def write(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    x = leaf(torch)
    y = x * 1
    y.retain_grad()
    y.sum().backward(retain_graph=True)
    make(torch, write).apply(y)
    return y.grad is None, y.retains_grad


@program
def forbidden_views_without_gradients(torch):
    def write(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    found = []
    for mode in (torch.no_grad, torch.inference_mode):
        x = leaf(torch)
        part = (x * 1).split(2)[1]
        with mode():
            out = caught(make(torch, write).apply, part)
            found.append([out, getattr(out, "requires_grad", None)])
            view = x[1:]
            x[0] = 5.0
            found.append(caught(make(torch, lambda ctx, x: x * 2).apply, view))
    return found


@program
def hooks_on_saved_outputs(torch):
    log = []

    def pack(t):
        log.append([t.requires_grad, t.tolist()])
        return t.detach()

    def saving(ctx, x):
        y = x * 2
        z = x * 3
        ctx.mark_non_differentiable(z)
        ctx.save_for_backward(x, y, z)
        return y, z

    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t):
        out = make(torch, saving, lambda ctx, g, h: g * ctx.saved_tensors[1]).apply(x)
    out[0].sum().backward()
    return log, x.grad


@program
def cycles_through_ctx(torch):
    found = []

    class Thing:
        pass

    def try_one(name, forward, backward=None, after=None):
        thing = Thing()
        there = weakref.ref(thing)
        x = leaf(torch)
        run = make(torch, partial(handing, forward, thing), backward)
        out = run.apply(x)
        if after is not None:
            after(out)
        gc.disable()
        try:
            del out, run, thing
            at_once = there() is None
        finally:
            gc.enable()
        gc.collect()
        found.append([name, at_once or None, there() is None])

    def keeps(ctx, x, thing):
        ctx.thing = thing
        return x * 2

    def saves_output(ctx, x, thing):
        ctx.thing = thing
        y = x * 2
        ctx.save_for_backward(y)
        return y

    def saves_input(ctx, x, thing):
        ctx.thing = thing
        ctx.save_for_backward(x)
        return x * 2

    def itself(ctx, x, thing):
        ctx.thing, ctx.me = thing, ctx
        return x * 2

    try_one("attribute", keeps)
    try_one("saved output", saves_output)
    try_one("saved input", saves_input)
    try_one("ctx in ctx", itself)
    try_one("after backward", saves_output, None, lambda out: out.sum().backward())
    return found


@program
def attributes_of_ctx(torch):
    names = (
        "name",
        "metadata",
        "x",
        "saved",
        "code",
        "meta",
        "edges",
        "seq",
        "extra",
        "guard",
        "count",
        "array_names",
        "place",
        "primitive",
    )
    log = []

    def forward(ctx, x):
        for k, name in enumerate(names):
            setattr(ctx, name + "_of_mine", k)
        ctx.anything = [1, 2]
        return x * 2

    def backward(ctx, g):
        log.append([getattr(ctx, name + "_of_mine") for name in names])
        log.append([ctx.anything, caught(lambda: ctx.nothing)])
        del ctx.anything
        log.append(caught(lambda: ctx.anything))
        return g

    x = leaf(torch)
    out = make(torch, forward, backward).apply(x)
    out.sum().backward()
    return log, [isinstance(one, Exception) for one in log[2:]]


@program
def forward_mode_and_saved_for_forward(torch):
    import_forward = torch.autograd.forward_ad
    found = []

    def forward(ctx, x, n):
        ctx.save_for_forward(x)
        ctx.save_for_backward(x)
        ctx.n = n
        return x**n

    def jvp(ctx, t, _):
        (x,) = ctx.saved_tensors
        found.append([t.tolist(), x.tolist(), _])
        return ctx.n * x ** (ctx.n - 1) * t

    f = make(torch, forward, None, jvp=jvp)
    with import_forward.dual_level():
        x = import_forward.make_dual(leaf(torch).detach(), torch.ones(4, dtype=torch.float64))
        out = import_forward.unpack_dual(f.apply(x, 3))
        found.append([out.primal, out.tangent])
    found.append(caught(make(torch, lambda ctx, x: ctx.save_for_forward(3) or x).apply, leaf(torch)))
    return found


@program
def once_differentiable_backward(torch):
    class Once(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        @torch.autograd.function.once_differentiable
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            return g * 2 * x

    x = leaf(torch)
    (g,) = torch.autograd.grad(Once.apply(x).sum(), x, create_graph=True)
    return (
        g,
        g.requires_grad,
        caught(lambda: g.sum().backward()),
        caught(lambda: torch.autograd.grad(Once.apply(x).sum(), x)),
    )


@program
def warnings_of_functions(torch):
    def forward(ctx, x):
        ctx.mark_shared_storage((x, x))
        return x * 2

    def old(ctx, g):
        return ctx.saved_variables

    def saving(ctx, x):
        ctx.save_for_backward(x)
        return x * 2

    x = leaf(torch)
    return (
        warned(make(torch, forward).apply, x),
        warned(lambda: make(torch, saving, old).apply(x).sum().backward()),
        warned(make(torch, saving)),
    )


@program
def errors_in_forward_leave_nothing_behind(torch):
    def forward(ctx, x):
        ctx.save_for_backward(x)
        raise ValueError("no")

    x = leaf(torch)
    first = caught(make(torch, forward).apply, x)
    return first, torch.is_grad_enabled(), x._version, (x * 2).requires_grad


test_as_torch, test_recording_is_torchs = program.tests()
