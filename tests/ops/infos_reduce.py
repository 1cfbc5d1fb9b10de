"""Reductions and what goes along one dimension."""

from __future__ import annotations

import math

from tests.ops.opinfo import EVERYWHERE, NOT_ZERO, POSITIVE, F, Op, S, per_dim

OPS: list[Op] = []


def reduction(name, samples, *, method=False, domain=EVERYWHERE, **options):
    """Add a function whose keywords are torch's."""

    def call(torch, x, **kw):
        return getattr(torch, name)(x, **kw)

    OPS.append(Op(name, call, samples, domain=domain, **options))


SEVERAL = per_dim(all_dims=True, several=True)
EMPTY = (S(F(0), dim=0), S(F(2, 0), dim=1), S(F(0)), S(F(2, 0, 3), dim=1, keepdim=True))
reduction("sum", (*SEVERAL, *EMPTY, S(F(2, 3), dim=[0, 1]), S(F(2, 3), dim=())), complex=True)
reduction("mean", (*SEVERAL, S(F(2, 0), dim=0)), complex=True)
reduction("prod", (*per_dim(all_dims=True), S(F(0)), S(F(2, 0), dim=1)), domain=NOT_ZERO, complex=True)
reduction("nansum", (*SEVERAL, *EMPTY))
reduction("nanmean", (*SEVERAL, S(F(2, 0), dim=0)))
reduction("amax", (*SEVERAL, S(F(2, 3), dim=())))
reduction("amin", (*SEVERAL, S(F(2, 3), dim=())))
reduction("max", per_dim(all_dims=True))
reduction("min", per_dim(all_dims=True))
reduction("aminmax", per_dim(all_dims=True))
reduction("logsumexp", (*per_dim(several=True), S(F(2, 0), dim=0)), complex=True)
ALONG = (*per_dim(keepdim=False), S(F(0), dim=0), S(F(2, 0), dim=1))
reduction("softmax", ALONG)
reduction("log_softmax", ALONG)
reduction("msort", (S(F()), S(F(3)), S(F(2, 3)), S(F(2, 3, layout="transposed")), S(F(0)), S(F(2, 0))))
reduction("sort", (*ALONG, S(F(2, 3)), S(F(2, 3), dim=0, descending=True), S(F(4), dim=-1, stable=True)))

SPREAD = (
    S(F(3)),
    S(F(2, 3)),
    S(F(2, 3), dim=1),
    S(F(2, 3), dim=0, keepdim=True),
    S(F(2, 3, 2), dim=(0, 2)),
    S(F(2, 3), dim=1, unbiased=False),
    S(F(2, 3), dim=1, correction=0),
    S(F(2, 4), dim=1, correction=2),
    S(F(2, 4), dim=-1, correction=0.5),
    S(F(2, 3, layout="transposed"), dim=0),
    S(F(2, 3), dim=None, keepdim=True),
)
for _name in ("var", "std", "var_mean", "std_mean"):
    reduction(_name, SPREAD, complex=True)
OPS.append(Op("var_biased", lambda torch, x: torch.var(x, False), (S(F(3)), S(F(2, 3))), complex=True))
NORM = (
    S(F(3)),
    S(F()),
    S(F(2, 3)),
    S(F(2, 3), dim=1),
    S(F(2, 3, 2), dim=(0, 2)),
    S(F(2, 3), dim=0, keepdim=True),
)
for _p in (2, 1, math.inf, -math.inf, 0, 3, 2.5, 0.5, -1):
    OPS.append(
        Op(
            f"norm_{_p}",
            lambda torch, x, p=_p, **kw: torch.norm(x, p, **kw),
            NORM,
            domain=NOT_ZERO,
            complex=True,
        )
    )
OPS.append(Op("norm", lambda torch, x, **kw: torch.norm(x, **kw), NORM, domain=NOT_ZERO, complex=True))
OPS.append(Op("norm_method", lambda torch, x: x.norm(), NORM[:3], domain=POSITIVE, complex=True))
OPS.append(Op("sum_dtype", lambda torch, x: torch.sum(x, dtype=torch.float64), (S(F(2, 3)), S(F()))))
OPS.append(Op("sum_dim_dtype", lambda torch, x: x.sum(0, dtype=torch.float64), (S(F(2, 3)), S(F(3)))))
OPS.append(Op("mean_dtype", lambda torch, x: torch.mean(x, 0, dtype=torch.float64), (S(F(2, 3)), S(F(3)))))
OPS.append(Op("prod_dtype", lambda torch, x: torch.prod(x, 0, dtype=torch.float64), (S(F(2, 3)), S(F(3)))))
OPS.append(Op("softmax_dtype", lambda torch, x: torch.softmax(x, 0, dtype=torch.float64), (S(F(2, 3)), S(F(3)))))
OPS.append(Op("max_of_two", lambda torch, x, y: torch.max(x, y), (S(F(2, 3), F(3)), S(F(), F()))))
OPS.append(Op("min_of_two", lambda torch, x, y: torch.min(x, y), (S(F(2, 3), F(3)), S(F(), F()))))

OPS.append(Op("max_other", lambda torch, x, y: torch.max(x, other=y), (S(F(2, 3), F(3)),)))

# ---- no derivative ----
OPS.append(
    Op(
        "count_nonzero",
        lambda torch, x, **kw: torch.count_nonzero(x, **kw),
        (S(F()), S(F(3)), S(F(2, 3), dim=0), S(F(2, 3), dim=-1), S(F(2, 3, 2), dim=(0, 2)), S(F(0, 3), dim=1)),
        differentiable=False,
    )
)
for _name in ("argmax", "argmin", "any", "all"):
    OPS.append(
        Op(
            _name,
            lambda torch, x, name=_name, **kw: getattr(torch, name)(x, **kw),
            (*per_dim(all_dims=True), S(F(2, 3), keepdim=True)) if _name.startswith("arg") else per_dim(all_dims=True),
            differentiable=False,
        )
    )
OPS.append(
    Op(
        "argsort",
        lambda torch, x, **kw: torch.argsort(x, **kw),
        (S(F(2, 3)), S(F(2, 3), dim=0), S(F(4), descending=True), S(F()), S(F(4), stable=True)),
        differentiable=False,
    )
)
