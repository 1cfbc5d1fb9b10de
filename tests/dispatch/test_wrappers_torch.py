"""Tensors that wrap others do as torch's do: in transforms, in printing, where functions ask for their numbers."""

from __future__ import annotations

import importlib
from functools import cache
from typing import Any

import pytest

import retrograd as rg
from tests.oracle import answer


@cache
def classes(library: Any) -> dict[str, Any]:
    """Make a class of wrappers, and one of tensors that let operations through."""
    tree: Any = importlib.import_module(f"{library.__name__}.utils._pytree")

    class W(library.Tensor):
        @staticmethod
        def __new__(cls: Any, data: Any) -> Any:
            return library.Tensor._make_wrapper_subclass(cls, data.shape, dtype=data.dtype, device=data.device)

        def __init__(self, data: Any) -> None:
            self.data_inside = data

        def __repr__(self) -> str:
            return f"W({self.data_inside})"

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            args, kwargs = tree.tree_map_only(W, lambda one: one.data_inside, (args, kwargs or {}))
            return tree.tree_map_only(library.Tensor, W, func(*args, **kwargs))

    class Through(library.Tensor):
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_dispatch__(func, types, args, kwargs or {})

    x = library.tensor([1.0, 2.0])
    return {"W": W, "Through": Through, "x": x, "w": W(x), "m": W(library.arange(6.0).reshape(2, 3)), "V": library.func}


PROGRAMS = [
    "V.vmap(lambda a: a * 2)(w)",
    "V.vmap(lambda a, b: a * b, in_dims=(0, None))(x, w)",
    "V.vmap(lambda a, b: (a * 2, b + a), in_dims=(1, None), out_dims=(1, 0))(m, x)",
    "V.vmap(lambda a: a * 2, chunk_size=1)(w)",
    "V.vmap(V.grad(lambda a: (a**2).sum()))(m)",
    "V.vmap(lambda a: a + torch.rand(()))(w)",
    "V.vmap(lambda a: a * 0 + torch.rand(()), randomness='same')(w).data_inside.unique().numel()",
    "V.vmap(lambda a: a * 0 + torch.rand(()), randomness='different')(w).data_inside.unique().numel()",
    "V.vmap(lambda a: 3)(w)",
    "V.vjp(torch.sin, w)[0]",
    "V.vjp(torch.sin, w)[1](w)",
    "V.grad(lambda a: a.sin().sum())(w)",
    "f'{w}'",
    "f'{W(torch.tensor(1.5)):.3f}'",
    "torch.testing.assert_close(w, w)",
    "torch.testing.assert_close(w, w + 1)",
    "torch.testing.assert_close(w, W(torch.tensor([1.0, float('nan')])))",
    "torch.distributions.Normal(w, 1.0)",
    "torch.distributions.Normal(w, 1.0).log_prob(x)",
    "torch.distributions.Normal(w, -1.0, validate_args=True)",
    "w.data_ptr(), w.storage_offset()",
    "w.untyped_storage().nbytes(), w.untyped_storage().device",
    "w.untyped_storage().data_ptr()",
    "w.tolist()",
    "torch.tensor(w)",
    "torch.tensor(w, dtype=torch.float64)",
    "x.as_subclass(Through) * 2",
    "type(x.as_subclass(Through).sum()).__name__",
    "(y := x.clone().as_subclass(Through), y.add_(1) is y, type(y.add_(1)).__name__)[1:]",
    "torch.cat([x.as_subclass(Through), x])",
    "(y := x.clone().as_subclass(Through).requires_grad_(), (y * y).sum().backward(), y.grad)[2]",
    "torch.Tensor.__torch_dispatch__(torch.ops.aten.mul.Tensor, (), (x, x))",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_wrappers_do_as_torchs(program: str) -> None:
    torch = pytest.importorskip("torch")
    found, expected = (answer(one, f"repr({program})", **classes(one)) for one in (rg, torch))
    assert found == expected


REFUSED = [
    "V.jvp(torch.sin, (w,), (x,))",
    "V.jvp(torch.sin, (x,), (w,))",
    "V.jvp(lambda a: a * w, (x,), (x,))",
    "V.jacfwd(torch.sin)(w)",
    "V.jacrev(torch.sin)(w)",
    "V.hessian(lambda a: a.sin().sum())(w)",
    "V.vmap(lambda a: a * w)(x)",
]


@pytest.mark.parametrize("program", REFUSED)
def test_transforms_that_would_lose_a_wrappers_numbers_are_refused(program: str) -> None:
    with pytest.raises(NotImplementedError, match="a W, which wraps other tensors"):
        eval(program, {"torch": rg, **classes(rg)})


def test_fake_tensors_are_mapped_to_fake_ones() -> None:
    fakes: Any = importlib.import_module("retrograd._subclasses.fake_tensor")
    with fakes.FakeTensorMode():
        out = rg.func.vmap(lambda a: a.sum() * 2)(rg.ones(2, 3))
    assert fakes.is_fake(out)
    assert (out.shape, out.device.type) == ((2,), "cpu")
