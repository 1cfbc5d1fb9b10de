"""Batching rules of fused operations: one node for a batch of vmap, equal to the decomposition and to a loop over the samples."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.fused import fused_operations
from retrograd.func import functional_call, grad, hessian, jacrev, jvp, vmap
from retrograd.tensor._recording.fused import decomposed

F = torch.nn.functional


def drawn(*shape: int) -> Any:
    return torch.randn(*shape, dtype=torch.float64)


def convolution(images: int = 1, groups: int = 1, **numbers: Any) -> tuple[Any, tuple[Any, ...]]:
    """A loss of a sample of images, and its arguments: weight, bias, samples."""
    torch.manual_seed(0)
    x, w, b = drawn(4, images, 2 * groups, 7, 6), drawn(3 * groups, 2, 3, 2), drawn(3 * groups)
    return lambda w, b, x: F.conv2d(x, w, b, groups=groups, **numbers).sin().sum(), (w, b, x)


CONVOLUTIONS = [
    {},
    {"images": 3},
    {"groups": 2},
    {"images": 2, "groups": 3, "stride": (2, 1)},
    {"padding": (1, 2), "dilation": (2, 1)},
    {"images": 0},
]


def all_close(found: Any, wanted: Any) -> None:
    for a, b in zip(found, wanted, strict=True):
        assert a.shape == b.shape
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-10, atol=1e-10)


@pytest.mark.parametrize("options", CONVOLUTIONS)
def test_gradients_of_samples_of_a_convolution(options: dict[str, Any]) -> None:
    loss, (w, b, x) = convolution(**options)
    each = grad(loss, argnums=(0, 1, 2))
    found = vmap(each, in_dims=(None, None, 0))(w, b, x)
    rows = [each(w, b, one) for one in x]
    all_close(found, [torch.stack(column) for column in zip(*rows, strict=True)])
    with decomposed():
        all_close(found, vmap(each, in_dims=(None, None, 0))(w, b, x))


def test_a_batch_of_weights_goes_by_parts() -> None:
    loss, (w, b, x) = convolution()
    each = grad(loss, argnums=(0, 1, 2))
    weights = torch.stack([w, 2 * w, 3 * w, 4 * w])
    found = vmap(each, in_dims=(0, None, 0))(weights, b, x)
    rows = [each(one, b, sample) for one, sample in zip(weights, x, strict=True)]
    all_close(found, [torch.stack(column) for column in zip(*rows, strict=True)])


def test_one_node_under_torchs_name() -> None:
    _, (w, b, x) = convolution()
    seen = []

    def look(x: Any) -> Any:
        out = F.conv2d(x, w, b)
        seen.append(out.grad_fn)
        return out.sum()

    w.requires_grad_()
    vmap(look)(x).sum().backward()
    (node,) = seen
    assert node.name() == "ConvolutionBackward0"
    assert [one is not None for one, _ in node.next_functions] == [False, True, False]


def test_a_gradient_from_outside_is_summed_over_the_samples() -> None:
    loss, (w, b, x) = convolution(images=2)
    found = grad(lambda *args: vmap(loss, in_dims=(None, None, 0))(*args).sum(), argnums=(0, 1, 2))(w, b, x)
    wanted = grad(lambda *args: sum(loss(args[0], args[1], one) for one in args[2]), argnums=(0, 1, 2))(w, b, x)
    all_close(found, wanted)


def test_further_orders_and_levels() -> None:
    loss, (w, b, x) = convolution()
    w, x = w[:1, :, :2, :1], x[:2, :, :, :3, :2]
    b = b[:1]

    def of_each(f: Any) -> None:
        found = vmap(f, in_dims=(None, 0))(w, x)
        with decomposed():
            all_close([found], [vmap(f, in_dims=(None, 0))(w, x)])
        all_close([found], [torch.stack([f(w, one) for one in x])])

    of_each(hessian(lambda w, x: loss(w, b, x)))
    of_each(jacrev(lambda w, x: F.conv2d(x, w, b)))
    of_each(lambda w, x: jvp(grad(lambda w: loss(w, b, x)), (w,), (w.cos(),))[1])
    of_each(lambda w, x: vmap(lambda one: grad(lambda w: loss(w, b, one))(w))(torch.stack([x, 2 * x])))
    assert torch.autograd.gradgradcheck(
        lambda w, x: vmap(lambda w, x: F.conv2d(x, w, b).sin(), in_dims=(None, 0))(w, x),
        (w.clone().requires_grad_(), x.clone().requires_grad_()),
    )
    out = vmap(lambda x: F.conv2d(x, w.requires_grad_(), b))(x)
    seeds = drawn(3, *out.shape)
    at_once = torch.autograd.grad(out, w, seeds, retain_graph=True, is_grads_batched=True)[0]
    all_close(at_once, [torch.autograd.grad(out, w, one, retain_graph=True)[0] for one in seeds])


def test_a_saved_input_that_is_overwritten_is_noticed() -> None:
    _, (w, b, x) = convolution()
    w.requires_grad_()
    out = vmap(lambda x: F.conv2d(x, w, b))(x).sum()
    with torch.no_grad():
        w.mul_(2)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.backward()


def test_a_second_backward_is_refused() -> None:
    _, (w, b, x) = convolution()
    w.requires_grad_()
    out = vmap(lambda x: F.conv2d(x, w, b))(x).sum()
    out.backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        out.backward()


def test_hooks_of_saved_tensors_and_anomaly_detection() -> None:
    loss, (w, b, x) = convolution()
    each = vmap(grad(loss), in_dims=(None, None, 0))
    wanted = each(w, b, x)
    with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t):
        all_close([each(w, b, x)], [wanted])
    with pytest.warns(UserWarning, match="Anomaly Detection"), torch.autograd.detect_anomaly():
        all_close([each(w, b, x)], [wanted])


def test_saved_values_in_doubt_go_by_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    _, (w, b, x) = convolution()

    def first() -> Any:
        return vmap(grad(lambda w, x: F.conv2d(x, w, b)[0, 0, 0, 0]), in_dims=(None, 0))(w, x[:, :, :, :3, :2])

    def only() -> Any:  # whose seed has no batch axis
        return vmap(grad(lambda t: F.cross_entropy(t, torch.tensor(1))))(x[:, 0, :, 0, 0])

    wanted = [first(), only()]
    monkeypatch.setattr(sys.modules["retrograd.tensor._recording.fused"], "fresh", lambda node: False)
    all_close([first(), only()], wanted)


# ---- classes ----
def classes(shape: tuple[int, ...]) -> tuple[Any, Any]:
    """Logits of five samples of a shape, and targets."""
    torch.manual_seed(1)
    x = drawn(5, *shape)
    axis = 0 if len(shape) == 1 else 1
    return x, torch.randint(0, shape[axis], (5, *shape[:axis], *shape[axis + 1 :]))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("shape", [(4,), (1, 4), (3, 4), (2, 4, 3)])
@pytest.mark.parametrize("function", [F.cross_entropy, F.nll_loss, "smoothed"])
def test_gradients_of_samples_of_losses(function: Any, shape: tuple[int, ...], reduction: str) -> None:
    x, target = classes(shape)

    def loss(x: Any, target: Any) -> Any:
        if function == "smoothed":
            out = F.cross_entropy(x, target, reduction=reduction, label_smoothing=0.2)
        else:
            out = function(x, target, reduction=reduction)
        return (out * out).sum()

    for in_dims in ((0, 0), (0, None), (None, 0)):
        args = [a if dim == 0 else a[0] for a, dim in zip((x, target), in_dims, strict=True)]
        rows = zip(*[a if dim == 0 else [a] * 5 for a, dim in zip(args, in_dims, strict=True)], strict=True)
        found = vmap(grad(loss), in_dims=in_dims)(*args)
        all_close([found], [torch.stack([grad(loss)(*row) for row in rows])])
        with decomposed():
            all_close([found], [vmap(grad(loss), in_dims=in_dims)(*args)])


@pytest.mark.parametrize("weighed", [False, True])
def test_what_is_ignored_or_weighed_goes_by_parts(weighed: bool) -> None:
    x, target = classes((3, 4))
    target[1, 2] = target[2, 0] = -100
    weight = drawn(4).abs() if weighed else None

    def loss(x: Any, target: Any) -> Any:
        return F.cross_entropy(x, target, weight)

    found = vmap(grad(loss))(x, target)
    all_close([found], [torch.stack([grad(loss)(*row) for row in zip(x, target, strict=True)])])


def test_a_target_that_is_no_class_is_refused() -> None:
    x, target = classes((3, 4))
    target[1, 2] = 4
    with pytest.raises(IndexError, match="Target 4 is out of bounds"):
        vmap(F.cross_entropy)(x, target)


def test_half_precision_and_complex_numbers_go_by_parts() -> None:
    x, target = classes((3, 4))
    found = vmap(F.cross_entropy)(x.bfloat16(), target)
    assert found.dtype == torch.bfloat16
    assert torch.equal(found, torch.stack([F.cross_entropy(*row) for row in zip(x.bfloat16(), target, strict=True)]))
    _, (w, b, images) = convolution()
    w, b, images = (torch.complex(one, one.cos()) for one in (w, b, images))
    found = vmap(lambda one: F.conv2d(one, w, b))(images)
    all_close([found], [torch.stack([F.conv2d(one, w, b) for one in images])])


def test_a_whole_network() -> None:
    torch.manual_seed(2)
    nn = torch.nn
    model = nn.Sequential(nn.Conv2d(1, 2, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 4)).double()
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, target = drawn(5, 1, 9, 8), torch.randint(0, 4, (5,))

    def loss(params: Any, x: Any, target: Any) -> Any:
        return F.cross_entropy(functional_call(model, params, (x.unsqueeze(0),)), target.unsqueeze(0))

    found = vmap(grad(loss), in_dims=(None, 0, 0))(params, x, target)
    rows = [grad(loss)(params, *row) for row in zip(x, target, strict=True)]
    for name in params:
        all_close([found[name]], [torch.stack([row[name] for row in rows])])


def test_which_operations_have_batching_rules() -> None:
    for operation in fused_operations.values():
        if operation.batch_rule is not None:
            assert operation.outputs == 1
            assert operation.batch_back.__name__ != "_missing"
