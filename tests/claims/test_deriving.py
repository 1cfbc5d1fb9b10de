"""Three ways to a derivative, two directions of the chain rule, and derivatives of derivatives."""

from __future__ import annotations

import math

import pytest


def test_automatic_differentiation_is_exact_and_finite_differences_are_not(torch):
    at = 1.5
    by_hand = 3 * at**2 * math.sin(at) + at**3 * math.cos(at)
    x = torch.tensor(at, dtype=torch.float64, requires_grad=True)
    (x**3 * torch.sin(x)).backward()
    assert abs(x.grad.item() - by_hand) < 1e-14

    def slope(h):
        f = lambda x: x**3 * math.sin(x)  # noqa: E731
        return (f(at + h) - f(at - h)) / (2 * h)

    errors = {h: abs(slope(h) - by_hand) for h in (1e-1, 1e-2, 1e-5, 1e-13)}
    assert 50 < errors[1e-1] / errors[1e-2] < 200  # falls with the square of the step
    assert errors[1e-13] > errors[1e-5] > 1e-14  # until subtracting neighbours loses the digits


class DualNumber:
    """a + b e with e * e = 0."""

    def __init__(self, value, slope):
        self.value, self.slope = value, slope

    def __add__(self, other):
        return DualNumber(self.value + other.value, self.slope + other.slope)

    def __mul__(self, other):
        return DualNumber(self.value * other.value, self.value * other.slope + self.slope * other.value)

    def sin(self):
        return DualNumber(math.sin(self.value), self.slope * math.cos(self.value))

    def exp(self):
        return DualNumber(math.exp(self.value), self.slope * math.exp(self.value))


def test_dual_numbers_are_what_forward_mode_carries(torch):
    f = lambda x: x * x * x * x.sin() + x.exp()  # noqa: E731
    ours = f(DualNumber(1.5, 1.0))
    forward_ad = torch.autograd.forward_ad
    x = torch.tensor(1.5, dtype=torch.float64)
    with forward_ad.dual_level():
        out = forward_ad.unpack_dual(f(forward_ad.make_dual(x, torch.ones_like(x))))
    assert out.primal.item() == pytest.approx(ours.value, abs=1e-12)
    assert out.tangent.item() == pytest.approx(ours.slope, abs=1e-12)


class Value:
    """A number that remembers how it was made: reverse mode in thirty lines."""

    def __init__(self, data, parents=()):
        self.data, self.grad, self.parents = data, 0.0, parents  # parents with their local derivatives

    def __add__(self, other):
        return Value(self.data + other.data, ((self, 1.0), (other, 1.0)))

    def __mul__(self, other):
        return Value(self.data * other.data, ((self, other.data), (other, self.data)))

    def __pow__(self, n):
        return Value(self.data**n, ((self, n * self.data ** (n - 1)),))

    def relu(self):
        return Value(max(0.0, self.data), ((self, float(self.data > 0)),))

    def backward(self):
        order, seen = [], set()

        def visit(value):
            if id(value) not in seen:
                seen.add(id(value))
                for parent, _ in value.parents:
                    visit(parent)
                order.append(value)

        visit(self)
        self.grad = 1.0
        for value in reversed(order):
            for parent, slope in value.parents:
                parent.grad += value.grad * slope


@pytest.mark.parametrize(
    ("expression", "wanted"),
    [
        (lambda w, x, b: (w * x + b) ** 2, [42.0, 28.0, 14.0]),
        (lambda w, x, b: (w * x + b * b).relu() * x + w * w, None),
        (lambda w, x, b: (w * w * x + w * b) * (w * x) + b**3, None),
    ],
)
def test_a_small_engine_of_ones_own_agrees(torch, expression, wanted):
    own = [Value(v) for v in (2.0, 3.0, 1.0)]
    expression(*own).backward()
    tensors = [torch.tensor(v, requires_grad=True) for v in (2.0, 3.0, 1.0)]
    expression(*tensors).backward()
    found = [t.grad.item() for t in tensors]
    assert found == pytest.approx([v.grad for v in own])
    if wanted is not None:
        assert found == wanted


def test_reverse_mode_runs_a_scalar_function_once_for_all_its_inputs(torch):
    runs = []

    def f(x):
        runs.append(1)
        return (x.sin() * x).sum()

    x = torch.arange(1.0, 8.0)
    _, pull = torch.func.vjp(f, x)
    (gradient,) = pull(torch.tensor(1.0))
    assert len(runs) == 1
    runs.clear()
    columns = [torch.func.jvp(f, (x,), (direction,))[1] for direction in torch.eye(7)]
    assert len(runs) == 7
    assert torch.allclose(torch.stack(columns), gradient)


def test_forward_mode_runs_a_function_of_one_input_once_for_all_its_outputs(torch):
    runs = []

    def f(t):
        runs.append(1)
        return torch.stack([t.sin(), t.cos(), t * t])

    t = torch.tensor(0.5)
    _, tangent = torch.func.jvp(f, (t,), (torch.tensor(1.0),))
    assert len(runs) == 1
    _, pull = torch.func.vjp(f, t)
    rows = [pull(row)[0] for row in torch.eye(3)]
    assert len(rows) == 3
    assert torch.allclose(torch.stack(rows), tangent)


