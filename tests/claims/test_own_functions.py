"""Functions with a backward of their own: what they may do and what gradcheck makes of them."""

from __future__ import annotations

import pytest


def silu(torch):
    class SiLU(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            s = torch.sigmoid(x)
            ctx.save_for_backward(x, s)
            return x * s

        @staticmethod
        def backward(ctx, g):
            x, s = ctx.saved_tensors
            return g * (s * (1 + x * (1 - s)))

    return SiLU


def test_own_backward_is_the_library_s(torch):
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    (own,) = torch.autograd.grad(silu(torch).apply(x).sum(), x)
    (wanted,) = torch.autograd.grad(torch.nn.functional.silu(x).sum(), x)
    assert torch.allclose(own, wanted)
    assert silu(torch).apply(x).grad_fn.name() == "SiLUBackward"


def test_gradcheck_accepts_it(torch):
    x = torch.randn(5, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(silu(torch).apply, (x,), eps=1e-6)
    assert torch.autograd.gradcheck(silu(torch).apply, (x,), eps=1e-6, atol=1e-4)


def test_gradcheck_refuses_a_wrong_backward(torch):
    class Wrong(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            return x**2

        @staticmethod
        def backward(ctx, g):
            return g * ctx.saved_tensors[0]  # half of it

    x = torch.randn(3, dtype=torch.float64, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^Jacobian mismatch for output 0 with respect to input 0,\nnumerical:"):
        torch.autograd.gradcheck(Wrong.apply, (x,))
    assert torch.autograd.gradcheck(Wrong.apply, (x,), raise_exception=False) is False


def test_gradcheck_wants_double_precision(torch):
    x = torch.randn(3, requires_grad=True)
    with (
        pytest.warns(UserWarning, match=r"^Input #0 requires gradient and is not a double precision floating point"),
        pytest.raises(RuntimeError, match=r"^Jacobian mismatch"),
    ):
        torch.autograd.gradcheck(lambda x: x.exp() * 100, (x,))


def test_gradcheck_of_plain_functions(torch):
    x = torch.randn(3, 4, dtype=torch.double, requires_grad=True)
    assert torch.autograd.gradcheck(lambda x: x**2, x, eps=1e-6, atol=1e-4)
    assert torch.autograd.gradgradcheck(lambda x: (x**3).sum(), x)


def test_a_gradient_never_too_small(torch):
    class Clamped(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x, least=0.01):
            out = torch.sigmoid(x)
            ctx.save_for_backward(out)
            ctx.least = least
            return out

        @staticmethod
        def backward(ctx, g):
            (out,) = ctx.saved_tensors
            return g * torch.clamp(out * (1 - out), min=ctx.least), None

    x = torch.tensor([-5.0, -2.0, 0.0, 2.0, 5.0], requires_grad=True)
    Clamped.apply(x, 0.01).sum().backward()
    assert x.grad.numpy().round(4).tolist() == pytest.approx([0.01, 0.105, 0.25, 0.105, 0.01])
    plain = x.detach().clone().requires_grad_(True)
    torch.sigmoid(plain).sum().backward()
    assert plain.grad.numpy().round(4).tolist() == pytest.approx([0.0066, 0.105, 0.25, 0.105, 0.0066])
    x.grad = None
    Clamped.apply(x).sum().backward()
    assert x.grad.min().item() == pytest.approx(0.01)


def test_rounding_whose_gradient_passes_through(torch):
    class Round(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.round(x)

        @staticmethod
        def backward(ctx, g):
            return g

    x = torch.tensor([0.3, 0.7, 1.2, 1.8], requires_grad=True)
    out = Round.apply(x)
    assert out.tolist() == [0.0, 1.0, 1.0, 2.0]
    out.sum().backward()
    assert x.grad.tolist() == [1.0] * 4
    (plain,) = torch.autograd.grad(torch.round(x).sum(), x)
    assert plain.tolist() == [0.0] * 4


def test_a_backward_that_does_not_overflow(torch):
    class LogSumExp(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            top = x.max(dim=-1, keepdim=True).values
            out = top + torch.log(torch.exp(x - top).sum(dim=-1, keepdim=True))
            ctx.save_for_backward(x, out)
            return out.squeeze(-1)

        @staticmethod
        def backward(ctx, g):
            x, out = ctx.saved_tensors
            return g.unsqueeze(-1) * torch.exp(x - out)

    x = torch.tensor([[1000.0, 1001.0, 1002.0]], requires_grad=True)
    naive = torch.log(torch.exp(x).sum(dim=-1))
    assert naive.isinf().all()
    naive.sum().backward()
    assert x.grad.isnan().any()
    x.grad = None
    stable = LogSumExp.apply(x)
    stable.sum().backward()
    assert stable.item() == pytest.approx(1002.4076, abs=1e-3)
    assert torch.allclose(x.grad, x.detach().softmax(-1), atol=1e-4)
    assert torch.allclose(stable, torch.logsumexp(x, -1))


def test_a_backward_that_computes_again_what_it_did_not_keep(torch):
    runs = []

    class Recomputing(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            runs.append("forward")
            return torch.exp(torch.sin(x))

        @staticmethod
        def backward(ctx, g):
            (x,) = ctx.saved_tensors
            runs.append("again")
            return g * torch.exp(torch.sin(x)) * torch.cos(x)

    x = torch.randn(4, dtype=torch.float64, requires_grad=True)
    y = Recomputing.apply(x)
    assert [one.shape for one in y.grad_fn.saved_tensors] == [x.shape]
    y.sum().backward()
    assert runs == ["forward", "again"]
    assert torch.allclose(x.grad, (torch.exp(torch.sin(x)) * torch.cos(x)).detach())


def test_saved_tensors_are_freed_and_attributes_are_not(torch):
    class Keeps(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.save_for_backward(x)
            ctx.attribute = x.detach()
            return x * 2

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = torch.ones(2, requires_grad=True)
    y = Keeps.apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        _ = y.grad_fn.saved_tensors
    assert y.grad_fn.attribute.tolist() == [1.0, 1.0]


def matrix_product(torch):
    class Product(torch.autograd.Function):
        @staticmethod
        def forward(ctx, input, weight):
            ctx.save_for_backward(input, weight)
            return input @ weight

        @staticmethod
        def backward(ctx, g):
            input, weight = ctx.saved_tensors
            return g @ weight.t(), input.t() @ g

    return Product


def test_two_inputs_two_gradients(torch):
    a = torch.randn(2, 3, dtype=torch.float64, requires_grad=True)
    b = torch.randn(3, 4, dtype=torch.float64, requires_grad=True)
    assert torch.autograd.gradcheck(matrix_product(torch).apply, (a, b))


@pytest.mark.parametrize("count", [0, 2, 3])
def test_as_many_gradients_as_inputs(torch, count):
    class Counting(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return x * 1

        @staticmethod
        def backward(ctx, g):
            return (g,) * count

    x = torch.ones(2, requires_grad=True)
    words = rf"^function CountingBackward returned an incorrect number of gradients \(expected 1, got {count}\)"
    with pytest.raises(RuntimeError, match=words):
        Counting.apply(x).sum().backward()


def test_outputs_that_are_not_differentiable(torch):
    class Sorted(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            values, order = x.sort()
            ctx.mark_non_differentiable(order)
            ctx.save_for_backward(order)
            return values, order

        @staticmethod
        def backward(ctx, g, unused):
            (order,) = ctx.saved_tensors
            return torch.zeros_like(g).index_add(0, order, g)

    x = torch.tensor([3.0, 1.0, 2.0], requires_grad=True)
    values, order = Sorted.apply(x)
    assert values.requires_grad
    assert not order.requires_grad
    (values * torch.tensor([1.0, 2.0, 3.0])).sum().backward()
    assert x.grad.tolist() == [3.0, 1.0, 2.0]


@pytest.mark.parametrize("materialize", [True, False])
def test_missing_gradients_are_zeros_unless_refused(torch, materialize):
    seen = []

    class Two(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            ctx.set_materialize_grads(materialize)
            return x * 2, x * 3

        @staticmethod
        def backward(ctx, a, b):
            seen.append(b)
            return 2 * a

    x = torch.ones(2, requires_grad=True)
    Two.apply(x)[0].sum().backward()
    assert (seen[0].tolist() if materialize else seen[0]) == ([0.0, 0.0] if materialize else None)


def test_apply_records_and_forward_alone_does_not(torch):
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx, x):
            return torch.from_numpy(x.detach().numpy() * 2)  # code that knows nothing of graphs

        @staticmethod
        def backward(ctx, g):
            return 2 * g

    x = torch.ones(2, requires_grad=True)
    assert Twice.apply(x).grad_fn.name() == "TwiceBackward"
    assert Twice.forward(None, x).grad_fn is None
    Twice.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
