"""Gradients of places in the graph: their seeds are those of the tensors they were taken from."""

from __future__ import annotations

from tests.autograd.recording import Programs, caught

program = Programs("gradient_edges")


@program
def without_a_gradient(torch):
    edge, grad = torch.autograd.graph.get_gradient_edge, torch.autograd.grad
    x = torch.ones(3, requires_grad=True)
    one = torch.ones(1, requires_grad=True, dtype=torch.float64)
    number = torch.ones((), requires_grad=True, dtype=torch.complex64)
    return (
        caught(grad, edge(x * 3), x),
        caught(grad, edge(x), x),
        caught(grad, edge((x * 3).sum()), x),
        caught(grad, edge(one * 2), one),
        caught(grad, edge(one), one),
        caught(grad, edge(number * 2), number),
        caught(grad, edge(x.max(0).values), x),
        caught(grad, edge(x.split([1, 2])[1]), x),
        caught(torch.autograd.backward, edge(x * 3)),
    )


@program
def made_of_a_node(torch):
    edge, grad = torch.autograd.graph.GradientEdge, torch.autograd.grad
    x = torch.ones(3, requires_grad=True)
    one = torch.ones(1, requires_grad=True, dtype=torch.float64)
    return (
        caught(grad, edge((x * 3).grad_fn, 0), x),
        caught(grad, edge(x.exp().grad_fn, 0), x),
        caught(grad, edge((one * 3).grad_fn, 0), one),
        caught(grad, edge((x * 3).sum().grad_fn, 0), x),
        caught(grad, edge((x * 3).grad_fn, 0), x, torch.ones(2)),
    )


@program
def with_a_gradient(torch):
    edge = torch.autograd.graph.get_gradient_edge

    def grad(seed, **options):
        x = torch.ones(3, requires_grad=True)
        return caught(torch.autograd.grad, edge(x * 3), x, seed, **options)

    return (
        grad(torch.ones(3)),
        grad(torch.ones(3).double()),
        grad(torch.ones(2)),
        grad(torch.ones(3).cfloat()),
        grad(torch.ones(2, 3), is_grads_batched=True),
        grad(torch.ones(2, 2), is_grads_batched=True),
    )


@program
def of_a_function(torch):
    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 2, x.sum()

        @staticmethod
        def backward(ctx, a, b):
            return a * 2 + b

    x = torch.ones(3, requires_grad=True)
    many, number = Two.apply(x)
    edges = [torch.autograd.graph.GradientEdge(many.grad_fn, k) for k in (0, 1)]
    return [caught(torch.autograd.grad, one, x, retain_graph=True) for one in edges], tuple(edges[1])[1], number


test_as_torch, test_recording_is_torchs = program.tests()
