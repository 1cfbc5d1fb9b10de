"""Decompositions against torch: errors for bad arguments, and what the table of operations leaves out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.oracle import Raised, first_line, outcome

theirs = pytest.importorskip("torch")

import retrograd  # noqa: E402 - torch may be missing

pytestmark = pytest.mark.oracle

X = np.random.default_rng(3).normal(size=(3, 3))
PIVOTS = np.array([2, 3, 3], np.int32)


def bad(torch: Any) -> dict[str, Callable[[], Any]]:
    """Return calls that torch refuses."""
    linalg, x, pivots = torch.linalg, torch.from_numpy(X.copy()), torch.from_numpy(PIVOTS.copy())
    ones, halves, integers = torch.ones, x.half(), x.long()
    tau = torch.ones(3, dtype=torch.float64)
    square = [linalg.cholesky, linalg.cholesky_ex, linalg.eig, linalg.eigvals, linalg.eigh, linalg.eigvalsh]
    square += [linalg.ldl_factor, torch.cholesky, torch.cholesky_inverse]
    others = [linalg.qr, linalg.svd, linalg.svdvals, linalg.lu, linalg.lu_factor, linalg.lu_factor_ex]
    others += [torch.geqrf, torch.lu, torch.qr, torch.svd]
    calls: dict[str, Callable[[], Any]] = {}
    for k, function in enumerate([*square, *others]):
        calls[f"{k} vector"] = lambda f=function: f(x[0])
        calls[f"{k} number"] = lambda f=function: f(x[0, 0])
        calls[f"{k} half"] = lambda f=function: f(halves)
        calls[f"{k} integers"] = lambda f=function: f(integers)
        calls[f"{k} bool"] = lambda f=function: f(x > 0)
    for k, function in enumerate(square):
        calls[f"{k} not square"] = lambda f=function: f(x[:2])
    return calls | {
        "qr mode": lambda: linalg.qr(x, mode="economic"),
        "eigh triangle": lambda: linalg.eigh(x, UPLO="X"),
        "svd driver": lambda: linalg.svd(x, driver="gesvd"),
        "lu without pivots": lambda: linalg.lu(x, pivot=False),
        "lu_factor without pivots": lambda: linalg.lu_factor(x, pivot=False),
        "lu_solve dtype": lambda: linalg.lu_solve(x, pivots, ones(3, 1)),
        "lu_solve pivots": lambda: linalg.lu_solve(x, pivots.long(), x),
        "lu_solve shape": lambda: linalg.lu_solve(x, pivots, x[:2]),
        "lu_solve shape on the right": lambda: linalg.lu_solve(x, pivots, x[:, :2], left=False),
        "lu_solve not square": lambda: linalg.lu_solve(x[:2], pivots, x),
        "lu_solve number of pivots": lambda: linalg.lu_solve(x, pivots[:2], x),
        "lu_solve batch of pivots": lambda: linalg.lu_solve(x[None], pivots, x),
        "lu_solve vector": lambda: linalg.lu_solve(x, pivots, x[0]),
        "lu_solve half": lambda: linalg.lu_solve(halves, pivots, halves),
        "lu_solve integers": lambda: linalg.lu_solve(integers, pivots, integers),
        "lu_unpack vector": lambda: torch.lu_unpack(x[0], pivots),
        "lu_unpack dtype": lambda: torch.lu_unpack(x, pivots.long()),
        "lu_unpack pivots": lambda: torch.lu_unpack(x, pivots * 5),
        "householder vector": lambda: linalg.householder_product(x[0], tau),
        "householder wide": lambda: linalg.householder_product(x[:2], tau),
        "householder too many": lambda: linalg.householder_product(x[:, :2], tau),
        "householder rank": lambda: linalg.householder_product(x, x[:2]),
        "householder batch": lambda: linalg.householder_product(x[None], x[:2]),
        "householder dtype": lambda: linalg.householder_product(x, tau.float()),
        "ormqr vector": lambda: torch.ormqr(x[0], tau, x),
        "ormqr other": lambda: torch.ormqr(x, tau, x[0]),
        "ormqr rows": lambda: torch.ormqr(x, tau, x[:2]),
        "ormqr columns": lambda: torch.ormqr(x, tau, x[:, :2], left=False),
        "ormqr count": lambda: torch.ormqr(x, tau[:2], x),
        "ormqr rank": lambda: torch.ormqr(x[None], tau[None], x),
        "ormqr batch": lambda: torch.ormqr(x[None], torch.ones(2, 3, dtype=torch.float64), x[None]),
        "ormqr dtype": lambda: torch.ormqr(x, tau.float(), x),
        "ormqr half": lambda: torch.ormqr(halves, tau.half(), halves),
        "cholesky_solve vector": lambda: torch.cholesky_solve(x[0], x),
        "cholesky_solve factor": lambda: torch.cholesky_solve(x, x[0]),
        "cholesky_solve not square": lambda: torch.cholesky_solve(x, x[:2]),
        "cholesky_solve shape": lambda: torch.cholesky_solve(x[:2], x),
        "cholesky_solve dtype": lambda: torch.cholesky_solve(x.float(), x),
        "cholesky_solve half": lambda: torch.cholesky_solve(halves, halves),
        "cholesky_inverse singular": lambda: torch.cholesky_inverse(torch.zeros(2, 2)),
        "cholesky_inverse singular batch": lambda: torch.cholesky_inverse(torch.zeros(2, 2, 2)),
        "ldl_solve shape": lambda: linalg.ldl_solve(x, pivots, x[:2]),
        "ldl_solve pivots": lambda: linalg.ldl_solve(x, pivots.double(), x),
        "ldl_solve number of pivots": lambda: linalg.ldl_solve(x, pivots[:2], x),
        "pca q": lambda: torch.pca_lowrank(x, q=9),
        "pca niter": lambda: torch.pca_lowrank(x, niter=-1),
    }


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", bad(theirs))
def test_bad_arguments(name: str) -> None:
    ours, wanted = (outcome(bad(t)[name], words=first_line, ignore_warnings=False) for t in (retrograd, theirs))
    assert isinstance(wanted, Raised), wanted
    assert isinstance(ours, Raised), ours
    assert ours == wanted


# torch 2.13's tangent of cholesky_inverse differs from finite differences, so the table does not compare it
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("kind", ["float64", "complex128"])
def test_cholesky_inverse(kind: str, upper: bool) -> None:
    beside = 1j * (X.T - np.diag(np.diag(X))) if kind == "complex128" else 0  # a factor's diagonal is real
    start = (X + 3 * np.eye(3) + beside).astype(kind)

    def gradients(torch: Any) -> Any:
        x = torch.from_numpy(start.copy()).requires_grad_()
        out = torch.cholesky_inverse(x, upper=upper)
        weights = torch.from_numpy(np.arange(9.0).reshape(3, 3).astype(kind))
        (first,) = torch.autograd.grad(out, x, weights, create_graph=True)
        (second,) = torch.autograd.grad(first, x, weights)
        return [t.detach().resolve_conj().numpy() for t in (out, first, second)]

    for ours, wanted in zip(gradients(retrograd), gradients(theirs), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-8, atol=1e-10)


@pytest.mark.parametrize("dtype", ["float32", "float64", "complex128"])
def test_low_rank_decompositions_draw_torchs_numbers(dtype: str) -> None:
    start = np.random.default_rng(5).normal(size=(6, 4)).astype(dtype)

    def found(torch: Any) -> Any:
        torch.manual_seed(11)
        return [t.abs().numpy() for t in torch.svd_lowrank(torch.from_numpy(start.copy()), q=3, niter=1)]

    for ours, wanted in zip(found(retrograd), found(theirs), strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=2e-4, atol=2e-4)
