"""Products of tensors besides those of two matrices: added to something, by labels, of vectors, of chains."""

from __future__ import annotations

from tests.ops.opinfo import F, Op, S, deprecated

T = "transposed"


def einsum(equation: str, *shapes: tuple[int, ...]) -> S:
    return S(equation, *[F(*shape) for shape in shapes])


EQUATIONS = (
    einsum("ij,jk->ik", (2, 3), (3, 4)),
    einsum("ij,jk->ki", (2, 3), (3, 4)),
    einsum("ij,jk", (2, 3), (3, 4)),
    einsum("ba,bc", (3, 2), (3, 4)),
    einsum("i,i->", (3,), (3,)),
    einsum("i,j->ij", (2,), (3,)),
    einsum("bij,bjk->bik", (2, 2, 3), (2, 3, 2)),
    einsum("bij,bij->b", (2, 2, 3), (2, 2, 3)),
    einsum("...ij,...jk->...ik", (2, 1, 2, 3), (3, 3, 2)),
    einsum("i...,i...", (2, 3), (2, 3)),
    einsum("ij,kj->ik", (2, 1), (3, 4)),  # j is broadcast
    einsum("ij,k->k", (2, 3), (4,)),  # sums over what one operand has alone
    einsum("ii", (3, 3)),
    einsum("ii->i", (3, 3)),
    einsum("ij->ji", (2, 3)),
    einsum("ij->", (2, 3)),
    einsum("iij,jk->ik", (2, 2, 3), (3, 2)),
    einsum("ij,jk,kl->il", (2, 3), (3, 4), (4, 2)),
    einsum("i,ij,j->", (2,), (2, 3), (3,)),
    einsum("abc,cd,be,ad->e", (2, 3, 2), (2, 2), (3, 4), (2, 2)),
    einsum("ij,jk->ik", (0, 3), (3, 4)),
    einsum("ij,jk->ik", (2, 0), (0, 4)),
)

