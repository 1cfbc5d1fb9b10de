"""retain_grad, and hooks on what the graph saves, as in torch."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs, caught

program = Programs("saved_hooks")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


# ---- retain_grad ----
@program
def retain_grad_accumulates(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    z = (y * y).sum()
    z.backward(retain_graph=True)
    z.backward()
    return y.grad, y.retains_grad, x.retains_grad


@program
def retain_grad_twice_is_once(torch):
    y = leaf(torch) * 2
    y.retain_grad()
    y.retain_grad()
    y.sum().backward()
    return y.grad


@program
def retain_grad_follows_in_place(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y.mul_(10)
    y.sum().backward()
    return y.grad, x.grad


@program
def retain_grad_of_base_follows_write_into_view(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    y[:2].mul_(10)
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def retain_grad_of_view_after_write_into_base(torch):
    x = leaf(torch)
    y = x * 2
    v = y[:2]
    v.retain_grad()
    y.mul_(10)
    (v * v).sum().backward()
    return v.grad, x.grad


@program
def retain_grad_of_leaf_is_nothing(torch):
    x = leaf(torch)
    x.retain_grad()
    x.sum().backward()
    return x.grad, x.retains_grad


@program
def retain_grad_of_one_output(torch):
    x = leaf(torch)
    a, b, _ = x.unbind(0)
    a.retain_grad()
    (a * b).backward()
    return a.grad, x.grad


@program
def retain_grad_with_grad_to_other_inputs(torch):
    x = leaf(torch)
    y = x * 2
    y.retain_grad()
    torch.autograd.grad((y * y).sum(), x)
    return y.grad


@program
def retained_grad_with_create_graph(torch):
    x = leaf(torch)
    y = x * x
    y.retain_grad()
    (y * y).sum().backward(create_graph=True)
    return y.grad, y.grad.requires_grad, torch.autograd.grad(y.grad.sum(), x)


# ---- saved-tensor hooks ----
def _logged(torch, log, name=""):
    def pack(t):
        log.append([name + "pack", t.tolist()])
        return t.detach().clone()

    def unpack(t):
        log.append([name + "unpack", t.tolist()])
        return t

    return torch.autograd.graph.saved_tensors_hooks(pack, unpack)


@program
def pack_and_unpack(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = (x * x.exp()).sum()
    y.backward()
    return log, x.grad


@program
def unpack_may_change_the_value(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.tolist(), lambda p: torch.tensor(p, dtype=x.dtype) * 10):
        y = (x * x).sum()
    y.backward()
    return x.grad


@program
def innermost_pair_of_hooks_wins(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log, "outer "):
        with _logged(torch, log, "inner "):
            y = x.exp()
        z = y.sin().sum()
    z.backward()
    return log, x.grad


@program
def pack_runs_without_hooks_and_grad(torch):
    log, x = [], leaf(torch)

    def pack(t):
        log.append([torch.is_grad_enabled(), t.requires_grad, t.is_leaf])
        return t * 2

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t / 2):
        y = (x * x).sum()
    y.backward()
    return log, x.grad


@program
def unpack_every_time(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = x.exp().sum()
    y.backward(retain_graph=True)
    y.backward()
    return [name for name, _ in log], x.grad


@program
def hooks_see_saved_property(torch):
    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = x.exp()
    return y.grad_fn._saved_result, log


@program
def hooks_and_double_backward(torch):
    x = leaf(torch)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        y = (x * x * x).sum()
    (g,) = torch.autograd.grad(y, x, create_graph=True)
    return torch.autograd.grad(g.sum(), x)


@program
def hooks_of_custom_function(torch):
    class Cube(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**3

        @staticmethod
        def backward(ctx, g):
            return g * 3 * ctx.saved_tensors[0] ** 2

    log, x = [], leaf(torch)
    with _logged(torch, log):
        y = Cube.apply(x).sum()
    y.backward()
    return log, x.grad


@program
def save_on_cpu_gives_the_same(torch):
    x = leaf(torch)
    with torch.autograd.graph.save_on_cpu():
        y = (x * x.exp()).sum()
    y.backward()
    return x.grad


@program
def raw_saved_register_hooks(torch):
    x = leaf(torch)
    y = x.exp()
    y.grad_fn._raw_saved_result.register_hooks(lambda t: t * 2, lambda t: t * 5)
    y.sum().backward()
    return x.grad


@program
def disabled_hooks_restore(torch):
    graph = torch.autograd.graph
    with graph.disable_saved_tensors_hooks("no"):
        error = caught(graph.saved_tensors_hooks(lambda t: t, lambda t: t).__enter__)
    with graph.saved_tensors_hooks(lambda t: t, lambda t: t):
        pass
    return error


test_as_torch, test_recording_is_torchs = program.tests()
