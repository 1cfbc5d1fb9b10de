"""Normalisation: exactness far from 0, large arrays, running statistics; modules and errors against torch."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pytest

import retrograd
from retrograd._native import machine
from tests.oracle import answer


def exact(kind, x, weight, bias, groups=4, eps=1e-5):
    """Normalise in float64."""
    x = x.astype(np.float64)
    if kind == "layer":
        axes, shape = (-1,), (-1,)
    else:
        axes, shape = ((0, *range(2, x.ndim)) if kind == "batch" else None), (-1, *(1,) * (x.ndim - 2))
    if kind == "group":
        apart = x.reshape(x.shape[0], groups, -1)
        normal = (apart - apart.mean(2, keepdims=True)) / np.sqrt(apart.var(2, keepdims=True) + eps)
        normal = normal.reshape(x.shape)
    else:
        normal = (x - x.mean(axes, keepdims=True)) / np.sqrt(x.var(axes, keepdims=True) + eps)
    return normal * weight.reshape(shape) + bias.reshape(shape)


def normalised(library, kind, x, weight, bias):
    functions = library.nn.functional
    if kind == "layer":
        return functions.layer_norm(x, (x.shape[-1],), weight, bias)
    if kind == "batch":
        return functions.batch_norm(x, None, None, weight, bias, training=True)
    return functions.group_norm(x, 4, weight, bias)


SHAPES = [("layer", (7, 40)), ("layer", (40,)), ("batch", (50, 8)), ("batch", (6, 8, 9, 9)), ("batch", (9, 8, 5))]
SHAPES += [("group", (6, 8, 9, 9)), ("group", (6, 8, 3)), ("layer", (600, 1024)), ("batch", (70, 16, 30, 20))]
SHAPES += [("group", (70, 16, 30, 20)), ("batch", (1200, 512)), ("batch", (1200, 64, 3))]


def drawn(kind, shape, mean):
    rng = np.random.default_rng(0)
    channels = shape[-1] if kind == "layer" else shape[1]
    x = (rng.standard_normal(shape) + mean).astype(np.float32)
    return x, rng.random(channels).astype(np.float32) + 0.5, rng.random(channels).astype(np.float32)


@pytest.mark.parametrize("mean", [0, 3, 1000])
@pytest.mark.parametrize(("kind", "shape"), SHAPES)
def test_numbers_far_from_zero_keep_their_digits(kind, shape, mean) -> None:
    x, weight, bias = drawn(kind, shape, mean)
    out = normalised(retrograd, kind, *map(retrograd.tensor, (x, weight, bias))).numpy()
    np.testing.assert_allclose(out, exact(kind, x, weight, bias), rtol=1e-5, atol=1e-5 if mean < 1000 else 3e-4)
    channels = (0, *range(2, len(shape))) if kind == "batch" else None
    if kind == "batch":
        np.testing.assert_allclose(out.mean(channels), bias, atol=1e-4)


@pytest.mark.parametrize("mean", [0, 1000])
@pytest.mark.parametrize(("kind", "shape"), SHAPES)
def test_gradients_are_those_of_float64(kind, shape, mean) -> None:
    grads = []
    for dtype in (retrograd.float32, retrograd.float64):
        tensors = [retrograd.tensor(a).to(dtype).requires_grad_() for a in drawn(kind, shape, mean)]
        out = normalised(retrograd, kind, *tensors)
        seed = retrograd.tensor(np.random.default_rng(1).standard_normal(shape), dtype=dtype)
        grads.append([g.numpy() for g in retrograd.autograd.grad(out, tensors, seed)])
    for ours, wide in zip(*grads, strict=True):
        # with a mean of 1000 the numbers themselves are rounded to 1e-4 of a deviation
        np.testing.assert_allclose(ours, wide, rtol=1e-3, atol=(1e-5 if not mean else 1e-4) * np.abs(wide).max())


@pytest.mark.skipif(
    not machine.is_available(), reason="without kernels BLAS adds the rows up, in an order of its threads"
)
def test_rows_shared_among_threads_give_the_same_numbers() -> None:
    x, weight, bias = drawn("layer", (1200, 1024), 0)
    results = []
    before = retrograd.get_num_threads()
    try:
        for count in (1, 2, 3):
            retrograd.set_num_threads(count)
            tensors = [retrograd.tensor(a, requires_grad=True) for a in (x, weight, bias)]
            out = normalised(retrograd, "layer", *tensors)
            out.square().sum().backward()
            results.append([out.detach().numpy(), *(t.grad.numpy() for t in tensors)])
    finally:
        retrograd.set_num_threads(before)
    for other in results[1:]:
        for one, two in zip(results[0], other, strict=True):
            np.testing.assert_array_equal(one, two)


def test_running_statistics_move_without_a_version() -> None:
    norm = retrograd.nn.BatchNorm1d(3)
    versions = norm.running_mean._version, norm.running_var._version
    mean = norm.running_mean
    x = retrograd.randn(5, 3)
    norm(x)
    assert norm.running_mean is mean
    assert versions == (mean._version, norm.running_var._version)
    np.testing.assert_allclose(mean.numpy(), 0.1 * x.numpy().mean(0), rtol=1e-5)
    np.testing.assert_allclose(norm.running_var.numpy(), 0.9 + 0.1 * x.numpy().var(0, ddof=1), rtol=1e-5)
    assert int(norm.num_batches_tracked) == 1


def test_a_single_number_has_no_variance() -> None:
    with pytest.raises(ValueError, match="Expected more than 1 value per channel when training") as caught:
        retrograd.nn.BatchNorm1d(3)(retrograd.ones(1, 3))
    assert "Hint: " in str(caught.value)


def test_copies() -> None:
    norm = retrograd.nn.BatchNorm2d(3, momentum=None)
    norm(retrograd.randn(2, 3, 4, 4))
    for other in (copy.deepcopy(norm), pickle.loads(pickle.dumps(norm))):
        assert repr(other) == repr(norm)
        assert [v.tolist() for v in other.state_dict().values()] == [v.tolist() for v in norm.state_dict().values()]


# ---- programs whose answers are torch's ----
PROGRAMS = """
nn.BatchNorm1d(3), nn.BatchNorm2d(3, affine=False, momentum=None), nn.BatchNorm3d(3, track_running_stats=False)
nn.SyncBatchNorm(3), nn.InstanceNorm1d(3), nn.InstanceNorm2d(3, affine=True, track_running_stats=True, bias=False)
nn.LayerNorm(5), nn.LayerNorm((5, 6), elementwise_affine=False), nn.LayerNorm(5, bias=False), nn.RMSNorm((5, 2), eps=0.1)
nn.GroupNorm(2, 4), nn.GroupNorm(2, 4, affine=False), nn.LocalResponseNorm(3), nn.CrossMapLRN2d(3), nn.PairwiseDistance()
nn.LazyBatchNorm1d(), nn.LazyInstanceNorm3d(affine=False), str(nn.LazyBatchNorm2d(bias=False).weight)
nn.BatchNorm1d(2).state_dict(), nn.BatchNorm1d(2).state_dict()._metadata, list(nn.InstanceNorm1d(2).state_dict())
[(n, p.dtype) for n, p in nn.BatchNorm1d(2, dtype=torch.bfloat16).state_dict().items()]
nn.BatchNorm1d(6)(x)
nn.BatchNorm2d(6)(x[0])
nn.BatchNorm3d(6)(x)
nn.BatchNorm2d(5)(x)
nn.BatchNorm2d(5).eval()(x)
nn.BatchNorm2d(6, eps=-1)(x)
nn.BatchNorm1d(6)(ones(1, 6))
nn.SyncBatchNorm(6)(x[0, 0, 0])
nn.SyncBatchNorm(0)(ones(2, 0))
nn.SyncBatchNorm.convert_sync_batchnorm(nn.Sequential(nn.BatchNorm2d(3), nn.Sequential(nn.BatchNorm1d(3))))
nn.InstanceNorm1d(6)(x)
nn.InstanceNorm2d(5, affine=True)(x)
nn.InstanceNorm1d(3).load_state_dict({"running_mean": ones(3)})
nn.BatchNorm1d(3).load_state_dict({"weight": ones(3), "bias": ones(3), "running_mean": ones(3), "running_var": ones(3)})
nn.GroupNorm(3, 4)
nn.GroupNorm(2, 4)(x)
nn.LayerNorm(4)(x)
nn.RMSNorm(4)(x)
F.layer_norm(x, 5)
F.layer_norm(x, (5.0,))
F.layer_norm(x, ())
F.layer_norm(x, (5,), ones(4))
F.layer_norm(x, (5,), ones(5), ones(4))
F.layer_norm(x.double(), (5,), ones(5))
F.layer_norm(x, (5,), ones(5).double())
F.layer_norm(x.long(), (5,))
F.rms_norm(x.long(), (5,))
F.group_norm(x, 4)
F.group_norm(x, 0)
F.group_norm(x, 3, ones(5))
F.group_norm(x[:1, :, 0, 0], 6)
F.group_norm(x.long(), 6)
F.batch_norm(x[:, :5], ones(6), ones(6))
F.batch_norm(x, ones(6), ones(5))
F.batch_norm(x, None, ones(6))
F.batch_norm(x, ones(6), None, training=True)
F.batch_norm(x, ones(6).requires_grad_(), ones(6), training=True)
F.batch_norm(x.bfloat16(), ones(6), ones(6), ones(6).bfloat16(), training=True)
F.batch_norm(x.long(), ones(6), ones(6))
F.instance_norm(x[:, :, 0, 0])
F.instance_norm(x, use_input_stats=False)
F.instance_norm(x, weight=ones(5))
F.local_response_norm(x[0, 0], 3)
F.local_response_norm(x, 0)
F.local_response_norm(x.bfloat16(), 2)
F.normalize(x.long())
F.cosine_similarity(x, x[:3])
F.cosine_similarity(x.long(), x.long())
torch.autograd.grad(F.cosine_similarity(0 * ones(2).requires_grad_(), ones(2), dim=0), [])
torch.func.vmap(lambda a: F.batch_norm(a, ones(6), ones(6), training=True))(ones(2, 3, 6))
torch.func.vmap(nn.BatchNorm1d(6))(ones(2, 3, 6))
torch.func.replace_all_batch_norm_modules_(nn.Sequential(nn.BatchNorm2d(3), nn.InstanceNorm1d(3, track_running_stats=True)))
nn.utils.fusion.fuse_linear_bn_eval(nn.Linear(2, 3), nn.BatchNorm1d(3))
nn.utils.fusion.fuse_linear_bn_eval(nn.Linear(2, 3).eval(), nn.BatchNorm1d(4).eval())
""".strip().split("\n")


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers(program) -> None:
    torch = pytest.importorskip("torch")
    answers = []
    for library in (torch, retrograd):
        x = library.arange(600, dtype=library.float32).reshape(4, 6, 5, 5).sin()
        scope = {"F": library.nn.functional, "nn": library.nn, "x": x, "ones": library.ones}
        answers.append(answer(library, program, **scope))
    assert answers[0] == answers[1]


def close(ours, theirs) -> None:
    np.testing.assert_allclose(ours.detach().numpy(), theirs.detach().numpy(), rtol=1e-5, atol=1e-5)


@pytest.mark.oracle
@pytest.mark.parametrize("momentum", [0.1, 0.3, None])
@pytest.mark.parametrize("shape", [(6, 4), (6, 4, 3), (6, 4, 8, 8)])
def test_a_few_batches_and_then_evaluation(shape, momentum) -> None:
    torch = pytest.importorskip("torch")
    modules = []
    for library in (retrograd, torch):
        kind = {2: "BatchNorm1d", 3: "BatchNorm1d", 4: "BatchNorm2d"}[len(shape)]
        modules.append(getattr(library.nn, kind)(4, momentum=momentum))
    rng = np.random.default_rng(1)
    for _ in range(3):
        batch = rng.standard_normal(shape).astype(np.float32) + 2
        close(modules[0](retrograd.tensor(batch)), modules[1](torch.tensor(batch)))
    for one, other in zip(modules[0].state_dict().values(), modules[1].state_dict().values(), strict=True):
        close(one, other)
    close(modules[0].eval()(retrograd.tensor(batch)), modules[1].eval()(torch.tensor(batch)))


@pytest.mark.oracle
@pytest.mark.parametrize("size", [2, 3, 4, 5])
def test_cross_map_has_torchs_gradient(size) -> None:
    torch = pytest.importorskip("torch")
    x = np.random.default_rng(2).standard_normal((2, 9, 3, 3)).astype(np.float32)
    found = []
    for library in (retrograd, torch):
        tensor = library.tensor(x, requires_grad=True)
        out = library.nn.CrossMapLRN2d(size, alpha=0.5)(tensor)
        out.sum().backward()
        found.append((out, tensor.grad))
    for one, other in zip(*found, strict=True):
        close(one, other)


@pytest.mark.oracle
def test_weights_of_a_layer_and_its_normalisation_are_fused() -> None:
    torch = pytest.importorskip("torch")
    rng = np.random.default_rng(3)
    weight = rng.standard_normal((4, 3, 2, 2)).astype(np.float32)
    vectors = [rng.random(4).astype(np.float32) + 0.5 for _ in range(5)]
    found = []
    for library in (retrograd, torch):
        bias, mean, variance, scale, shift = map(library.tensor, vectors)
        fusion = library.nn.utils.fusion
        both = fusion.fuse_conv_bn_weights(library.tensor(weight), bias, mean, variance, 1e-3, scale, shift)
        plain = fusion.fuse_conv_bn_weights(library.tensor(weight), None, mean, variance, 1e-3, None, None)
        row = library.tensor(weight[:, :, 0, 0])
        found.append([*both, *plain, *fusion.fuse_linear_bn_weights(row, bias, mean, variance, 1e-3, scale, shift)])
    for one, other in zip(*found, strict=True):
        assert type(one).__name__ == "Parameter"
        close(one, other)


@pytest.mark.parametrize("given", [{"weight": 3}, {"bias": 3}])
def test_weights_that_are_no_tensors_are_refused_by_position(given):
    x = retrograd.ones(2, 2)
    position = 3 if "weight" in given else 4
    for call in (
        lambda: retrograd.nn.functional.group_norm(x, 1, **given),
        lambda: retrograd.nn.functional.layer_norm(x, (2,), **given),
    ):
        with pytest.raises(TypeError, match=rf"\(position {position}\) must be Tensor, not int"):
            call()
