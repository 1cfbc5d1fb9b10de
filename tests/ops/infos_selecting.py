"""Elements by rank, frequency and membership."""

from __future__ import annotations

import numpy as np

from tests.ops.opinfo import EVERYWHERE, F, K, Op, S, per_dim

OPS: list[Op] = []
DIMS = per_dim()
DIMS_OR_ALL = (*DIMS, S(F()), S(F(3)), S(F(2, 3)), S(F(4)), S(F(2, 3, layout="transposed")))
REAL = ("float64", "float32")  # torch does not say which of equal elements it takes
LARGER = (S(F(5), dim=0), S(F(3, 5), dim=1), S(F(5, 3), dim=0, keepdim=True), S(F(2, 4, 3), dim=1))


def chosen(name, samples, *leading, domain=EVERYWHERE, **options):
    """Add a function that chooses elements; `leading` are arguments after the tensor."""
    OPS.append(
        Op(name, lambda torch, x, **kw: getattr(torch, name)(x, *leading, **kw), samples, domain=domain, **options)
    )


chosen("kthvalue", (*DIMS, S(F(3))), 1)
OPS.append(Op("kthvalue_2", lambda torch, x, **kw: torch.kthvalue(x, 2, **kw), LARGER, oracle_dtypes=REAL))
chosen("median", (*DIMS_OR_ALL, *LARGER), oracle_dtypes=REAL)
chosen("nanmedian", (*DIMS_OR_ALL, *LARGER), oracle_dtypes=REAL)
chosen("mode", (*DIMS, S(F(3))))
TOP = (S(F()), S(F(3)), S(F(2, 3)), S(F(2, 3), dim=0), S(F(3, 4, layout="transposed"), dim=1), S(F(3), largest=False))
chosen("topk", TOP, 1)
OPS.append(
    Op(
        "topk_2",
        lambda torch, x, **kw: torch.topk(x, 2, **kw),
        (S(F(5)), S(F(2, 3)), S(F(3, 2, 2), dim=0), S(F(4), largest=False), S(F(2, 4), dim=-1, sorted=True)),
    )
)
# from 64 times as many elements as are wanted, only those are sorted
OPS.append(Op("topk_of_many", lambda torch, x, **kw: torch.topk(x, 1, **kw), (S(F(70)), S(F(70), largest=False))))
RENORM = (S(F(2, 3), dim=0), S(F(2, 3), dim=1), S(F(2, 3, 2), dim=-2), S(F(2, 3, layout="transposed"), dim=0))
for _p in (1, 2, 3.0):
    OPS.append(
        Op(
            f"renorm_{_p}",
            lambda torch, x, dim, p=_p: torch.renorm(x, p, dim, 1.7),
            RENORM,
            domain=((0.3, 2.1),),
            complex=True,
        )
    )
OPS.append(Op("renorm", lambda torch, x, dim: x.renorm(2, dim, 100), RENORM, complex=True))  # nothing to scale
OPS.append(Op("renorm_", lambda torch, x, dim: x.clone().renorm_(2, dim, 1.7), RENORM, domain=((0.3, 2.1),)))

# ---- no derivative ----
NUMBERS = (K([1, 3, 3, 2, 1, 3]), K([[1, 2], [1, 2], [3, 4]]))
FLOATS = (K(np.array([0.5, -0.0, 0.0, np.nan, 0.5, np.nan])), K(np.array([[2.0, 1.0], [2.0, 1.0], [0.5, -0.5]])))
for _name in ("unique", "unique_consecutive"):
    OPS.append(
        Op(
            _name,
            lambda torch, x, name=_name, **kw: getattr(torch, name)(x, **kw),
            tuple(
                S(k, **kw)
                for k in (*NUMBERS, *FLOATS, K(np.zeros((2, 0))), K(3))
                for kw in (
                    {},
                    {"return_inverse": True},
                    {"return_counts": True},
                    {"return_inverse": True, "return_counts": True},
                    {"dim": 0, "return_inverse": True, "return_counts": True},
                    {"dim": 1},
                )
                if k.array.ndim > kw.get("dim", -1)
                and ("dim" not in kw or (k.array.size and not np.isnan(k.array).any()))
            ),
            differentiable=False,
            batching=False,
            oracle_dtypes=("float64",),
        )
    )
OPS.append(
    Op(
        "isin",
        lambda torch, x, y, **kw: torch.isin(x, y, **kw),
        (S(NUMBERS[0], K([3, 2])), S(NUMBERS[1], K([3, 2]), invert=True), S(FLOATS[0], K(np.array([0.0, np.nan])))),
        differentiable=False,
        oracle_dtypes=("float64",),
    )
)
OPS.append(
    Op(
        "hash_tensor",
        lambda torch, x, **kw: torch.hash_tensor(x, **kw).to(torch.int64),
        (S(F()), S(F(3)), S(F(2, 3), dim=0), S(F(2, 3), dim=(0, 1), keepdim=True), S(F(2, 0), dim=0)),
        differentiable=False,
        oracle_dtypes=("float64", "float32", "bfloat16", "float16", "int64", "bool"),
    )
)
