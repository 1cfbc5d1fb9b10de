"""Views, joins and rearrangements against torch: strides, versions, graphs and errors of short programs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from tests.oracle import first_line, outcome

torch = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing

pytestmark = pytest.mark.oracle

# Each program leaves what is compared in `r`; x is [0, 1, 2, 3, 4, 5], m the same as a matrix, g requires grad.
PROGRAMS = """
y = x.as_strided((2, 2), (1, 2)); y.mul_(2); r = x, y, y._base is x
z = g * 1; y = z.as_strided((2, 2), (1, 2)); y.mul_(3); z.sum().backward(); r = g.grad, z, y
z = g * 1; y = z.as_strided((3, 3), (1, 1)); (y * y).sum().backward(); r = g.grad
z = g * 1; y = z[2:]; w = y.as_strided((4,), (1,), 0); w.mul_(2); z.sum().backward(); r = z, y, w, g.grad
z = g * 1; y = z[2:]; w = y.as_strided((4,), (1,), 0); w.sum().backward(); r = w, g.grad
z = g * 1; y = z.as_strided((2,), (3,)); z.mul_(2); (y**2).sum().backward(); r = y, z, g.grad
r = g.as_strided((2,), (2,)).mul_(2)
r = x.as_strided((0,), (1,), 100)
r = x.as_strided((5, 5), (1, 1))
r = x.as_strided((5,), (1, 1))
r = x.as_strided((2,), (-1,))
r = x.as_strided((2,), (1,), -1)
y = x.view(2, 3); y.as_strided_((3,), (2,)); r = x, y
z = g * 1; z.as_strided_((3,), (2,)); z.sum().backward(); r = z, g.grad
y = x.unfold(0, 3, 3); y.add_(1); r = x, y
z = g * 1; y = z.unfold(0, 2, 2); z.mul_(2); (y**2).sum().backward(); r = y, z, g.grad
r = x.unfold(0, 7, 1)
r = x.unfold(0, 1, 0)
x.resize_(2, 2); r = x
y = x[2:]; y.resize_(2, 2); r = x, y
x.resize_(2, 2); x.resize_(6); r = x
y = x.view(2, 3); x.resize_(4); x.fill_(9); r = x, y
x.resize_as_(torch.ones(2, 3)); r = x
r = (g * 1).resize_(2)
y = torch.ones(1, 2, 3, 4).contiguous(memory_format=torch.channels_last); r = y, y.is_contiguous(memory_format=torch.channels_last)
y = torch.ones(1, 2, 3, 4).clone(memory_format=torch.channels_last); r = torch.cat((y, y))
r = m.contiguous(memory_format=torch.channels_last)
r = m.t().clone(), m.t().clone(memory_format=torch.contiguous_format), m[:, ::2].clone(), x.expand(2, 6).clone()
r = m.stride(-1), m.stride(0)
r = m.stride(3)
r = g.view(torch.int32)
y = x.view(torch.int32); y.zero_(); r = x, y
r = m.view(torch.int64)
r = m.t().view(torch.int16)
a, b = (g * 1).split(3); r = a.mul_(2)
a, b = torch.unsafe_split(g * 1, 3); a.mul_(2); (a * b).sum().backward(); r = a, b, g.grad
a, b = torch.tensor_split(x, 2); a.zero_(); r = x, a, b
z = g * 1; a, b = z.tensor_split(2); a.mul_(3); z.sum().backward(); r = z, a, b, g.grad
d = m.diagonal(); d.fill_(9); r = m, d
d = torch.diagonal_copy(m); d.fill_(9); r = m, d
r = torch.permute_copy(m, (1, 0)), torch.view_copy(g, (2, 3)), torch.narrow_copy(g, 0, 0, 1), torch.unbind_copy(g)
r = torch.cat((x, x.double(), x.int())), torch.cat((x, x), out=torch.empty(0)), torch.stack((x, x.double()))
r = torch.cat((x, torch.ones(0), m))
r = torch.cat((m, 3))
r = torch.view_as_complex_copy(m.reshape(3, 2)), torch.view_as_real_copy(x + 1j)
r = torch.view_as_complex_copy(g.view(3, 2))
r = torch.stack((torch.tensor(1.0), x), dim=4)
o = torch.empty(2, 6); r = torch.stack((x, x), out=o) is o, o
r = torch.flip(m.t(), (0,)), torch.roll(m.t(), 1, 0), torch.rot90(m.t()), torch.rot90(m, 2), m.t().triu()
r = m.t().unsqueeze(-1), x[::2].unsqueeze(-1), torch.select_scatter(m.t(), torch.ones(2), 0, 1)
r = torch.rot90(m, 1, (0, 2))
r = torch.roll(m, (1, 2))
r = m.repeat(2)
r = x.repeat(-1)
r = torch.repeat_interleave(m, torch.tensor([1, -2]), 0)
r = torch.constant_pad_nd(m, (-2, -2))
r = torch.diag(torch.ones(2, 2, 2))
r = torch.select_scatter(m, torch.ones(2), 0, 1)
r = torch.block_diag(m, torch.ones(2, 2, 2))
r = torch.broadcast_shapes((2,), (3,))
r = torch.broadcast_shapes((2, 1), 3)
r = m.sum_to_size(4)
r = torch.hsplit(m, 2)
r = torch.tril_indices(2, 3), torch.triu_indices(2, 3, 1, dtype=torch.int32)
r = torch.tril_indices(2, 3, dtype=torch.float32)
r = m.unflatten(1, (2, 2))
r = m.narrow(1, torch.tensor(1), 2)
r = m.squeeze((0, 0))
r = torch.movedim(m, (0, -2), (0, 1))
r = x.expand(size=(2, 6)), x.view(size=(2, 3)), torch.swapaxes(m, axis0=0, axis1=1), torch.flip(m, dims=(0,))
r = m.tril_(), m.t().tril_(-1)
""".strip().splitlines()


def shown(value: Any, library: Any) -> Any:
    if isinstance(value, (tuple, list)) and not hasattr(value, "numel"):
        return [shown(one, library) for one in value]
    if not isinstance(value, library.Tensor):
        return value if isinstance(value, (int, bool)) else tuple(value)
    node = None if value.grad_fn is None else type(value.grad_fn).__name__
    layout = (str(value.dtype), tuple(value.shape), tuple(value.stride()), value.storage_offset(), value._is_view())
    return (*layout, value._version, value.requires_grad, node, np.asarray(value.detach()).tolist())


def run(program: str, library: Any) -> Any:
    x = library.arange(6.0)
    names = {"torch": library, "x": x, "m": library.arange(6.0).reshape(2, 3), "g": x.clone().requires_grad_()}

    def result() -> Any:
        exec(program, names)
        return shown(names["r"], library)

    return outcome(result, words=first_line)


@pytest.mark.parametrize("program", PROGRAMS)
def test_same_as_torch(program: str) -> None:
    assert run(program, retrograd) == run(program, torch)


def test_the_sum_to_no_dimensions_of_a_number_is_a_new_tensor():
    x = retrograd.tensor(2.0, requires_grad=True)
    assert x.sum_to_size(()) is not x
    x.sum_to_size(()).mul_(3).backward()
    assert x.grad.item() == 3