def test_products_with_the_jacobian_from_both_sides(torch):
    f = lambda x, y: x.dot(y).sin()  # noqa: E731
    x, y = torch.arange(1.0, 5.0), torch.arange(5.0, 9.0)
    functional = torch.autograd.functional
    value, rows = functional.vjp(f, (x, y))
    assert value.item() == pytest.approx(0.7739, abs=5e-5)
    assert torch.allclose(rows[0], torch.tensor([3.1666, 3.7999, 4.4332, 5.0666]), atol=5e-5)
    assert torch.allclose(rows[1], torch.tensor([0.6333, 1.2666, 1.9000, 2.5333]), atol=5e-5)
    u = torch.full_like(x, 0.1), torch.full_like(y, 0.2)
    value, change = functional.jvp(f, (x, y), u)
    assert change.item() == pytest.approx(2.9133, abs=5e-5)
    assert change.item() == pytest.approx((rows[0] @ u[0] + rows[1] @ u[1]).item(), rel=1e-5)


def test_backward_is_the_product_with_ones(torch):
    f = lambda x: x.sin() * x.sum()  # noqa: E731
    x = torch.arange(1.0, 5.0, requires_grad=True)
    f(x).sum().backward()
    jacobian = torch.autograd.functional.jacobian(f, x.detach())
    assert torch.allclose(x.grad, torch.ones(4) @ jacobian)


def test_jacobian_and_hessian_of_squares(torch):
    functional = torch.autograd.functional
    square = lambda x: x**2  # noqa: E731
    x = torch.tensor([1.0, 2.0, 3.0])
    assert torch.equal(functional.jacobian(square, x), torch.diag(torch.tensor([2.0, 4.0, 6.0])))
    with pytest.raises(
        RuntimeError, match=r"^The Tensor returned by the function given to hessian should contain a single element"
    ):
        functional.hessian(square, x)  # a Hessian belongs to a scalar function
    assert torch.equal(functional.hessian(lambda x: square(x).sum(), x), torch.diag(torch.tensor([2.0, 2.0, 2.0])))


def test_second_derivatives_of_cubes(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**3
    (first,) = torch.autograd.grad(y, x, torch.ones_like(y), create_graph=True)
    assert first.tolist() == [3.0, 12.0, 27.0]
    assert first.grad_fn is not None
    (second,) = torch.autograd.grad(first, x, torch.ones_like(first))
    assert second.tolist() == [6.0, 12.0, 18.0]
    assert second.grad_fn is None


def test_without_create_graph_a_gradient_is_a_plain_number(torch):
    x = torch.tensor(2.0, requires_grad=True)
    (first,) = torch.autograd.grad(x**3, x)
    assert first.grad_fn is None
    with pytest.raises(RuntimeError, match=r"^element 0 of tensors does not require grad"):
        torch.autograd.grad(first, x)


def test_successive_second_derivatives_need_the_graph_kept(torch):
    x, y = torch.tensor(2.0, requires_grad=True), torch.tensor(4.0, requires_grad=True)
    dx, dy = torch.autograd.grad(torch.sin(x * y), (x, y), create_graph=True)
    (xx,) = torch.autograd.grad(dx, x, retain_graph=True)
    (yy,) = torch.autograd.grad(dy, y)
    assert xx.item() == pytest.approx(-15.8297, abs=5e-5)
    assert yy.item() == pytest.approx(-3.9574, abs=5e-5)
    dx, dy = torch.autograd.grad(torch.sin(x * y), (x, y), create_graph=True)
    torch.autograd.grad(dx, x)
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        torch.autograd.grad(dy, y)


def test_grad_returns_and_does_not_store(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    result = torch.autograd.grad((x**2).sum(), x)
    assert isinstance(result, tuple)
    assert result[0].tolist() == [2.0, 4.0, 6.0]
    assert x.grad is None


def test_unused_inputs_of_grad(torch):
    x, unused = torch.ones(2, requires_grad=True), torch.ones(3, requires_grad=True)
    grad = torch.autograd.grad
    with pytest.raises(RuntimeError, match="appears to not have been used in the graph"):
        grad(x.sum(), (x, unused))
    assert grad(x.sum(), (x, unused), allow_unused=True)[1] is None
    assert grad(x.sum(), (x, unused), materialize_grads=True)[1].tolist() == [0.0] * 3


def test_a_batch_of_vectors_makes_the_jacobian_at_once(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    y = x**2
    (rows,) = torch.autograd.grad(y, x, torch.eye(3), is_grads_batched=True)
    assert torch.equal(rows, torch.diag(torch.tensor([2.0, 4.0, 6.0])))


def test_backward_into_chosen_inputs(torch):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2, requires_grad=True)
    torch.autograd.backward((a * b).sum(), inputs=[a])
    assert a.grad.tolist() == [1.0, 1.0]
    assert b.grad is None


def test_retain_graph_follows_create_graph(torch):
    x = torch.tensor(2.0, requires_grad=True)
    y = x**3
    torch.autograd.grad(y, x, create_graph=True)
    torch.autograd.grad(y, x)  # was kept
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        torch.autograd.grad(y, x)


def test_two_losses_on_one_encoder(torch):
    nn = torch.nn
    encoder, heads, x = nn.Linear(4, 4), [nn.Linear(4, 1), nn.Linear(4, 1)], torch.randn(5, 4)
    shared = encoder(x).tanh()
    losses = [head(shared).mean() for head in heads]
    losses[0].backward(retain_graph=True)
    losses[1].backward()
    kept = encoder.weight.grad.clone()
    encoder.zero_grad()
    shared = encoder(x).tanh()
    sum(head(shared).mean() for head in heads).backward()
    assert torch.allclose(encoder.weight.grad, kept)
    shared = encoder(x).tanh()
    losses = [head(shared).mean() for head in heads]
    losses[0].backward()
    with pytest.raises(RuntimeError, match=r"^Trying to backward through the graph a second time"):
        losses[1].backward()