OPS = [
    Op("einsum", lambda torch, eq, *xs: torch.einsum(eq, *xs), EQUATIONS, complex=True, same_graph=False),
    Op(
        "einsum_by_numbers",
        lambda torch, x, y: torch.einsum(x, [0, ..., 1], y, [1, 2], [2, ..., 0]),
        (S(F(2, 4, 3), F(3, 2)),),
        complex=True,
        same_graph=False,
    ),
    Op(
        "tensordot",
        lambda torch, x, y, dims: torch.tensordot(x, y, dims),
        (
            S(F(2, 3, 4), F(3, 4, 2), 2),
            S(F(2, 3), F(3, 4), 1),
            S(F(2), F(3), 0),
            S(F(2, 3, 4), F(4, 2), ([0, 2], [1, 0])),
            S(F(2, 3, layout=T), F(4, 3), ([-1], [-1])),
            S(F(2, 1), F(3, 2), 1),
            S(F(3), F(3), 1),
        ),
        complex=True,
        same_graph=False,
    ),
    Op(
        "kron",
        lambda torch, x, y: torch.kron(x, y),
        (S(F(2, 3), F(3, 2)), S(F(2), F(2, 3)), S(F(), F(3)), S(F(2, 1, 2), F(2))),
        complex=True,
        same_graph=False,
    ),
    Op(
        "inner",
        lambda torch, x, y: torch.inner(x, y),
        (S(F(3), F(3)), S(F(2, 3), F(4, 3)), S(F(2, 3), F(3)), S(F(), F(2, 3))),
        complex=True,
        same_graph=False,
    ),
    Op("vdot", lambda torch, x, y: torch.vdot(x, y), (S(F(3), F(3)),), complex=True, same_graph=False),
    Op(
        "cross",
        lambda torch, x, y, **kw: torch.cross(x, y, **kw),
        (S(F(3), F(3), dim=0), S(F(2, 3), F(2, 3), dim=-1), S(F(3, 2, layout=T), F(3, 2), dim=0)),
        complex=True,
    ),
    Op(
        "linalg_cross",
        lambda torch, x, y, **kw: torch.linalg.cross(x, y, **kw),
        (S(F(3), F(3)), S(F(2, 3), F(1, 3)), S(F(2, 3, 2), F(2, 3, 1), dim=1)),
        complex=True,
    ),
    Op(
        "linalg_vecdot",
        lambda torch, x, y, **kw: torch.linalg.vecdot(x, y, **kw),
        (S(F(3), F(3)), S(F(2, 3), F(3)), S(F(2, 3), F(2, 1), dim=0), S(F(), F())),
        complex=True,
        same_graph=False,
    ),
    Op(
        "linalg_multi_dot",
        lambda torch, *xs: torch.linalg.multi_dot(xs),
        (S(F(2, 3), F(3, 4)), S(F(2, 5), F(5, 1), F(1, 3)), S(F(3), F(3, 2), F(2, 4), F(4))),
        complex=True,
        same_graph=False,
    ),
    Op(
        "chain_matmul",
        deprecated(lambda torch, *xs: torch.chain_matmul(*xs)),
        (S(F(2, 5), F(5, 1), F(1, 3)),),
        same_graph=False,
    ),
    Op(
        "trace",
        lambda torch, x: torch.trace(x),
        (S(F(3, 3)), S(F(2, 3)), S(F(3, 2, layout=T)), S(F(0, 3))),
        complex=True,
    ),
    Op(
        "addmv",
        lambda torch, b, x, y, **kw: torch.addmv(b, x, y, **kw),
        (S(F(2), F(2, 3), F(3)), S(F(), F(2, 3), F(3), beta=2), S(F(1), F(2, 3), F(3), beta=0.5, alpha=3)),
        complex=True,
        oracle_dtypes=("float64", "float32", "complex128", "int64"),
    ),
    Op(
        "addr",
        lambda torch, b, x, y, **kw: torch.addr(b, x, y, **kw),
        (S(F(2, 3), F(2), F(3)), S(F(3), F(2), F(3), beta=2, alpha=3), S(F(), F(2), F(3), beta=0)),
        complex=True,
    ),
    Op(
        "baddbmm",
        lambda torch, b, x, y, **kw: torch.baddbmm(b, x, y, **kw),
        (
            S(F(2, 2, 4), F(2, 2, 3), F(2, 3, 4)),
            S(F(4), F(2, 2, 3), F(2, 3, 4), beta=2, alpha=3),
            S(F(2, 1), F(2, 2, 3), F(2, 3, 4), beta=0),
        ),
        complex=True,
        oracle_dtypes=("float64", "float32", "complex128", "int64"),
        same_graph=False,  # torch expands first
    ),
    Op(
        "addbmm",
        lambda torch, b, x, y, **kw: torch.addbmm(b, x, y, **kw),
        (S(F(2, 4), F(3, 2, 3), F(3, 3, 4)), S(F(4), F(2, 2, 3), F(2, 3, 4), beta=2, alpha=3)),
        complex=True,
        same_graph=False,
    ),
    *[
        Op(
            f"{name}_",
            lambda torch, b, x, y, name=name: getattr(b * 1, f"{name}_")(x, y, beta=2, alpha=3),
            (sample,),
            complex=True,
            oracle_dtypes=("float64", "complex128"),
            same_graph=False,
        )
        for name, sample in (
            ("addmm", S(F(2, 4), F(2, 3), F(3, 4))),
            ("addmv", S(F(2), F(2, 3), F(3))),
            ("addr", S(F(2, 3), F(2), F(3))),
            ("baddbmm", S(F(2, 2, 4), F(2, 2, 3), F(2, 3, 4))),
            ("addbmm", S(F(2, 4), F(3, 2, 3), F(3, 3, 4))),
        )
    ],
]
