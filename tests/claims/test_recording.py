"""The graph: recorded as the program runs, walked backward once, then given back."""

from __future__ import annotations

import gc
import weakref

import pytest


def test_a_tensor_prints_that_it_is_recorded(torch):
    x = torch.tensor(3.0, requires_grad=True)
    assert repr(x) == "tensor(3., requires_grad=True)"
    assert repr(x**2 + 1) == "tensor(10., grad_fn=<AddBackward0>)"


def test_nothing_is_recorded_by_default(torch):
    x = torch.tensor([1.0, 2.0])
    assert not x.requires_grad
    assert x.is_leaf
    assert (x * x).grad_fn is None
    assert (x * x).is_leaf


def test_one_input_that_requires_grad_is_enough(torch):
    a, b = torch.ones(2, requires_grad=True), torch.ones(2)
    c = a * b
    assert c.requires_grad
    assert not c.is_leaf
    assert [node is None for node, _ in c.grad_fn.next_functions] == [False, True]


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "complex64", "complex128"])
def test_dtypes_that_can_require_grad(torch, dtype):
    x = torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)
    (x * x).sum().abs().backward()
    assert x.grad.dtype == x.dtype


@pytest.mark.parametrize("dtype", ["int32", "int64", "bool", "uint8"])
def test_dtypes_that_cannot(torch, dtype):
    with pytest.raises(
        RuntimeError, match=r"^[Oo]nly Tensors of floating point and complex dtype can require gradients"
    ):
        torch.ones(2, dtype=getattr(torch, dtype), requires_grad=True)


def test_an_integer_literal_needs_its_decimal_point(torch):
    with pytest.raises(RuntimeError, match=r"^Only Tensors of floating point and complex dtype can require gradients"):
        torch.tensor(3, requires_grad=True)
    assert torch.tensor(3.0, requires_grad=True).requires_grad


def test_inputs_stand_in_the_order_of_the_operation(torch):
    x, w, b = (torch.tensor(v, requires_grad=True) for v in (3.0, 2.0, 1.0))
    z = w * x + b
    loss = z**2
    assert [node for node, _ in loss.grad_fn.next_functions] == [z.grad_fn]
    product, bias = (node for node, _ in z.grad_fn.next_functions)
    assert product.name() == "MulBackward0"
    assert bias.variable is b
    assert [node.variable for node, _ in product.next_functions] == [w, x]


def test_every_leaf_has_one_accumulator_that_holds_it(torch):
    x = torch.ones(2, requires_grad=True)
    first, second = (x * 2).grad_fn, (x * 3).grad_fn
    node = first.next_functions[0][0]
    assert node is second.next_functions[0][0]
    assert node.name() == "torch::autograd::AccumulateGrad"  # "struct " stands before it on Windows
    assert type(node).__name__ == "AccumulateGrad"
    assert node.variable is x
    assert node.next_functions == ()


def test_gradients_do_not_exist_before_backward(torch):
    x = torch.arange(1.0, 5.0, requires_grad=True)
    z = x.dot(x).sin()
    assert x.grad is None
    z.backward()
    assert x.grad is not None


def test_the_local_rules_multiply_along_the_chain(torch):
    x, y = torch.arange(1.0, 5.0, requires_grad=True), torch.arange(5.0, 9.0, requires_grad=True)
    q = x.dot(y)
    q.retain_grad()
    q.sin().backward()
    slope = x.dot(y).cos()
    assert torch.allclose(q.grad, slope)
    assert torch.allclose(x.grad, slope * y)
    assert torch.allclose(y.grad, slope * x)
    assert torch.allclose(x.grad, torch.tensor([3.1666, 3.7999, 4.4332, 5.0666]), atol=5e-5)


def test_the_graph_of_every_run_is_new(torch):
    def power(x, n):
        for _ in range(n):
            x = x * 2
        return x

    x = torch.tensor(1.0, requires_grad=True)
    for n in (1, 3, 5):
        x.grad = None
        power(x, n).backward()
        assert x.grad == 2**n


@pytest.mark.parametrize(("value", "slope"), [([1.0, 2.0], 6.0), ([-1.0, -2.0], 2.0)])
def test_the_branch_that_ran_is_the_one_differentiated(torch, value, slope):
    x = torch.tensor(value, requires_grad=True)
    y = x * 2
    y = y * 3 if y.sum() > 0 else y - 100
    y.sum().backward()
    assert x.grad.tolist() == [slope, slope]


def test_a_while_loop_of_unknown_length(torch):
    x = torch.tensor(1.0, requires_grad=True)
    y, turns = x, 0
    while y < 100:
        y, turns = y * 3, turns + 1
    y.backward()
    assert x.grad == 3**turns
    assert turns == 5


def test_inputs_of_any_length(torch):
    w = torch.tensor(2.0, requires_grad=True)
    for length in (1, 4, 9):
        w.grad = None
        (w * torch.ones(length)).sum().backward()
        assert w.grad == length


def test_backward_frees_what_was_saved_even_while_the_result_lives(torch):
    x = torch.ones(1000, requires_grad=True)
    kept = x * 2
    alive = weakref.ref(kept)
    loss = (kept * kept).sum()
    del kept
    gc.collect()
    held = loss.grad_fn.next_functions[0][0]
    assert held._saved_self is not None
    loss.backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        _ = held._saved_self
    gc.collect()
    assert alive() is None


def test_backward_needs_a_scalar_or_a_direction(torch):
    x, y = torch.arange(1.0, 5.0, requires_grad=True), torch.arange(5.0, 9.0, requires_grad=True)
    with pytest.raises(RuntimeError, match=r"^grad can be implicitly created only for scalar outputs"):
        x.outer(y).backward()
    table = x.outer(y)
    table.backward(gradient=torch.ones_like(table))
    given = x.grad.clone(), y.grad.clone()
    x.grad = y.grad = None
    x.outer(y).sum().backward()
    assert torch.equal(x.grad, given[0])
    assert torch.equal(y.grad, given[1])
    assert x.grad.tolist() == [26.0] * 4
    assert y.grad.tolist() == [10.0] * 4


def test_one_element_counts_as_a_scalar(torch):
    x = torch.tensor([[2.0]], requires_grad=True)
    (x**3).backward()
    assert x.grad.tolist() == [[12.0]]


def test_mean_is_a_way_to_a_scalar(torch):
    x = torch.tensor([1.0, 2.0, 3.0, 6.0], requires_grad=True)
    (x**2).mean().backward()
    assert x.grad.tolist() == [0.5, 1.0, 1.5, 3.0]


def test_the_direction_weights_the_rows(torch):
    x = torch.tensor([1.0, 2.0, 3.0], requires_grad=True)
    v = torch.tensor([1.0, 0.0, 10.0])
    (x**2).backward(v)
    assert x.grad.tolist() == [2.0, 0.0, 60.0]


def test_inner_results_keep_their_gradient_when_asked(torch):
    a, b = torch.tensor([1.0, 2.0], requires_grad=True), torch.tensor([3.0, 4.0])
    c = a * b
    c.sum().backward()
    with pytest.warns(UserWarning, match="is not a leaf Tensor is being accessed"):
        assert c.grad is None
    c = a * b
    c.retain_grad()
    assert c.retains_grad
    c.sum().backward()
    assert c.grad.tolist() == [1.0, 1.0]
    assert a.grad.tolist() == [6.0, 8.0]


def test_parameters_of_a_module_are_leaves(torch):
    layer = torch.nn.Linear(3, 2)
    assert all(p.is_leaf and p.requires_grad and p.grad is None for p in layer.parameters())
    assert not layer(torch.ones(1, 3)).is_leaf
