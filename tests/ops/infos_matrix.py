"""Matrix products."""

from __future__ import annotations

from tests.ops.opinfo import F, Op, S

T = "transposed"
RANKS = (
    S(F(3), F(3)),
    S(F(2, 3), F(3)),
    S(F(3), F(3, 2)),
    S(F(2, 3), F(3, 4)),
    S(F(2, 3, layout=T), F(3, 4, layout=T)),
    S(F(2, 2, 3), F(3)),
    S(F(3), F(2, 3, 2)),
    S(F(2, 2, 3), F(3, 2)),
    S(F(2, 3), F(2, 3, 2)),
    S(F(2, 2, 3), F(2, 3, 2)),
    S(F(1, 2, 3), F(2, 3, 2)),
    S(F(2, 1, 2, 3), F(3, 3, 2)),
    S(F(2, 1, 2, 3), F(3)),
    S(F(0, 3), F(3, 2)),
    S(F(2, 0), F(0, 3)),
    S(F(0), F(0)),
    S(F(4, layout="strided"), F(4)),
)

OPS = [
    Op("matmul", lambda torch, x, y: torch.matmul(x, y), RANKS, complex=True),
    Op("operator_matmul", lambda torch, x, y: x @ y, RANKS, complex=True),
    Op(
        "mm",
        lambda torch, x, y: torch.mm(x, y),
        (S(F(2, 3), F(3, 4)), S(F(2, 3, layout=T), F(3, 1)), S(F(0, 3), F(3, 2)), S(F(2, 0), F(0, 3))),
        complex=True,
    ),
    Op(
        "bmm",
        lambda torch, x, y: torch.bmm(x, y),
        (S(F(2, 2, 3), F(2, 3, 2)), S(F(1, 2, 3), F(1, 3, 1)), S(F(0, 2, 3), F(0, 3, 2))),
        complex=True,
    ),
    Op(
        "mv",
        lambda torch, x, y: torch.mv(x, y),
        (S(F(2, 3), F(3)), S(F(2, 3, layout=T), F(3)), S(F(0, 3), F(3))),
        complex=True,
    ),
    Op("dot", lambda torch, x, y: torch.dot(x, y), (S(F(3), F(3)), S(F(0), F(0))), complex=True),
    Op("outer", lambda torch, x, y: torch.outer(x, y), (S(F(2), F(3)), S(F(0), F(3))), complex=True),
    Op(
        "addmm",
        lambda torch, b, x, y, **kw: torch.addmm(b, x, y, **kw),
        (
            S(F(2, 4), F(2, 3), F(3, 4)),
            S(F(4), F(2, 3), F(3, 4)),
            S(F(), F(2, 3), F(3, 4)),
            S(F(2, 1), F(2, 3), F(3, 4), beta=0.5),
            S(F(4), F(2, 3), F(3, 4), beta=2, alpha=3),
            S(F(2, 4), F(2, 3), F(3, 4), beta=0),
        ),
        complex=True,
    ),
    Op("matmul_of_one", lambda torch, x: x @ x, (S(F(3, 3)), S(F(3))), complex=True),
    Op("quadratic_form", lambda torch, x, a: x @ a @ x, (S(F(3), F(3, 3)),), complex=True),
]
