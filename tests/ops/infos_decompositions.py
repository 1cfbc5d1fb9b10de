"""Decompositions of matrices. What is unique up to a sign or a phase is tested by what is not: absolute values, products."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import F, Op, S, Sample, deprecated

Q2 = ((-0.6, 0.6),)  # small numbers, which an identity is added to
SQUARE = (S(F(3, 3)), S(F(2, 2, 2)), S(F(1, 1)), S(F(3, 3, layout="transposed")))
SHAPES = (S(F(3, 3)), S(F(4, 2)), S(F(2, 4)), S(F(2, 3, 2)), S(F(2, 2, 3)))
NO_SQUARE = (S(F(0, 0)), S(F(0, 2, 2)))
NOTHING = (*NO_SQUARE, S(F(0, 3)), S(F(3, 0)), S(F(0, 3, 2)))
COMPUTED = ("float64", "complex128", "float32")  # torch refuses half precision, but not always where there is nothing


def regular(torch: Any, x: Any) -> Any:
    """Return a matrix that is far from singular, and whose eigenvalues are apart."""
    n = min(x.shape[-2:])
    ramp = torch.zeros(*x.shape[-2:], dtype=x.dtype)
    for k in range(n):
        ramp[k, k] = 3 * (k + 1)
    return x + ramp


def positive(torch: Any, x: Any) -> Any:
    """Return a positive-definite matrix with eigenvalues that are apart."""
    return regular(torch, x @ x.mH)


def with_options(samples: tuple[Sample, ...], *options: dict[str, Any]) -> tuple[Sample, ...]:
    return tuple(S(*sample.inputs, **one) for sample in samples for one in options)


UPPER = ({}, {"upper": True})


def eigh(torch: Any, x: Any, **options: Any) -> Any:
    values, vectors = torch.linalg.eigh(positive(torch, x), **options)
    weights = vectors.abs() ** 2
    return values, weights, (weights * values.sin().unsqueeze(-2)).sum(-1)


def eig(torch: Any, x: Any) -> Any:
    values, vectors = torch.linalg.eig(regular(torch, x))
    # neither the order of eigenvalues nor the phase of vectors is the same everywhere
    weights = vectors.abs() ** 2
    return (values * values).sum(-1), values.sin().sum(-1), (weights * values.real.unsqueeze(-2)).sum(-1)


def svd(torch: Any, x: Any, **options: Any) -> Any:
    u, s, vh = torch.linalg.svd(regular(torch, x), full_matrices=False, **options)
    turned = u.transpose(-1, -2).unsqueeze(-1) * s.sin().unsqueeze(-1).unsqueeze(-1) * vh.unsqueeze(-2)
    return u.abs() ** 2, s, vh.abs() ** 2, turned.sum(-3)


def svd_full(torch: Any, x: Any) -> Any:
    k = min(x.shape[-2:])
    u, s, vh = torch.linalg.svd(regular(torch, x))
    return u[..., :k].abs(), s, vh[..., :k, :].abs()


def svd_only(torch: Any, x: Any, which: int) -> Any:
    return torch.linalg.svd(regular(torch, x), full_matrices=False)[which].abs()


def old_svd(torch: Any, x: Any, **options: Any) -> Any:
    u, s, v = torch.svd(regular(torch, x), **options)
    k = min(x.shape[-2:])
    return u[..., :k].abs(), s, v[..., :k].abs()


def qr(torch: Any, x: Any, **options: Any) -> Any:
    return torch.linalg.qr(regular(torch, x), **options)


def lu_factor(torch: Any, x: Any, **options: Any) -> Any:
    packed, _, info = torch.linalg.lu_factor_ex(regular(torch, x), **options)
    return packed, info


def solved(torch: Any, x: Any, b: Any, **options: Any) -> Any:
    packed, pivots = torch.linalg.lu_factor(regular(torch, x))
    return torch.linalg.lu_solve(packed, pivots, b, **options)


def old_solved(torch: Any, x: Any, b: Any) -> Any:
    return torch.lu_solve(b, *torch.lu(regular(torch, x)))


def unpacked(torch: Any, x: Any, **options: Any) -> Any:
    packed, pivots = torch.linalg.lu_factor(regular(torch, x))
    return torch.lu_unpack(packed, pivots, **options)


def ldl_solved(torch: Any, x: Any, b: Any, **options: Any) -> Any:
    packed, pivots = torch.linalg.ldl_factor(positive(torch, x), **options)
    return torch.linalg.ldl_solve(packed, pivots, b, **options)


def low_rank(torch: Any, x: Any, **options: Any) -> Any:
    torch.manual_seed(3)
    u, s, v = torch.svd_lowrank(regular(torch, x), **options)
    return (u * s.unsqueeze(-2)) @ v.mH


def principal(torch: Any, x: Any, **options: Any) -> Any:
    torch.manual_seed(3)
    u, s, v = torch.pca_lowrank(regular(torch, x), **options)
    return (u * s.unsqueeze(-2)) @ v.mH


SYSTEMS = (
    S(F(3, 3), F(3, 2)),
    S(F(2, 2, 2), F(2, 3)),
    S(F(2, 2), F(3, 2, 1)),
    S(F(2, 1, 2, 2), F(3, 2, 1)),
    S(F(2, 2), F(2, 0)),
)
NO_SYSTEMS = (S(F(0, 0), F(0, 2)), S(F(0, 2, 2), F(2, 1)))
SQUARE_SYSTEMS = (S(F(3, 3), F(3, 3)), S(F(2, 2, 2), F(2, 2)), S(F(2, 2), F(2, 2, 2)))
REFLECTORS = (
    S(F(3, 3), F(3)),
    S(F(4, 2), F(2)),
    S(F(4, 3), F(2)),
    S(F(2, 3, 2), F(2, 2)),
    S(F(3, 2), F(0)),
    S(F(3, 0), F(0)),
    S(F(0, 3, 2), F(0, 2)),
)
PRODUCTS = (S(F(3, 3), F(3), F(3, 3)), S(F(3, 2), F(2), F(3, 3)), S(F(2, 3, 2), F(2, 2), F(2, 3, 3)))
SIDES = tuple({"left": left, "transpose": transpose} for left in (True, False) for transpose in (True, False))

OPS = [
    Op(
        "linalg.cholesky",
        lambda torch, x, **kw: torch.linalg.cholesky(positive(torch, x), **kw),
        with_options(SQUARE, *UPPER),
        complex=True,
    ),
    Op(
        "linalg.cholesky_ex",
        lambda torch, x, **kw: torch.linalg.cholesky_ex(positive(torch, x), **kw),
        with_options(SQUARE[:2], *UPPER),
        complex=True,
    ),
    Op(
        "cholesky",
        deprecated(lambda torch, x, **kw: torch.cholesky(positive(torch, x), **kw)),
        with_options(SQUARE[:3], *UPPER),
        complex=True,
    ),
    Op(
        "cholesky_solve",
        lambda torch, x, b, **kw: torch.cholesky_solve(b, torch.linalg.cholesky(positive(torch, x), **kw), **kw),
        with_options(SYSTEMS, *UPPER),
        complex=True,
    ),
    Op(
        "cholesky_inverse",
        lambda torch, x, **kw: torch.cholesky_inverse(torch.linalg.cholesky(positive(torch, x), **kw), **kw),
        with_options(SQUARE, *UPPER),
        complex=True,
        oracle_dtypes=(
            "float16",
            "bfloat16",
            "int64",
        ),  # torch 2.13's tangents are wrong; tests/linalg compares the rest
    ),
    Op("linalg.eigh", eigh, with_options(SQUARE, {}, {"UPLO": "U"}), complex=True, domain=Q2),
    Op(
        "linalg.eigvalsh",
        lambda torch, x, **kw: torch.linalg.eigvalsh(positive(torch, x), **kw),
        with_options(SQUARE, {}, {"UPLO": "U"}),
        complex=True,
    ),
    Op("linalg.eig", eig, SQUARE, complex=True, domain=Q2),
    Op(
        "linalg.eigvals",
        lambda torch, x: (torch.linalg.eigvals(regular(torch, x)) ** 2).sum(-1),
        SQUARE,
        complex=True,
        domain=Q2,
    ),
    Op("linalg.svd", svd, SHAPES, complex=True, domain=Q2),
    Op("linalg.svd_full", svd_full, SHAPES, complex=True, domain=Q2),
    Op(
        "linalg.svd_only",
        svd_only,
        with_options(SHAPES[:3], {"which": 0}, {"which": 1}, {"which": 2}),
        complex=True,
        domain=Q2,
    ),
    Op("linalg.svdvals", lambda torch, x: torch.linalg.svdvals(regular(torch, x)), SHAPES, complex=True, domain=Q2),
    Op("svd", old_svd, with_options(SHAPES[:5], {}, {"some": False}), complex=True, domain=Q2),
    Op(
        "svd_values",
        lambda torch, x: torch.svd(regular(torch, x), compute_uv=False),
        SHAPES[:5],
        complex=True,
        domain=Q2,
    ),
    Op("linalg.qr", qr, SHAPES, complex=True),
    Op("linalg.qr_complete", qr, with_options((S(F(3, 3)), S(F(2, 2, 4))), {"mode": "complete"}), complex=True),
    Op("linalg.qr_r", lambda torch, x: torch.linalg.qr(x.detach(), mode="r")[1], SHAPES, differentiable=False),
    Op(
        "qr",
        deprecated(lambda torch, x, **kw: torch.qr(regular(torch, x), **kw)),
        with_options(SHAPES[:3], {}),
        complex=True,
    ),
    Op("geqrf", lambda torch, x: torch.geqrf(x.detach()), SHAPES, differentiable=False),
    Op(
        "linalg.householder_product",
        lambda torch, x, tau: torch.linalg.householder_product(x, tau),
        REFLECTORS,
        complex=True,
    ),
    Op("orgqr", lambda torch, x, tau: torch.orgqr(x, tau), REFLECTORS[:2], complex=True),
    Op(
        "ormqr",
        lambda torch, x, tau, other, **kw: torch.ormqr(x, tau, other, **kw),
        with_options(PRODUCTS, *SIDES),
        complex=True,
    ),
    Op("linalg.lu", lambda torch, x: torch.linalg.lu(regular(torch, x))[1:], SHAPES, complex=True),
    Op("linalg.lu_factor", lambda torch, x: torch.linalg.lu_factor(regular(torch, x)), SHAPES, complex=True),
    Op("linalg.lu_factor_ex", lu_factor, SHAPES, complex=True),
    Op("lu", deprecated(lambda torch, x: torch.lu(regular(torch, x))), SHAPES[:3], complex=True),
    Op("lu_unpack", unpacked, with_options(SHAPES, {}, {"unpack_pivots": False}), complex=True),
    Op(
        "linalg.lu_solve",
        solved,
        with_options(SYSTEMS, {}, {"adjoint": True})
        + with_options(SQUARE_SYSTEMS, {"left": False}, {"left": False, "adjoint": True}),
        complex=True,
    ),
    Op("lu_solve", deprecated(old_solved), SYSTEMS[:3], complex=True),
    Op(
        "linalg.ldl_factor",
        lambda torch, x, **kw: torch.linalg.ldl_factor(positive(torch, x.detach()), **kw),
        with_options(SQUARE, {}, {"hermitian": True}),
        differentiable=False,
    ),
    Op(
        "linalg.ldl_solve",
        lambda torch, x, b, **kw: ldl_solved(torch, x.detach(), b.detach(), **kw),
        with_options(
            (SYSTEMS[0], S(F(2, 2, 2), F(2, 2, 3))), {}, {"hermitian": True}
        ),  # torch crashes where it broadcasts
        differentiable=False,
    ),
    Op(
        "svd_lowrank",
        low_rank,
        (S(F(3, 3)), S(F(4, 3), q=3), S(F(3, 5))),
        batching=False,
        complex=True,
        domain=Q2,
        oracle_dtypes=COMPUTED,
    ),
    Op(
        "pca_lowrank",
        principal,
        (S(F(4, 3)), S(F(4, 3), center=False)),
        batching=False,
        complex=True,
        domain=Q2,
        oracle_dtypes=COMPUTED,
    ),
]


def _of_nothing(name: str, call: Any, samples: tuple[Sample, ...]) -> Op:
    return Op(f"{name}_of_nothing", call, samples, complex=True, oracle_dtypes=COMPUTED)


OPS += [
    _of_nothing("linalg.cholesky", lambda torch, x: torch.linalg.cholesky(x), NO_SQUARE),
    _of_nothing("cholesky_inverse", lambda torch, x: torch.cholesky_inverse(x), NO_SQUARE),
    _of_nothing("cholesky_solve", lambda torch, x, b: torch.cholesky_solve(b, x), NO_SYSTEMS),
    _of_nothing("linalg.eigh", lambda torch, x: torch.linalg.eigh(x), NO_SQUARE),
    _of_nothing("linalg.eigvalsh", lambda torch, x: torch.linalg.eigvalsh(x), NO_SQUARE),
    _of_nothing("linalg.eig", lambda torch, x: torch.linalg.eig(x), NO_SQUARE),
    _of_nothing("linalg.eigvals", lambda torch, x: torch.linalg.eigvals(x), NO_SQUARE),
    _of_nothing("linalg.svd", lambda torch, x: torch.linalg.svd(x, full_matrices=False), NOTHING),
    _of_nothing("linalg.svdvals", lambda torch, x: torch.linalg.svdvals(x), NOTHING),
    _of_nothing("linalg.qr", lambda torch, x: torch.linalg.qr(x), NOTHING),
    _of_nothing("linalg.lu", lambda torch, x: torch.linalg.lu(x)[1:], NOTHING),
    _of_nothing("linalg.lu_factor_ex", lambda torch, x: torch.linalg.lu_factor_ex(x), NOTHING),
    _of_nothing("linalg.lu_solve", solved, NO_SYSTEMS),
    _of_nothing("lu_unpack", unpacked, NOTHING),
]
