"""Tangents, cotangents and random numbers that transforms are given: dtypes, structures, chunks."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("func_tangents_given")


def x32(torch: Any) -> Any:
    return torch.tensor([0.5, 1.0])


def x64(torch: Any) -> Any:
    return torch.tensor([2.0, 3.0], dtype=torch.float64)


# ---- tangents of another dtype ----
@program
def tangents_of_another_dtype(torch):
    jvp, results = torch.func.jvp, []
    real, double, half = x32(torch), x64(torch), x32(torch).half()
    pairs = ((real, double), (half, real), (real.cfloat(), real))
    functions = (
        lambda x: x * 2,
        torch.sin,
        lambda x: x,
        lambda x: x.sum(),
        lambda x: x * x,
        lambda x: x.view(2, 1),
        lambda x: torch.stack([x, x]),
        lambda x: x.clone().add_(1),
    )
    for primal, tangent in pairs:
        results += [caught(jvp, f, (primal,), (tangent,)) for f in functions]
    return results


@program
def dual_tensors_of_two_dtypes(torch):
    forward_ad = torch.autograd.forward_ad
    with forward_ad.dual_level():
        x = forward_ad.make_dual(x32(torch), x64(torch))
        return [tuple(forward_ad.unpack_dual(one)) for one in (x, x * 2, x.exp(), x.sum())]


@program
def tangents_of_two_dtypes_in_other_transforms(torch):
    f, x, t = torch.func, x32(torch), x64(torch)
    return (
        f.grad(lambda a: f.jvp(lambda x: x * a, (x,), (t,))[1].sum())(x),
        torch.vmap(lambda a: f.jvp(lambda x: x * a, (x,), (t,))[1])(x),
        f.jvp(lambda y: f.jvp(lambda x: x * y, (x,), (t,))[1], (x,), (x,)),
        f.grad(lambda t: f.jvp(torch.sin, (x,), (t,))[1].sum())(t),
        caught(f.linearize(torch.sin, x)[1], t),
        caught(f.jvp, torch.sin, (x,), (x.long(),)),
    )


# ---- cotangents ----
@program
def cotangents_of_another_dtype(torch):
    _, pull_back = torch.func.vjp(lambda x: x * x, x32(torch))
    return pull_back(x64(torch)), caught(pull_back, x64(torch).cfloat()), caught(pull_back, 3), caught(pull_back, None)


@program
def cotangents_of_another_structure(torch):
    x, results = x32(torch), []
    for f in (lambda x: x, lambda x: (x, x), lambda x: {"a": x, "b": [x, (x,)]}):
        _, pull_back = torch.func.vjp(f, x)
        results += [caught(pull_back, given) for given in (x, (x,), [x, x], {"y": x}, (x, (x, x)), x[:1])]
    return results


@program
def batches_of_cotangents(torch):
    x = x32(torch).requires_grad_()
    w, u, eye = torch.ones(2, requires_grad=True), torch.ones(2), torch.eye(2)

    def grads(outputs, inputs, seeds=None, **options):
        return caught(torch.autograd.grad, outputs, inputs, seeds, is_grads_batched=True, **options)

    return (
        grads(x * 2, x, eye),
        grads(x * 2, x, eye.double()),
        grads(x * 2, x, eye.cfloat()),
        grads((x * 2).sum(), x),
        grads(x * 2, x),
        grads(x * 2, x, torch.tensor(1.0)),
        grads(x * 2, x, torch.ones(2)),
        grads(x * 2, x, torch.ones(3, 4, 5)),
        grads([x * 2, x * 3], x, [eye, torch.ones(3, 2)]),
        grads([x * 2, (x * 3).sum()], x, [eye, None]),
        grads([x * 2, u * 3], x, [eye, eye]),
        grads([x * 2, u * 3], x, [eye, None]),
        grads(x * 2, [x, w], eye),
        grads(x * 2, [x, w], eye, allow_unused=True),
        grads(x * 2, [x, w], eye, materialize_grads=True),
    )


# ---- chunks ----
@program
def random_numbers_in_chunks(torch):
    torch.manual_seed(0)
    results = []
    for randomness in ("same", "different", "error"):
        draw = torch.vmap(lambda x: x + torch.rand(2), chunk_size=2, randomness=randomness)
        results += [caught(draw, torch.zeros(5)), torch.rand(1)]
    return results


@program
def an_output_that_is_no_batch_in_chunks(torch):
    return caught(torch.vmap(lambda x: (x, torch.ones(2)), out_dims=(0, None), chunk_size=2), torch.zeros(3))


# ---- values that differ from sample to sample ----
@program
def masks_and_classes_in_a_batch(torch):
    x, one_hot = torch.tensor([[1.0, -1.0], [2.0, 3.0]]), torch.nn.functional.one_hot

    def write(a):
        a = a.clone()
        a[a > 0] = 0
        return a

    return (
        caught(torch.vmap(lambda a: a[a > 0]), x),
        caught(torch.vmap(write), x),
        caught(torch.vmap(one_hot), x.long()),
        torch.vmap(lambda a: one_hot(a, 4))(x.long().abs()),
    )


test_as_torch, test_recording_is_torchs = program.tests()


def test_no_samples_in_chunks():
    """torch fails an assertion here."""
    assert retrograd.vmap(lambda x: x * 2, chunk_size=2)(retrograd.zeros(0, 3)).shape == (0, 3)


@pytest.mark.parametrize("library", ["retrograd", pytest.param("torch", marks=pytest.mark.oracle)])
def test_both_structures_are_shown(library):
    torch = pytest.importorskip(library)
    _, pull_back = torch.func.vjp(lambda x: {"a": x, "b": [x, (x,)]}, torch.ones(2))
    with pytest.raises(RuntimeError) as caught:
        pull_back({"y": (torch.ones(2), torch.ones(2))})
    assert str(caught.value).endswith("cotangents: {'y': (*, *)}, primal output: {'a': *, 'b': [*, (*,)]}")
