"""What programs ask of a tensor's memory inside transforms: torch's answers, and none of our array types."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer

TRANSFORMS = {
    "vmap": "torch.vmap(lambda a: (seen.append({0}), a)[1])(torch.ones(2, 3))",
    "jvp": "torch.func.jvp(lambda a: (seen.append({0}), a)[1], (torch.arange(3.0),), (torch.ones(3),))",
    "nested": "torch.vmap(lambda v: torch.func.jvp(lambda a: (seen.append({0}), a)[1], (v,), (v,))[1])(torch.ones(2, 3))",
}
ASKED = [
    "a.data_ptr()",
    "(a * 2).data_ptr()",
    "a.is_set_to(a)",
    "a.is_set_to(torch.zeros(3))",
    "(a * 1).resize_(2).shape",
    "(a * 1).resize_(5).shape",
    "a.untyped_storage()",
    "a.storage_offset()",
    "a[1:].storage_offset()",
    "a.stride()",
    "a.dim_order()",
    "a.as_strided((2,), (1,)).shape",
]
DATA = [
    "torch.vmap(lambda a: a.data * 2)(torch.ones(2, 3))",
    "torch.vmap(lambda a: (a * 2).data)(torch.ones(2, 3))",
    "torch.vmap(lambda a: captured.data + a)(torch.ones(2, 3))",
    "torch.func.jvp(lambda a: a.data * 2, (x,), (x,))",
    "torch.func.jvp(lambda a: a.data * a, (x,), (x,))",
    "torch.func.grad(lambda a: (a.data * a).sum())(x)",
    "torch.vmap(torch.func.grad(lambda a: (a.data * a).sum()))(torch.ones(2, 3))",
    "torch.vmap(lambda v: torch.func.jvp(lambda a: a.data * a, (x,), (v,))[1])(torch.ones(2, 3))",
    "torch.func.jacfwd(lambda a: a.data * a)(x)",
    "torch.vmap(lambda a: setattr(a, 'data', torch.zeros(3)))(torch.ones(2, 3))",
    "torch.func.jvp(lambda a: setattr(a * 1, 'data', torch.zeros(3)), (x,), (x,))",
    "torch.func.grad(lambda a: setattr(a * 1, 'data', torch.zeros(3)))(x)",
    "torch.vmap(lambda a: a.clone().resize_(1))(torch.arange(6.0).view(2, 3))",
]
STRIDED = [
    "torch.vmap(torch.vmap(lambda a: a[1:].as_strided((1,), (1,))))(x.view(2, 3, 2))",
    "torch.vmap(lambda a: a.as_strided((3,), (2,)))(x[:, ::2])",
    "torch.vmap(lambda a: a.as_strided((2, 2), (2, 2)))(x[:, ::2])",
    "torch.vmap(lambda a: a.as_strided((4,), (2,)))(x[:, ::2])",
    "torch.vmap(lambda a: a.as_strided((7,), (1,)))(x)",
    "torch.vmap(lambda a: a[1:].as_strided((2,), (1,)))(x)",
    "torch.vmap(lambda a: a[1:].as_strided((2,), (1,), 0))(x)",
    "torch.vmap(lambda a: a.as_strided((2,), (1,), 0))(x[1:])",
    "torch.vmap(lambda a: a[1:].as_strided((2,), (1,), 8))(x[1:])",
    "torch.func.jvp(torch.vmap(lambda a: a[1:].as_strided((2,), (1,))), (x,), (x,))",
    "torch.vmap(torch.func.grad(lambda a: a[1:].as_strided((2,), (1,)).sum()))(x) * 1",
]


def seen_inside(library: Any, transform: str, asked: str) -> Any:
    seen: list[Any] = []
    error = answer(library, TRANSFORMS[transform].format(asked), seen=seen)
    return str(seen[0]) if seen else error


@pytest.mark.oracle
@pytest.mark.parametrize("transform", TRANSFORMS)
def test_questions_about_memory(transform: str) -> None:
    torch = pytest.importorskip("torch")
    for asked in ASKED:
        assert seen_inside(retrograd, transform, asked) == seen_inside(torch, transform, asked), asked


@pytest.mark.oracle
@pytest.mark.parametrize("program", DATA)
def test_data(program: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (
        answer(library, program, x=library.arange(3.0), captured=library.zeros(3)) for library in (retrograd, torch)
    )
    assert ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("program", STRIDED)
def test_samples_read_with_other_strides(program: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (answer(library, program, x=library.arange(12.0).view(2, 6)) for library in (retrograd, torch))
    assert ours == theirs


@pytest.mark.parametrize("strides", [(6, 2), (1, 6)])
def test_memory_between_the_elements_of_a_sample_is_not_read(strides: tuple[int, int]) -> None:
    x = retrograd.arange(12.0).as_strided((2, 2), strides)
    with pytest.raises(
        NotImplementedError, match=r"(?s)memory between the elements of a sample.*Hint: call contiguous"
    ):
        retrograd.vmap(lambda a: a.as_strided((2,), (1,)))(x)


def test_the_data_of_a_dual_tensor_has_no_tangent() -> None:
    from retrograd.autograd import forward_ad

    x = retrograd.arange(3.0)
    with forward_ad.dual_level():
        dual = forward_ad.make_dual(x, x)
        assert forward_ad.unpack_dual(dual.data).tangent is None
        assert forward_ad.unpack_dual(dual.data * dual).tangent.tolist() == [0.0, 1.0, 4.0]
        dual.data.add_(1)
    assert x.tolist() == [1.0, 2.0, 3.0]


def test_numbers_are_formatted() -> None:
    seen: list[str] = []
    retrograd.func.jvp(lambda a: (seen.append(f"{a.sum():.2f}"), a)[1], (retrograd.arange(3.0),), (retrograd.ones(3),))
    assert seen == ["3.00"]
    with pytest.raises(RuntimeError, match=r"calling .item\(\) on a Tensor"):
        retrograd.vmap(lambda a: (f"{a:.2f}", a)[1])(retrograd.ones(3))
