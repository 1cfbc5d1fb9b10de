"""Conjugates and negatives are views: they show what is written into their base, and what is written into them reaches it."""

from __future__ import annotations

import copy
import io
import pickle
from typing import Any

import numpy as np

import retrograd
from tests.autograd.recording import Programs, caught

program = Programs("conjugate_views")


def numbers(torch: Any) -> Any:
    return torch.tensor([[1 + 2j, 3 - 1j], [0.5j, 2 + 0j]])


def bits(one: Any, base: Any) -> Any:
    return one.is_conj(), one.is_neg(), one._is_view(), one._base is base


@program
def the_layout_of_views_without_elements(torch):
    x = torch.zeros(3, 4, 0, dtype=torch.complex64)
    y = torch.zeros(3, 4, dtype=torch.complex64).conj()[1:, 2:2]
    views = x.conj(), x.mH, x.conj()[1:].imag, y, y.imag.T
    return [(v.shape, v.stride(), v.storage_offset(), v.is_conj(), v.is_neg()) for v in views]


@program
def what_is_a_conjugate_view(torch):
    x, real = numbers(torch), torch.ones(2)
    y = x.conj()
    same = (
        real.conj() is real,
        x.resolve_conj() is x,
        real.resolve_neg() is real,
        y.contiguous() is y,
        torch._conj(x) is x,
    )
    made = (y, y.conj(), torch.conj(x), torch._conj(x), x.mH, x.H, x.adjoint(), torch.adjoint(x), real.unsqueeze(0).mH)
    signed = (
        y.real,
        y.imag,
        torch._neg_view(x),
        torch._neg_view(y),
        torch._neg_view(torch._neg_view(x)),
        x.imag.conj(),
    )
    return same, [bits(one, x) for one in made], [bits(one, x) for one in signed], y, y.imag, torch._neg_view(y)


@program
def views_of_a_conjugate_view(torch):
    x = numbers(torch)
    y = x.conj()
    views = (
        y.t(), y.T, y[0], y[:, 1:], y.view(4), y.reshape(4), y.flatten(), y.expand(2, 2, 2), y.diagonal(), y.unbind()[0],
        y.split(1)[1], y.squeeze(), y.unsqueeze(0), y.permute(1, 0), y.movedim(0, 1), y.view_as(x), y.detach(), y.data,
        y.as_strided((2,), (2,)), y.t().as_strided((2,), (1,), 1), y.cpu(), y.to(torch.complex64), y.chunk(2, 1)[0], y[None],
    )  # fmt: skip
    return [(bits(one, x), one, list(one.stride()), one.storage_offset()) for one in views]


@program
def copies_are_no_views(torch):
    x = numbers(torch)
    y = x.conj()
    copies = (
        y.clone(), y * 1, y.resolve_conj(), y.conj_physical(), x.conj_physical(), y.t().contiguous(), y.repeat(1, 1),
        y.to(torch.complex128), torch.cat([y, y]), torch.stack([y, y]), y[:, torch.tensor([0])], torch.empty_like(y),
        torch.zeros_like(y), -y, y.imag.resolve_neg(), -y.imag, y.imag.clone(), y.imag + 0,
    )  # fmt: skip
    return [bits(one, x) for one in copies]


