"""`torch.masked`."""

from __future__ import annotations

import numpy as np

from tests.ops.opinfo import NOT_ZERO, F, K, Op, S

OPS: list[Op] = []
SOME = K(np.array([[True, False, True], [True, True, False]]))
ROW = K(np.array([False, True, True]))
DIMS = (
    S(F(2, 3), SOME),
    S(F(2, 3), SOME, dim=1),
    S(F(2, 3), SOME, dim=0, keepdim=True),
    S(F(2, 2, 3), SOME, dim=(0, 2)),
)
ALONG = (S(F(2, 3), SOME, dim=1), S(F(3), ROW, dim=0), S(F(2, 3, layout="transposed"), SOME, dim=-1))
REAL = ("float64", "float32")


def masked(name, samples, *leading, **options):
    """Add a function of a tensor and a mask."""

    def call(torch, x, mask, **kw):
        result = getattr(torch.masked, name)(x, *leading, mask=mask, **kw)
        return result.exp() if name == "log_softmax" else result  # no -inf for what is masked out

    def whole(torch, x, **kw):
        return getattr(torch.masked, name)(x, *leading, **kw)

    OPS.append(Op(f"masked.{name}", call, samples, **options))
    unmasked = tuple(S(s.inputs[0], **s.options) for s in samples)
    OPS.append(Op(f"masked.{name}_of_all", whole, unmasked, **options))


for _name in ("sum", "mean"):
    masked(_name, DIMS, complex=True)
masked("prod", DIMS, complex=True, domain=NOT_ZERO)
for _name in ("amax", "amin", "logsumexp"):
    masked(_name, DIMS)
for _name in ("var", "std"):
    # every row has two elements at least; torch divides by a complex number of degrees of freedom
    masked(_name, (*DIMS[:2], DIMS[3]), oracle_dtypes=("float64", "float32", "bfloat16"))
masked("norm", DIMS, 2.0, domain=NOT_ZERO, oracle_dtypes=REAL)
masked("median", ALONG, oracle_dtypes=REAL)
for _name in ("cumsum", "cumprod"):
    masked(_name, ALONG, complex=True, domain=NOT_ZERO)
for _name in ("softmax", "log_softmax", "softmin"):
    masked(_name, ALONG, oracle_dtypes=REAL)
masked("normalize", ALONG, 2.0, domain=NOT_ZERO, complex=True)
for _name in ("argmax", "argmin"):
    masked(_name, (DIMS[0], *ALONG), differentiable=False, oracle_dtypes=REAL)
OPS.append(
    Op("masked.logaddexp", lambda torch, x, y: torch.masked.logaddexp(x, y), (S(F(2, 3), F(2, 3)),), oracle_dtypes=REAL)
)
