"""What the graph shows: nodes, edges, names, saved values, GradientEdge, callbacks, as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught, warned

program = Programs("graph")


def leaf(torch: Any, *values: float) -> Any:
    return torch.tensor(values or (1.0, 2.0, 3.0), dtype=torch.float64, requires_grad=True)


def edges(node: Any) -> Any:
    return [[None if one is None else one.name(), nr] for one, nr in node.next_functions]


@program
def next_functions(torch):
    x, c = leaf(torch), torch.ones(3, dtype=torch.float64)
    y = x * c + x
    return y.grad_fn.name(), edges(y.grad_fn), edges(y.grad_fn.next_functions[0][0])


@program
def next_functions_of_several_outputs(torch):
    x = leaf(torch)
    a, _, c = x.unbind(0)
    y = a * c
    return edges(y.grad_fn), y.grad_fn.next_functions[0][0] is c.grad_fn


@program
def identity_of_nodes(torch):
    x = leaf(torch)
    y = x * 2
    z = y + y
    (a, _), (b, _) = z.grad_fn.next_functions
    return a is y.grad_fn, a is b, y.grad_fn is y.grad_fn, (a == b), hash(a) == hash(b)


@program
def accumulate_grad_node(torch):
    x = leaf(torch)
    first = (x * 2).grad_fn.next_functions[0][0]
    second = x.exp().grad_fn.next_functions[0][0]
    return (
        first.name(),
        first is second,
        first.variable is x,
        list(first.next_functions),
        type(first).__name__,
    )


@program
def leaf_has_no_grad_fn(torch):
    x = leaf(torch)
    return (
        x.grad_fn,
        x.is_leaf,
        x.output_nr,
        torch.ones(2).is_leaf,
        (x * 2).is_leaf,
        (torch.ones(2) * 2).is_leaf,
    )


@program
def metadata_is_kept(torch):
    y = leaf(torch) * 2
    y.grad_fn.metadata["key"] = 5
    return y.grad_fn.metadata, (y + 0).grad_fn.next_functions[0][0].metadata


@program
def sequence_numbers_rise(torch):
    x = leaf(torch)
    a = x * 2
    b = x * 3
    c = a + b
    return a.grad_fn._sequence_nr() < b.grad_fn._sequence_nr() < c.grad_fn._sequence_nr()


@program
def sequence_number_of_accumulator_is_largest(torch):
    x = leaf(torch)
    y = x * 2
    return y.grad_fn.next_functions[0][0]._sequence_nr() > (y + 1).grad_fn._sequence_nr()


@program
def node_is_callable(torch):
    x = leaf(torch)
    y = x * x
    return y.grad_fn(torch.ones(3, dtype=torch.float64)), x.grad


@program
def node_of_one_input_is_callable(torch):
    y = leaf(torch).exp()
    return y.grad_fn(torch.ones(3, dtype=torch.float64))


@program
def accumulator_is_callable(torch):
    x = leaf(torch)
    node = (x * 2).grad_fn.next_functions[0][0]
    result = node(torch.ones(3, dtype=torch.float64))
    return result is None or result == (), x.grad


@program
def isinstance_of_node(torch):
    y = leaf(torch) * 2
    return isinstance(y.grad_fn, torch.autograd.graph.Node), issubclass(type(y.grad_fn), torch.autograd.graph.Node)


@program
def repr_of_node(torch):
    return repr((leaf(torch) * 2).grad_fn).split(" object at ")[0]


@program
def names_of_common_nodes(torch):
    x = leaf(torch)
    m = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    made = [x + 1, x - 1, x * 2, x / 2, x**2, -x, x.exp(), x.sum(), x.mean(), x[0], x[1:], x.view(3, 1)]
    made += [
        m @ x,
        m.mm(m.t()),
        m.t(),
        m.sum(0),
        m.max(1)[0],
        x.max(),
        x.clone(),
        torch.cat([x, x]),
        m.unbind(0)[0],
    ]
    made += [
        x.relu(),
        x.sigmoid(),
        x.softmax(0),
        x.log_softmax(0),
        x.where(x > 1, 0),
        x.expand(2, 3),
        2 / x,
        2 - x,
        2**x,
    ]
    made += [
        x.clamp(0, 1),
        x.abs(),
        x.sqrt(),
        x.reshape(3, 1),
        m.flatten(),
        x.to(torch.float32),
        x.cumsum(0),
        x[[0, 1]],
    ]
    return [y.grad_fn.name() for y in made]


@program
def names_after_in_place(torch):
    x = leaf(torch)
    y = x * 2
    names = [y.grad_fn.name()]
    y.add_(1)
    names.append(y.grad_fn.name())
    v = y[:2]
    names.append(v.grad_fn.name())
    v.mul_(2)
    names += [y.grad_fn.name(), v.grad_fn.name(), edges(y.grad_fn), edges(v.grad_fn)]
    y.zero_()
    return [*names, y.grad_fn.name(), v.grad_fn.name()]


@program
def saved_values(torch):
    x, w = leaf(torch), leaf(torch, 4.0, 5.0, 6.0)
    y, e = x * w, x.exp()
    return (
        y.grad_fn._saved_self is x,
        y.grad_fn._saved_other is w,
        e.grad_fn._saved_result,
        (x**3).grad_fn._saved_exponent,
    )


@program
def saved_only_where_needed(torch):
    x, c = leaf(torch), torch.ones(3, dtype=torch.float64)
    y = x * c
    return y.grad_fn._saved_self, y.grad_fn._saved_other


@program
def saved_output_stands_in_the_graph(torch):
    y = leaf(torch).exp()
    saved = y.grad_fn._saved_result
    return saved.grad_fn is y.grad_fn, saved is y, saved.requires_grad


@program
def saved_static_values(torch):
    x = torch.ones(2, 3, dtype=torch.float64, requires_grad=True)
    return (
        x.sum(1).grad_fn._saved_dim,
        x.sum(1, keepdim=True).grad_fn._saved_keepdim,
        x.sum().grad_fn._saved_self_sym_sizes,
    )


# ---- GradientEdge ----
@program
def gradient_edge_as_input(torch):
    x = leaf(torch)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    return torch.autograd.grad((y * y).sum(), edge), edge.node is y.grad_fn, edge.output_nr


@program
def gradient_edge_of_leaf(torch):
    x = leaf(torch)
    edge = torch.autograd.graph.get_gradient_edge(x)
    return torch.autograd.grad((x * x).sum(), edge), edge.node.name()


@program
def gradient_edge_as_output(torch):
    x = leaf(torch)
    y = x * 2
    edge = torch.autograd.graph.get_gradient_edge(y)
    del y
    return torch.autograd.grad(edge, x, grad_outputs=torch.ones(3, dtype=torch.float64))


@program
def gradient_edge_in_backward(torch):
    x = leaf(torch)
    y = (x * x).sum()
    edge = torch.autograd.graph.get_gradient_edge(y)
    torch.autograd.backward(edge, torch.ones((), dtype=torch.float64))
    return x.grad


@program
def gradient_edge_of_one_output(torch):
    x = leaf(torch)
    a, b, _ = x.unbind(0)
    edge = torch.autograd.graph.get_gradient_edge(b)
    return torch.autograd.grad(a * b, edge), edge.output_nr


# ---- what backward does ----
@program
def inputs_of_backward(torch):
    x, w = leaf(torch), leaf(torch)
    (x * w).sum().backward(inputs=[x])
    return x.grad, w.grad


@program
def non_leaf_input_of_backward(torch):
    x = leaf(torch)
    y = x * 2
    (y * y).sum().backward(inputs=[y])
    return y.grad, x.grad


@program
def backward_accumulates(torch):
    x = leaf(torch)
    (x * x).sum().backward()
    held = x.grad
    (x * x).sum().backward()
    return x.grad, held is x.grad


@program
def backward_of_several(torch):
    x = leaf(torch)
    y = x * x
    torch.autograd.backward([y, y.sum()], [torch.ones(3, dtype=torch.float64), None])
    return x.grad


@program
def backward_of_a_leaf(torch):
    x = leaf(torch, 2.0)
    x.backward()
    return x.grad


@program
def grad_of_itself(torch):
    x = leaf(torch)
    y = x * 2
    ones = torch.ones(3, dtype=torch.float64)
    return torch.autograd.grad(y, y, ones), torch.autograd.grad(x, x, ones)


@program
def grad_unused_allowed(torch):
    x, z = leaf(torch), leaf(torch)
    y = (x * 2).sum()
    first = torch.autograd.grad(y, [x, z], allow_unused=True, retain_graph=True)
    return first, torch.autograd.grad(y, [x, z], materialize_grads=True)


@program
def gradient_of_other_dtype_is_cast(torch):
    x = leaf(torch)
    (x * 2).backward(torch.ones(3))
    return x.grad


@program
def grad_of_non_leaf_warns(torch):
    y = leaf(torch) * 2
    return warned(lambda: y.grad)


@program
def retain_graph_keeps_saved_values(torch):
    x = leaf(torch)
    y = x.exp()
    z = y.sum()
    z.backward(retain_graph=True)
    kept = y.grad_fn._saved_result
    z.backward()
    return kept, x.grad, caught(lambda: y.grad_fn._saved_result)


@program
def nodes_that_save_nothing_run_twice(torch):
    x = leaf(torch)
    y = (x + 1).sum()
    y.backward()
    y.backward()
    return x.grad


@program
def partly_freed_graph(torch):
    x = leaf(torch)
    h = x.exp()
    h.sum().backward()
    return caught((h * 2).sum().backward), x.grad


@program
def order_of_execution(torch):
    log, x = [], leaf(torch)

    def named(tensor, name):
        tensor.register_hook(lambda g: log.append(name))
        return tensor

    a = named(x * 2, "a")
    b = named(x * 3, "b")
    c = named(a.exp(), "c")
    d = named(b + c, "d")
    e = named(a * d, "e")
    e.sum().backward()
    return log


@program
def queued_callbacks(torch):
    log, x = [], leaf(torch)
    queue = torch.autograd.Variable._execution_engine.queue_callback
    y = x * 2
    y.register_hook(lambda g: (log.append("hook"), queue(lambda: log.append("end")))[0])
    x.register_hook(lambda g: log.append("leaf"))
    y.sum().backward()
    return log


@program
def queue_callback_outside(torch):
    return caught(torch.autograd.Variable._execution_engine.queue_callback, lambda: None)


@program
def reentrant_backward(torch):
    x, w = leaf(torch), leaf(torch)

    def hook(g):
        with torch.enable_grad():
            (w * 2).sum().backward()

    y = x * 2
    y.register_hook(hook)
    y.sum().backward()
    return x.grad, w.grad


@program
def error_leaves_the_engine_usable(torch):
    x = leaf(torch)
    y = x * x

    def fail(g):
        raise ValueError("once")

    handle = y.register_hook(fail)
    z = y.sum()
    error = caught(z.backward, retain_graph=True)
    handle.remove()
    z.backward()
    return error, x.grad, torch.is_grad_enabled()


@program
def increment_version(torch):
    x = leaf(torch) * 1
    y = (x * x).sum()
    torch.autograd.graph.increment_version(x)
    return x._version, caught(y.backward)


@program
def detach_shares_the_version(torch):
    x = leaf(torch) * 1
    d = x.detach()
    d.add_(1)
    return x._version, d._version, d.requires_grad, x


@program
def data_does_not_share_the_version(torch):
    x = leaf(torch) * 1
    x.data.add_(1)
    return x._version, x


@program
def detach_in_place(torch):
    y = leaf(torch) * 2
    y.detach_()
    return y.requires_grad, y.grad_fn, y.is_leaf


@program
def requires_grad_after_detach(torch):
    x = leaf(torch)
    y = (x * 2).detach().requires_grad_()
    (y * y).sum().backward()
    return y.grad, x.grad


@program
def batched_gradients(torch):
    x = leaf(torch)
    return torch.autograd.grad(x * x, x, torch.eye(3, dtype=torch.float64), is_grads_batched=True)


@program
def complex_gradient_convention(torch):
    z = torch.tensor([1 + 2j, 3 - 1j], dtype=torch.complex128, requires_grad=True)
    (z * z.conj()).real.sum().backward()
    return z.grad


@program
def grad_shares_no_memory(torch):
    x, w = leaf(torch), leaf(torch)
    (x + w).sum().backward()
    x.grad.mul_(10)
    return w.grad


def test_create_graph_warns():
    """torch warns once in a process, so this is not recorded."""
    x = leaf(retrograd)
    with pytest.warns(UserWarning, match="will create a reference cycle between the parameter and its gradient"):
        (x * x).sum().backward(create_graph=True)
    x.grad = None


test_as_torch, test_recording_is_torchs = program.tests()
