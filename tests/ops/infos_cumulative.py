"""Running sums, products, extremes and log-sums."""

from __future__ import annotations

from tests.ops.opinfo import NOT_ZERO, F, Op, S, per_dim

OPS: list[Op] = []
ALONG = (*per_dim(keepdim=False), S(F(0), dim=0), S(F(2, 0), dim=1))
LONG = S(F(70), dim=0)  # from 64 on a recurrence is cut into chunks


def along(name, samples=ALONG, **options):
    """Add a function along one dimension."""
    OPS.append(Op(name, lambda torch, x, **kw: getattr(torch, name)(x, **kw), samples, **options))


along("cumsum", complex=True)
along("cumprod", complex=True, domain=NOT_ZERO)
# torch's second derivative is NaN where a gradient is negative; finite differences check ours
along("logcumsumexp", complex=True, oracle_dtypes=("float32", "bfloat16", "float16", "int64", "bool"))
along("cummax")
along("cummin")
for _name in ("cumsum", "cumprod"):
    OPS.append(
        Op(
            f"{_name}_dtype",
            lambda torch, x, name=_name: getattr(torch, name)(x, 0, dtype=torch.float64),
            (S(F(2, 3)), S(F(3))),
            oracle_dtypes=("float64", "float32", "bfloat16", "int64", "bool"),
        )
    )
    OPS.append(
        Op(
            f"{_name}_",
            lambda torch, x, name=_name: getattr(x.clone(), f"{name}_")(0),
            (S(F(2, 3)), S(F(3))),
            complex=True,
            domain=NOT_ZERO,
        )
    )
OPS.append(Op("cumprod_long", lambda torch, x, dim: torch.cumprod(x, dim), (LONG,), domain=((0.8, 1.25),)))