WRITES = {
    "mul_": lambda torch, y: y.mul_(2),
    "add_ a tensor": lambda torch, y: y.add_(torch.ones(2, 2)),
    "fill_": lambda torch, y: y.fill_(1 + 1j),
    "fill_ a tensor": lambda torch, y: y.fill_(torch.tensor(2j)),
    "zero_": lambda torch, y: y.zero_(),
    "copy_": lambda torch, y: y.copy_(torch.full((2, 2), 1j)),
    "a row": lambda torch, y: y.__setitem__(0, 5j),
    "a column": lambda torch, y: y.__setitem__((slice(None), 0), 5j),
    "by an index": lambda torch, y: y.__setitem__(torch.tensor([1]), 5j),
    "by a mask": lambda torch, y: y.__setitem__(torch.tensor([True, False]), 3j),
    "a view": lambda torch, y: y[0].mul_(2j),
    "transposed": lambda torch, y: y.t().mul_(2j),
    "imag": lambda torch, y: y.imag.fill_(3.0),
    "imag, changed": lambda torch, y: y.imag.mul_(2),
    "real": lambda torch, y: y.real.fill_(3.0),
    "imag, set": lambda torch, y: setattr(y, "imag", torch.tensor(4.0)),
    "neg_": lambda torch, y: y.neg_(),
    "conj_physical_": lambda torch, y: y.conj_physical_(),
    "exp_": lambda torch, y: y.exp_(),
    "index_fill_": lambda torch, y: y.index_fill_(0, torch.tensor([0]), 2j),
    "index_put_": lambda torch, y: y.index_put_((torch.tensor([0]),), torch.tensor(1j)),
    "index_copy_": lambda torch, y: y.index_copy_(0, torch.tensor([0]), numbers(torch)[:1]),
    "masked_fill_": lambda torch, y: y.masked_fill_(torch.tensor([True, False]), 3j),
    "scatter_": lambda torch, y: y.scatter_(0, torch.tensor([[0, 0]]), 1j),
    "negative view": lambda torch, y: torch._neg_view(y).mul_(2),
    "out=": lambda torch, y: torch.mul(numbers(torch), 2, out=y),
    "out= and read": lambda torch, y: torch.add(y, 1j, out=y),
    "a diagonal": lambda torch, y: y.diagonal().fill_(9.0),
    "lerp_": lambda torch, y: y.lerp_(numbers(torch), 0.5),
    "cumsum_": lambda torch, y: y.cumsum_(0),
    "t_": lambda torch, y: y.t_().mul_(torch.tensor([1, 2])),
    "unsqueeze_": lambda torch, y: y.unsqueeze_(0),
    "from its base": lambda torch, y: y.copy_(y.conj()),
    "data": lambda torch, y: y.data.mul_(2),
}


@program
def writes_into_a_conjugate_view(torch):
    out = {}
    for name, write in WRITES.items():
        x = numbers(torch)
        y, row, column = x.conj(), x[0], x[:, 0].conj()
        result = caught(write, torch, y)
        shown = result if isinstance(result, Exception) else None
        out[name] = x, y, row, column, x._version, y._version, y.is_conj(), shown
    return out


@program
def writes_into_the_base(torch):
    x = numbers(torch)
    y = x.conj()
    imag, turned = y.imag, y.t()
    seen = []
    for write in (lambda: x.mul_(2j), lambda: x.__setitem__(0, 1j), lambda: x.real.fill_(4.0)):
        write()
        seen.append((y.clone(), imag.clone(), turned.clone()))
    return seen, y._version, y.data_ptr() == x.data_ptr()


@program
def what_is_refused(torch):
    x = numbers(torch)
    y = x.conj()
    return (
        caught(y.numpy),
        caught(y.imag.numpy),
        y.numpy(force=True).tolist(),
        y.imag.numpy(force=True).tolist(),
        caught(torch.view_as_real, y),
        torch.view_as_real(torch._neg_view(x)),
        caught(y.view, torch.float32),
        caught(y.imag.view, torch.int32),
        caught(y.__dlpack__),
        caught(torch.resolve_conj, 3),
        caught(torch.conj, 3),
        torch.conj(torch.ones(2, dtype=torch.bool)),
    )


@program
def gradients_through_views_and_writes(torch):
    x = numbers(torch).requires_grad_()
    y = x.conj()
    plain = [torch.autograd.grad(f(), x)[0] for f in (
        lambda: (y @ y).real.sum(), lambda: (x.mH @ x).real.sum(), lambda: y.imag.sum(), lambda: (y.real * y.imag).sum()
    )]  # fmt: skip
    found = []
    for write in (
        lambda w: w.conj().mul_(2 + 1j), lambda w: w.conj().imag.mul_(3.0), lambda w: w.mH[0].mul_(1j),
        lambda w: torch._neg_view(w)[1].add_(w[0].detach()),
    ):  # fmt: skip
        x.grad = None
        w = x * 1
        write(w)
        (w * w * 1j).real.sum().backward()
        found.append(x.grad)
    x.grad = None
    w = x * 1
    view = w.conj()
    w.mul_(3j)
    (view * view).real.sum().backward()
    nodes = (
        y.grad_fn,
        view.grad_fn,
        w.grad_fn,
        y.imag.grad_fn,
        y.real.grad_fn,
        x.mH.grad_fn,
        torch._neg_view(x).grad_fn,
    )
    return plain, found, x.grad, nodes, y.requires_grad, caught(y.mul_, 2)


