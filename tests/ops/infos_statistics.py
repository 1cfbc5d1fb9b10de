"""Covariances, quantiles, differences, integrals, counts."""

from __future__ import annotations

from tests.ops.opinfo import NOT_ZERO, POSITIVE, F, K, Op, S

OPS: list[Op] = []
REAL = ("float32", "float64")


def add(name, samples, call=None, **options):
    """Add a function whose keywords are torch's."""
    OPS.append(Op(name, call or (lambda torch, *xs, **kw: getattr(torch, name)(*xs, **kw)), samples, **options))


# ---- covariances ----
COUNTS = K([1, 2, 3, 1], batched=False)
add("cov", (S(F(3, 4)), S(F(3, 4), correction=0), S(F(3, 4, layout="transposed"))), complex=True)
add("cov_vector", (S(F(4)), S(F(4), correction=0)), lambda torch, x, **kw: torch.cov(x, **kw))
add(
    "cov_weighted",
    (S(F(3, 4), F(4, domain=POSITIVE)), S(F(4), F(4, domain=POSITIVE))),
    lambda torch, x, w: torch.cov(x, aweights=w),
    oracle_dtypes=REAL,
)
add("cov_counted", (S(F(3, 4), COUNTS),), lambda torch, x, n: torch.cov(x, fweights=n), oracle_dtypes=REAL)
add("corrcoef", (S(F(3, 4)), S(F(2, 5))), complex=True)

# ---- quantiles ----
for _name in ("quantile", "nanquantile"):
    for _kind in ("linear", "lower", "higher", "midpoint", "nearest"):
        add(
            f"{_name}_{_kind}",
            (
                S(F(), 0.5),
                S(F(5), 0.3),
                S(F(3, 4), 0.6, dim=0),
                S(F(3, 4), 0.6, dim=1, keepdim=True),
                S(F(2, 3), 0.3, keepdim=True),
            ),
            lambda torch, x, q, name=_name, kind=_kind, **kw: getattr(torch, name)(x, q, interpolation=kind, **kw),
            oracle_dtypes=REAL,
        )
    add(
        f"{_name}_several",
        (S(F(5), F(2)), S(F(3, 4), F(2), dim=0), S(F(3, 4), F(1), dim=-1, keepdim=True), S(F(3, 4), F(3))),
        lambda torch, x, q, name=_name, **kw: getattr(torch, name)(x, q, **kw),
        domain=((0.11, 0.87),),
        oracle_dtypes=REAL,
    )

# ---- differences ----
add(
    "diff",
    (S(F(4)), S(F(2, 4)), S(F(2, 4), dim=0), S(F(2, 4), n=2), S(F(2, 4), n=0), S(F(3), n=5), S(F(0)), S(F(1))),
    complex=True,
)
add(
    "diff_joined",
    (S(F(2, 4), F(2, 1), F(2, 2)), S(F(3), F(1), F(1))),
    lambda torch, x, a, b: torch.diff(x, prepend=a, append=b),
    complex=True,
)
add(
    "gradient",
    (
        S(F(4)),
        S(F(3, 4)),
        S(F(3, 4), dim=0),
        S(F(3, 4), spacing=2.0),
        S(F(3, 4), spacing=[2.0, 3.0], edge_order=2),
        S(F(3, 4), dim=(1,), edge_order=2),
    ),
    complex=True,
)
add(
    "gradient_at",
    (S(F(3, 4), F(3)), S(F(4), F(4)), S(F(4), F(4), edge_order=2)),
    lambda torch, x, at, **kw: torch.gradient(x, spacing=(at.cumsum(0),), dim=0, **kw),
    domain=POSITIVE,
    oracle_dtypes=REAL,
)
for _name in ("trapezoid", "trapz", "cumulative_trapezoid"):
    add(_name, (S(F(4)), S(F(2, 4)), S(F(2, 4), dim=0), S(F(2, 4), dx=0.5), S(F(2, 1))), complex=True)
    add(
        f"{_name}_at",
        (S(F(4), F(4)), S(F(2, 4), F(4)), S(F(2, 4), F(2, 4)), S(F(2, 4), F(2), dim=0)),
        lambda torch, y, x, name=_name, **kw: getattr(torch, name)(y, x, **kw),
        complex=True,
    )

# ---- counts: no derivative ----
EDGES = K([0.0, 0.5, 1.0, 1.5], batched=False)
add(
    "bucketize",
    (S(F(3)), S(F(2, 3)), S(F()), S(F(0)), S(F(2, 3), right=True), S(F(3), out_int32=True)),
    lambda torch, x, **kw: torch.bucketize(x, torch.arange(-2, 3), **kw),
    differentiable=False,
)
add(
    "searchsorted",
    (
        S(F(4), F(3)),
        S(F(4), F(2, 3)),
        S(F(2, 4), F(2, 3)),
        S(F(2, 2, 4), F(2, 2, 1)),
        S(F(4), F()),
        S(F(2, 4), F(2, 3), side="right"),
        S(F(4), F(3), right=True),
        S(F(0), F(2)),
    ),
    lambda torch, rows, x, **kw: torch.searchsorted(rows.sort().values, x, **kw),
    differentiable=False,
)
add(
    "searchsorted_by",
    (S(F(4), F(3)), S(F(2, 4), F(2, 3))),
    lambda torch, rows, x: torch.searchsorted(rows, x, sorter=rows.argsort()),
    differentiable=False,
)
add(
    "histc",
    (S(F(9)), S(F(3, 4)), S(F(9), bins=3), S(F(9), bins=3, min=-1, max=1), S(F(1))),
    lambda torch, x, **kw: torch.histc(x, **{"bins": 5, **kw}),
    differentiable=False,
)
add(
    "histogram",
    (S(F(9)), S(F(3, 4)), S(F(9), range=(-1.0, 1.0)), S(F(9), density=True)),
    lambda torch, x, **kw: tuple(torch.histogram(x.detach(), 4, **kw)),
    differentiable=False,
)
add(
    "histogram_weighted",
    (S(F(9), F(9)), S(F(3, 4), F(3, 4), density=True)),
    lambda torch, x, w, **kw: tuple(torch.histogram(x.detach(), 4, weight=w.detach(), **kw)),
    domain=NOT_ZERO,
    differentiable=False,
)
add(
    "histogramdd",
    (S(F(9, 2)), S(F(3, 4, 1)), S(F(9, 2), density=True)),
    lambda torch, x, **kw: torch.histogramdd(x.detach(), 3, **kw)[0],
    differentiable=False,
    batching=False,
)
add(
    "bincount",
    (S(K([1, 2, 2, 0, 5])), S(K([1, 2, 2]), minlength=6)),
    differentiable=False,
    batching=False,
)
