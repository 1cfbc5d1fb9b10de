"""Linear systems, inverses, determinants, functions of matrices, norms and distances."""

from __future__ import annotations

import math
from typing import Any

from tests.ops.opinfo import NOT_ZERO, F, Op, S, deprecated

T = "transposed"
LAPACK = ("float64", "complex128", "float32", "int64", "bool")
SQUARE = (S(F(3, 3)), S(F(2, 3, 3)), S(F(3, 3, layout=T)), S(F(1, 1)))


def away(torch: Any, a: Any) -> Any:
    """Add to the diagonal, so that no matrix is close to a singular one."""
    return a + 4 * torch.eye(a.shape[-1], dtype=a.dtype)


def of_one(name: str, call: Any, samples: Any = SQUARE, **options: Any) -> Op:
    options = {"complex": True, "oracle_dtypes": LAPACK, **options}
    return Op(name, call, samples, **options)


OPS = [
    Op(
        "linalg_solve",
        lambda torch, a, b, **kw: torch.linalg.solve(away(torch, a), b, **kw),
        (
            S(F(3, 3), F(3)),
            S(F(3, 3), F(3, 2)),
            S(F(2, 3, 3), F(2, 3)),
            S(F(2, 3, 3), F(3, 1)),
            S(F(3, 3, layout=T), F(2, 3, 2)),
            S(F(3, 3), F(2, 3), left=False),
            S(F(0, 0), F(0, 2)),
        ),
        complex=True,
        oracle_dtypes=("float64", "complex128", "float32"),
    ),
    Op(
        "linalg_solve_ex",
        lambda torch, a, b: torch.linalg.solve_ex(away(torch, a), b),
        (S(F(3, 3), F(3)), S(F(2, 3, 3), F(2, 3, 2))),
        complex=True,
        oracle_dtypes=("float64", "complex128"),
    ),
    Op(
        "linalg_solve_triangular",
        lambda torch, a, b, **kw: torch.linalg.solve_triangular(away(torch, a), b, **kw),
        (S(F(3, 3), F(3, 2), upper=True), S(F(2, 3, 3), F(2, 3), upper=False, left=False)),
        complex=True,
        oracle_dtypes=("float64", "complex128", "float32"),
    ),
    Op(
        "triangular_solve",
        deprecated(lambda torch, b, a, **kw: torch.triangular_solve(b, away(torch, a).triu(), **kw)),
        (S(F(3, 2), F(3, 3)), S(F(2, 3, 1), F(3, 3), transpose=True)),
        complex=True,
        oracle_dtypes=("float64", "complex128"),
        same_graph=False,
    ),
    of_one("linalg_inv", lambda torch, a: torch.linalg.inv(away(torch, a))),
    of_one("inverse", lambda torch, a: torch.inverse(away(torch, a)), (S(F(3, 3)),)),
    of_one("linalg_inv_ex", lambda torch, a: torch.linalg.inv_ex(away(torch, a))[0], (S(F(2, 3, 3)),)),
    of_one("det", lambda torch, a: torch.det(a), (*SQUARE, S(F(2, 2)), S(F(0, 0)))),
    of_one(
        "linalg_det_of_rank_two", lambda torch, x, y: torch.linalg.det(x @ y), (S(F(4, 2), F(2, 4)),), batching=False
    ),
    of_one("linalg_slogdet", lambda torch, a: torch.linalg.slogdet(away(torch, a))),
    of_one("slogdet", lambda torch, a: torch.slogdet(away(torch, a)), (S(F(3, 3)),)),
    of_one("logdet", lambda torch, a: torch.logdet(away(torch, a)), same_graph=False),
    of_one("linalg_pinv", lambda torch, a: torch.linalg.pinv(a), (S(F(3, 2)), S(F(2, 3)), S(F(2, 3, 2)))),
    of_one("pinverse", lambda torch, a: torch.pinverse(a), (S(F(3, 2)),)),
    of_one(
        "linalg_pinv_of_low_rank",
        lambda torch, x, y: torch.linalg.pinv(x @ y, rtol=1e-8),
        (S(F(4, 2), F(2, 3)),),
        oracle_dtypes=("float64",),
    ),
    of_one(
        "linalg_pinv_hermitian",
        lambda torch, a: torch.linalg.pinv(away(torch, a + a.mH), hermitian=True),
        (S(F(3, 3)),),
        same_graph=False,
    ),
    Op(
        "linalg_lstsq",
        lambda torch, a, b, **kw: torch.linalg.lstsq(a, b, **kw)[:2],
        (
            S(F(4, 2), F(4, 3)),
            S(F(4, 2), F(4), driver="gelsd"),
            S(F(2, 4), F(2, 1), driver="gels"),
            S(F(2, 4, 2), F(2, 4, 1), driver="gelss"),
        ),
        complex=True,
        oracle_dtypes=("float64", "complex128"),
        same_graph=False,
    ),
    of_one(
        "linalg_matrix_rank",
        lambda torch, x, y: torch.linalg.matrix_rank(x @ y),
        (S(F(4, 2), F(2, 3)), S(F(2, 3, 1), F(2, 1, 3))),
        differentiable=False,
        oracle_dtypes=("float64", "complex128"),
    ),
    of_one(
        "matrix_power",
        lambda torch, a, n: torch.matrix_power(away(torch, a), n),
        tuple(S(F(3, 3), n) for n in (0, 1, 2, 3, 5, -2)),
        same_graph=False,
        oracle_dtypes=("float64", "complex128"),
    ),
    of_one("matrix_exp", lambda torch, a: torch.matrix_exp(a), (S(F(2, 2)), S(F(2, 3, 3)))),
    of_one(
        "linalg_vander",
        lambda torch, x, **kw: torch.linalg.vander(x, **kw),
        (S(F(3)), S(F(2, 3), N=4)),
        domain=NOT_ZERO,
        same_graph=False,
        oracle_dtypes=None,
    ),
    of_one(
        "linalg_tensorinv",
        lambda torch, a: torch.linalg.tensorinv(away(torch, a).reshape(2, 2, 4)),
        (S(F(4, 4)),),
        same_graph=False,
    ),
    of_one(
        "linalg_tensorsolve",
        lambda torch, a, b: torch.linalg.tensorsolve(away(torch, a).reshape(2, 2, 4), b),
        (S(F(4, 4), F(2, 2)),),
        same_graph=False,
        oracle_dtypes=("float64", "complex128"),
    ),
    of_one("linalg_diagonal", lambda torch, a: torch.linalg.diagonal(a), oracle_dtypes=None),
    # ---- norms ----
    *[
        of_one(
            f"linalg_cond_{p}",
            lambda torch, a, p=p: torch.linalg.cond(away(torch, a), p),
            (S(F(3, 3)), S(F(2, 3, 3))),
            same_graph=False,
            oracle_dtypes=("float64", "complex128"),
        )
        for p in (None, 1, -1, -2, math.inf, "fro", "nuc")
    ],
    *[
        of_one(
            f"linalg_matrix_norm_{p}",
            lambda torch, a, p=p, **kw: torch.linalg.matrix_norm(a, p, **kw),
            (S(F(2, 3)), S(F(3, 2, 2), dim=(0, 2), keepdim=True), S(F(2, 2, 3), dim=(1, 0))),
            domain=NOT_ZERO,
            same_graph=False,
            oracle_dtypes=("float64", "complex128"),
        )
        for p in (1, -1, 2, -2, math.inf, -math.inf, "fro", "nuc")
    ],
    *[
        of_one(
            f"linalg_vector_norm_{p}",
            lambda torch, x, p=p, **kw: torch.linalg.vector_norm(x, p, **kw),
            (
                S(F(3)),
                S(F(2, 3)),
                S(F(2, 3), dim=1),
                S(F(2, 3, layout=T), dim=0, keepdim=True),
                S(F(2, 3, 2), dim=(0, 2)),
            ),
            domain=NOT_ZERO,
            oracle_dtypes=None,
        )
        for p in (0, 0.5, 1, 1.5, 2, 3, 4.5, -1, -2.5, math.inf, -math.inf)
    ],
    of_one(
        "linalg_norm",
        lambda torch, x, *args, **kw: torch.linalg.norm(x, *args, **kw),
        (
            S(F(3)),
            S(F(2, 3)),
            S(F(2, 3), "fro"),
            S(F(3), 3),
            S(F(2, 3), 1),
            S(F(2, 2, 3), None, (0, 2)),
            S(F(2, 3), 2, 1, True),
        ),
        domain=NOT_ZERO,
        same_graph=False,
        oracle_dtypes=("float64", "complex128"),
    ),
    of_one(
        "norm",
        lambda torch, x, *args, **kw: torch.norm(x, *args, **kw),
        (
            S(F(3)),
            S(F(2, 3)),
            S(F(2, 3), 1),
            S(F(2, 3), 3, dim=0),
            S(F(2, 3), "fro", dim=(0, 1), keepdim=True),
            S(F(2, 3), math.inf, dim=1),
        ),
        domain=NOT_ZERO,
        oracle_dtypes=None,
    ),
    of_one(
        "norm_nuclear",
        lambda torch, x, **kw: torch.norm(x, "nuc", **kw),
        (S(F(2, 3)), S(F(2, 3, 2), dim=(2, 0))),
        same_graph=False,
        oracle_dtypes=("float64", "complex128"),
    ),
    # ---- distances ----
    Op(
        "dist",
        lambda torch, x, y, **kw: torch.dist(x, y, **kw),
        (S(F(2, 3), F(2, 3)), S(F(2, 3), F(3), p=1), S(F(3), F(3), p=3)),
        complex=True,
        same_graph=False,
        oracle_dtypes=("float64", "complex128", "float32"),
    ),
    *[
        Op(
            f"cdist_{p}",
            lambda torch, x, y, p=p: torch.cdist(x, y, p),
            (S(F(3, 2), F(4, 2)), S(F(2, 3, 2), F(3, 2)), S(F(2, 1, 3, 2), F(3, 2, 2))),
            oracle_dtypes=("float64", "float32"),
            same_graph=False,
        )
        for p in (0, 0.5, 1, 1.5, 2, 3)
    ],
    Op(
        "cdist",
        lambda torch, x, y: torch.cdist(x, y),
        (S(F(27, 2), F(3, 2)),),
        oracle_dtypes=("float64",),
        same_graph=False,
    ),
    *[
        Op(
            f"pdist_{p}",
            lambda torch, x, p=p: torch.pdist(x, p),
            (S(F(4, 3)), S(F(2, 3))),
            oracle_dtypes=("float64", "float32"),
            same_graph=False,
            batching=False,
        )
        for p in (1, 2, 3)
    ],
    Op(
        "cdist_infinite",
        lambda torch, x, y: torch.cdist(x, y, math.inf),
        (S(F(3, 2), F(4, 2)),),
        oracle_dtypes=("float64",),
        same_graph=False,
    ),
    Op(
        "pdist_infinite",
        lambda torch, x: torch.pdist(x, math.inf),
        (S(F(2, 3)),),
        oracle_dtypes=("float64",),
        same_graph=False,
    ),
    Op("pdist", lambda torch, x: torch.pdist(x), (S(F(4, 3)),), oracle_dtypes=("float64",), same_graph=False),
]