@program
def second_derivatives_through_a_written_conjugate(torch):
    x = numbers(torch).to(torch.complex128).requires_grad_()
    w = x * x
    w.conj().mul_(x)
    (first,) = torch.autograd.grad((w * w).real.sum(), x, create_graph=True)
    (second,) = torch.autograd.grad((first * first).real.sum(), x)
    return first, second


@program
def a_saved_conjugate_whose_base_was_written(torch):
    w = numbers(torch).requires_grad_() * 1
    out = (w.conj() * w.conj()).real.sum()
    w.mul_(2)
    return type(caught(out.backward)).__name__


@program
def operations_read_the_values(torch):
    y = numbers(torch).conj()
    many = (
        lambda a: a @ a, lambda a: torch.mm(a, a), lambda a: a + a, lambda a: a.sum(), lambda a: a.abs(), lambda a: a.angle(),
        lambda a: torch.einsum("ij,jk", a, a), lambda a: torch.linalg.inv(a), lambda a: torch.fft.fft(a), lambda a: a.exp(),
        lambda a: torch.where(torch.tensor([True, False]), a, 0), lambda a: a.prod(), lambda a: a == a, lambda a: torch.equal(a, a),
        lambda a: a.tolist(), lambda a: a[0, 1].item(), lambda a: torch.vdot(a[0], a[1]), lambda a: a[a.abs() > 1], lambda a: a**2,
        lambda a: 2j * a, lambda a: torch.kron(a, a), lambda a: a.flip(0), lambda a: a.nonzero(), lambda a: list(a), lambda a: a.sgn(),
        repr,
    )  # fmt: skip
    of_negatives = (
        lambda a: a + a, lambda a: a * 2, lambda a: a.sum(), lambda a: -a, lambda a: a @ a, lambda a: a.max(), lambda a: a.relu(),
        lambda a: a.sort(), lambda a: a > 0, lambda a: a.to(torch.float64), lambda a: a.softmax(0), lambda a: a.tolist(), repr,
    )  # fmt: skip
    return [caught(f, y) for f in many], [caught(f, y.imag) for f in of_negatives]


@program
def copies_and_files(torch):
    x = numbers(torch)
    y = x.conj()
    file = io.BytesIO()
    torch.save([x, y, y.t()], file)
    file.seek(0)
    loaded = torch.load(file)
    loaded[0].mul_(2)
    read = pickle.loads(pickle.dumps(y))
    deep = copy.deepcopy(y)
    return (
        loaded,
        [one.is_conj() for one in loaded],
        read,
        read.is_conj(),
        deep,
        deep.is_conj(),
        copy.deepcopy(y.imag).is_neg(),
    )


@program
def inside_transforms(torch):
    x, seen = numbers(torch), []

    def f(t):
        seen.append((t.is_conj(), t.conj().is_conj()))
        return t.conj()

    out = torch.vmap(f)(x)
    nested = torch.vmap(torch.vmap(torch.conj))(x)
    gradient = torch.func.grad(lambda t: (f(t) * t).real.sum())(x)
    pushed = [one.clone() for one in torch.func.jvp(f, (x,), (x * 1j,))]
    product = torch.vmap(lambda t: t.conj() @ t)(x)
    facts = seen, bits(out, x), bits(nested, x)
    out[0].fill_(1j)
    return facts, out, nested, gradient, pushed, product, x


@program
def entering_transforms(torch):
    x = numbers(torch)
    y, seen = x.conj(), []

    def f(t):
        seen.append(t * 1)
        return t.mul_(2j)

    torch.vmap(f)(y)
    return x, y, torch.func.grad(lambda t: (t * t).real.sum())(y), torch.vmap(lambda t: t @ t)(y)


test_as_torch, test_recording_is_torchs = program.tests()


def test_memory_shared_with_numpy_is_read_anew() -> None:
    x = numbers(retrograd)
    y = x.conj()
    x.numpy()[0, 0] = 7j
    assert y[0, 0].item() == -7j
    assert np.array_equal(y.resolve_conj().numpy(), x.numpy().conj())
