"""torch._foreach_*: what torch answers, of numbers, lists of numbers, lists of tensors and 0-d tensors."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from tests.oracle import answer

PROGRAMS = """torch._foreach_add(a,1)
torch._foreach_add(a,[1,2])
torch._foreach_add(a,b,alpha=2)
torch._foreach_add(a,torch.tensor(2.),alpha=3)
torch._foreach_add(a,torch.ones(2))
torch._foreach_add_(a,b)
torch._foreach_add(a,[1])
torch._foreach_add(a,b[:1])
torch._foreach_add([],1)
torch._foreach_sub(a,b,alpha=2)
torch._foreach_sub(a,2)
torch._foreach_sub(a,torch.tensor(2.))
torch._foreach_sub_(a,[2,3])
torch._foreach_mul(a,torch.tensor(2.))
torch._foreach_mul_(a,2)
torch._foreach_mul_(a,b)
torch._foreach_div(a,torch.tensor(2.))
torch._foreach_div(a,[1,2])
torch._foreach_div_(a,b)
torch._foreach_clamp_max(a,2)
torch._foreach_clamp_max(a,b)
torch._foreach_clamp_min_(a,[2,5])
torch._foreach_maximum(a,b)
torch._foreach_maximum(a,[2,3])
torch._foreach_minimum_(a,2)
torch._foreach_minimum_(a,b)
torch._foreach_pow(a,2)
torch._foreach_pow(2,a)
torch._foreach_pow(a,[1,2])
torch._foreach_pow_(a,b)
torch._foreach_addcmul(a,b,b)
torch._foreach_addcmul(a,b,b,2)
torch._foreach_addcmul(a,b,b,value=2)
torch._foreach_addcmul(a,b,b,[1,2])
torch._foreach_addcmul(a,b,b,scalars=[1,2])
torch._foreach_addcmul_(a,b,b,torch.tensor([1.,2.]))
torch._foreach_addcdiv(a,b,b,[1])
torch._foreach_addcdiv_(a,a,b,.5)
torch._foreach_addcmul(a,b,b[:1])
torch._foreach_lerp(a,b,.5)
torch._foreach_lerp(a,b,weight=[.5,.2])
torch._foreach_lerp(a,b,[.5])
torch._foreach_lerp_(a,b,b)
torch._foreach_copy_(a,b)
torch._foreach_copy_(a,b[:1])
torch._foreach_zero_(a)
torch._foreach_clone(a)
torch._foreach_norm(a)
torch._foreach_norm(a,1)
torch._foreach_norm(a,float('inf'),dtype=torch.float64)
torch._foreach_max(a)
torch._foreach_powsum(a,2)
torch._foreach_mm([torch.ones(2,2)],[torch.ones(2,2)])
torch._foreach_sqrt(a[0])
torch._amp_foreach_non_finite_check_and_unscale_(a,torch.zeros(1),torch.tensor(2.))
torch._foreach_neg(tuple(a))"""
UNARY = """abs acos asin atan ceil cos cosh erf erfc exp expm1 floor frac lgamma log log10 log1p log2 neg reciprocal round
rsqrt sigmoid sign sin sinh sqrt tan tanh trunc"""


def said(library: Any, program: str) -> Any:
    a, b = (
        [library.tensor(values) for values in lists] for lists in ([[1.0, 1.0], [4.0] * 3], [[2.0, 2.0], [3.0] * 3])
    )
    return answer(library, program, a=a, b=b), [one.tolist() for one in a]


@pytest.fixture
def torch() -> Any:
    return pytest.importorskip("torch")


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS.split("\n"))
def test_torchs_answers(torch: Any, program: str) -> None:
    assert said(retrograd, program) == said(torch, program)


@pytest.mark.oracle
@pytest.mark.parametrize("name", UNARY.split())
def test_functions_of_one_list(torch: Any, name: str) -> None:
    values = [[0.25, 0.5], [0.75]]
    for suffix in ("", "_"):
        found = []
        for library in (retrograd, torch):
            given = [library.tensor(one) for one in values]
            result = getattr(library, f"_foreach_{name}{suffix}")(given)
            found.append(([one.tolist() for one in result], [one.tolist() for one in given], type(result)))
        for mine, other in zip(found[0][0] + found[0][1], found[1][0] + found[1][1], strict=True):
            assert mine == pytest.approx(other, rel=1e-5)
        assert found[0][2] is found[1][2]


@pytest.mark.oracle
def test_no_name_is_missing(torch: Any) -> None:
    assert [name for name in dir(torch) if "_foreach" in name and not hasattr(retrograd, name)] == []


def test_results_are_followed_by_autograd() -> None:
    x = retrograd.ones(2, requires_grad=True)
    retrograd._foreach_mul([x], [3.0])[0].sum().backward()
    assert x.grad.tolist() == [3.0, 3.0]
