"""Decompositions: what the table of operations cannot say: errors, named results, saved values, batches, degenerate cases."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd._core.numpy_namespace import numpy_namespace
from retrograd._ops import lu as lu_ops
from retrograd._ops import solving

RNG = np.random.default_rng(7)


def matrices(*shape: int, dtype: Any = np.float64) -> Any:
    values = RNG.normal(size=shape)
    return (values + 1j * RNG.normal(size=shape) if np.dtype(dtype).kind == "c" else values).astype(dtype)


def positive(*shape: int) -> Any:
    x = matrices(*shape)
    return torch.from_numpy(x @ x.swapaxes(-1, -2) + np.eye(shape[-1]))


# ---- errors ----
def test_a_matrix_that_is_not_positive_is_named() -> None:
    good, bad = np.eye(2), np.array([[1.0, 2.0], [2.0, 1.0]])
    with pytest.raises(torch.linalg.LinAlgError, match=r"linalg.cholesky: The factorization .* order 2 is not"):
        torch.linalg.cholesky(torch.from_numpy(bad))
    with pytest.raises(RuntimeError, match=r"\(Batch element 1\): The factorization"):
        torch.linalg.cholesky(torch.from_numpy(np.stack([good, bad])))
    factor, info = torch.linalg.cholesky_ex(torch.from_numpy(np.stack([good, bad])))
    assert info.tolist() == [0, 2]
    np.testing.assert_allclose(factor[1].numpy(), [[1.0, 0.0], [2.0, -3.0]], rtol=1e-14)


def test_a_nan_is_not_positive() -> None:
    x = np.eye(3)
    x[1, 0] = np.nan
    assert torch.linalg.cholesky_ex(torch.from_numpy(x)).info.item() == 2


def test_the_error_has_torchs_name() -> None:
    assert torch.linalg.LinAlgError.__name__ == "_LinAlgError"
    assert issubclass(torch.linalg.LinAlgError, RuntimeError)


def test_singular_matrices_have_no_lu_factors_to_solve_with() -> None:
    with pytest.raises(RuntimeError, match=r"torch.linalg.lu_factor: \(Batch element 0\): U\[1,1\] is zero"):
        torch.linalg.lu_factor(torch.zeros(2, 2, 2))
    assert torch.linalg.lu_factor_ex(torch.zeros(12, 2, 2)).info.tolist() == [1] * 12


def test_svd_of_what_is_not_finite() -> None:
    x = torch.full((2, 2), float("nan"))
    for function in (torch.linalg.svd, torch.linalg.svdvals):
        with pytest.raises(torch.linalg.LinAlgError, match="non-finite values"):
            function(x)
    with pytest.raises(RuntimeError, match="should not contain infs or NaNs"):
        torch.linalg.eig(x)


def test_a_gradient_that_depends_on_a_phase_is_refused() -> None:
    x = torch.from_numpy(matrices(3, 3, dtype=np.complex128)).requires_grad_()
    for vectors in (torch.linalg.svd(x)[0], torch.linalg.eig(x)[1], torch.linalg.eigh(x @ x.mH)[1]):
        with pytest.raises(RuntimeError, match=r"e\^{i phi}"):
            vectors.real.sum().backward()


def test_qr_has_a_derivative_where_q_is_known_and_unique() -> None:
    x = torch.from_numpy(matrices(3, 2)).requires_grad_()
    with pytest.raises(RuntimeError, match="not computed when mode='r'"):
        torch.linalg.qr(x, mode="r").R.sum().backward()
    with pytest.raises(RuntimeError, match="nrows > ncols"):
        torch.linalg.qr(x, mode="complete").R.sum().backward()


def test_what_torch_cannot_differentiate() -> None:
    x = positive(3, 3).requires_grad_()
    with pytest.raises(NotImplementedError, match="derivative for 'geqrf'"):
        torch.geqrf(x).tau.sum().backward()
    with pytest.raises(RuntimeError, match="linalg_ldl_factor_ex is not implemented"):
        torch.linalg.ldl_factor(x).LD.sum().backward()


# ---- named results ----
@pytest.mark.filterwarnings("ignore:torch.qr is deprecated")
def test_results_have_torchs_names() -> None:
    x = positive(2, 2)
    names = {
        torch.linalg.qr: "linalg_qr Q R",
        torch.linalg.svd: "linalg_svd U S Vh",
        torch.linalg.eigh: "linalg_eigh eigenvalues eigenvectors",
        torch.linalg.eig: "linalg_eig eigenvalues eigenvectors",
        torch.linalg.lu: "linalg_lu P L U",
        torch.linalg.lu_factor: "linalg_lu_factor LU pivots",
        torch.linalg.lu_factor_ex: "linalg_lu_factor_ex LU pivots info",
        torch.linalg.ldl_factor: "linalg_ldl_factor LD pivots",
        torch.linalg.ldl_factor_ex: "linalg_ldl_factor_ex LD pivots info",
        torch.linalg.cholesky_ex: "linalg_cholesky_ex L info",
        torch.qr: "qr Q R",
        torch.svd: "svd U S V",
        torch.geqrf: "geqrf a tau",
    }
    for function, text in names.items():
        name, *fields = text.split()
        result = function(x)
        assert type(result).__name__ == name
        assert repr(result).startswith(f"torch.return_types.{name}(\n{fields[0]}=tensor(")
        assert all(getattr(result, field) is part for field, part in zip(fields, result, strict=True))


def test_results_go_into_out() -> None:
    x = positive(3, 3)
    targets = (torch.empty(0, dtype=torch.float64), torch.empty(0, dtype=torch.float64))
    result = torch.linalg.eigh(x, out=targets)
    assert result[0] is targets[0]
    np.testing.assert_allclose(targets[0].numpy(), np.linalg.eigvalsh(x.numpy()))


@pytest.mark.parametrize("name", ["cholesky", "det", "eigvalsh", "inv", "svdvals"])
def test_out_has_the_dtype_of_the_result(name: str) -> None:
    out = torch.empty(0, dtype=torch.float64)
    with pytest.raises(RuntimeError, match="Expected out tensor to have dtype float, but got double instead"):
        getattr(torch.linalg, name)(torch.eye(3), out=out)


def test_parts_that_are_not_wanted_are_empty() -> None:
    packed, pivots = torch.linalg.lu_factor(positive(3, 3))
    p, low, high = torch.lu_unpack(packed, pivots, unpack_data=False)
    assert (p.shape, low.numel(), high.numel()) == ((3, 3), 0, 0)
    p, low, high = torch.lu_unpack(packed, pivots, unpack_pivots=False)
    assert (p.numel(), low.shape, high.shape) == (0, (3, 3), (3, 3))


# ---- saved values ----
def decompose(x: Any) -> Any:
    values, vectors = torch.linalg.eigh(x @ x.mT)
    return values, vectors


def test_a_write_into_a_factor_is_noticed() -> None:
    x = torch.from_numpy(matrices(3, 3)).requires_grad_()
    values, vectors = decompose(x)
    with torch.no_grad():
        vectors[0, 0] = 1.0
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        values.sum().backward()


def test_a_node_gives_its_factors_back() -> None:
    x = torch.from_numpy(matrices(3, 3)).requires_grad_()
    values, _ = decompose(x)
    values.sum().backward()
    with pytest.raises(RuntimeError, match="backward through the graph a second time"):
        values.sum().backward()


def test_saved_tensor_hooks_see_the_factors() -> None:
    start = matrices(3, 3)
    seen: list[Any] = []

    def gradients(x: Any) -> Any:
        values, vectors = decompose(x)
        loss = (values * (vectors.abs() ** 2)[0]).sum()
        (first,) = torch.autograd.grad(loss, x, create_graph=True)
        return first, torch.autograd.grad((first**2).sum(), x)[0]

    plain = gradients(torch.from_numpy(start).requires_grad_())

    def pack(tensor: Any) -> Any:
        seen.append(tensor.shape)
        return tensor.detach().numpy().copy()

    with torch.autograd.graph.saved_tensors_hooks(pack, torch.from_numpy):
        hooked = gradients(torch.from_numpy(start).requires_grad_())
    assert (3,) in seen
    for a, b in zip(plain, hooked, strict=True):
        np.testing.assert_allclose(a.detach().numpy(), b.detach().numpy(), rtol=1e-9, atol=1e-13)


def test_factors_do_not_keep_their_node_alive() -> None:
    x = torch.from_numpy(matrices(3, 3)).requires_grad_()
    gc.collect()
    gc.disable()
    try:
        values, vectors = decompose(x)
        node = weakref.ref(values.grad_fn)
        assert node() is not None
        del values, vectors
        assert node() is None
    finally:
        gc.enable()


def test_a_permutation_has_no_gradient() -> None:
    x = torch.from_numpy(matrices(3, 3)).requires_grad_()
    p, low, high = torch.linalg.lu(x)
    assert [part.requires_grad for part in (p, low, high)] == [False, True, True]
    parts = torch.lu_unpack(*torch.linalg.lu_factor(x))
    assert [part.requires_grad for part in parts] == [False, True, True]


# ---- degenerate cases ----
def test_eigenvalues_have_a_gradient_where_they_are_equal() -> None:
    x = torch.eye(3, dtype=torch.float64).requires_grad_()
    torch.linalg.eigvalsh(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), np.eye(3), rtol=1e-14)


def test_eigenvectors_have_none_there() -> None:
    x = torch.eye(2, dtype=torch.float64).requires_grad_()
    (torch.linalg.eigh(x)[1] * torch.tensor([[1.0, 2.0], [3.0, 4.0]])).sum().backward()
    assert not bool((x.grad.abs() < 1e10)[0, 1])  # NaN, or beyond all bounds where the values differ in their last bit


def test_reflectors_that_do_nothing_have_a_gradient() -> None:
    x = torch.from_numpy(matrices(3, 2)).requires_grad_()
    tau = torch.zeros(2, dtype=torch.float64).requires_grad_()
    torch.linalg.householder_product(x, tau).sum().backward()
    v = np.tril(x.detach().numpy(), -1) + np.eye(3, 2)
    np.testing.assert_allclose(tau.grad.numpy(), [-(v[:, k].sum() * v[:2, k].sum()) for k in range(2)])


# ---- batches: many small matrices are done all at once, others one by one ----
@pytest.mark.parametrize("dtype", [np.float64, np.complex128])
@pytest.mark.parametrize("shape", [(3, 3), (4, 2), (2, 4), (1, 1)])
def test_lu_of_many_matrices(shape: tuple[int, int], dtype: Any) -> None:
    x = matrices(lu_ops.FEW + 1, *shape, dtype=dtype)
    x[1] = 0
    together = torch.linalg.lu_factor_ex(torch.from_numpy(x))
    for k in range(len(x)):
        for part, alone in zip(together, torch.linalg.lu_factor_ex(torch.from_numpy(x[k])), strict=True):
            np.testing.assert_allclose(part[k].numpy(), alone.numpy(), atol=1e-12)


@pytest.mark.parametrize("left", [True, False])
@pytest.mark.parametrize("upper", [True, False])
@pytest.mark.parametrize("unitriangular", [True, False])
def test_triangular_systems_in_many_batches(left: bool, upper: bool, unitriangular: bool) -> None:
    a = matrices(solving.FEW + 1, 3, 3) + 3 * np.eye(3)
    b = matrices(solving.FEW + 1, *((3, 2) if left else (2, 3)))
    params = {"left": left, "upper": upper, "unitriangular": unitriangular}
    together = numpy_namespace.solve_triangular(a, b, **params)
    for k in range(len(a)):
        np.testing.assert_allclose(together[k], numpy_namespace.solve_triangular(a[k], b[k], **params), atol=1e-12)


def test_a_singular_triangle_divides_by_zero() -> None:
    a = np.zeros((solving.FEW + 1, 2, 2))
    with np.errstate(all="ignore"):
        out = numpy_namespace.solve_triangular(a, np.ones_like(a), upper=True, left=True, unitriangular=False)
    assert np.isinf(out[:, 1]).all()
