"""Shapes: views, joining and splitting."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import UNARY, F, Op, S, Sample

OPS: list[Op] = []


def op(name: str, call: Any, *samples: Sample, **options: Any) -> None:
    """Add an operation; shapes do not care for complex numbers."""
    OPS.append(Op(name, call, samples, **{"complex": True, **options}))


T = "transposed"
op(
    "reshape",
    lambda torch, x, shape: torch.reshape(x, shape),
    S(F(2, 3), (3, 2)),
    S(F(2, 3), (-1,)),
    S(F(2, 3, layout=T), (6,)),
    S(F(), (1, 1)),
    S(F(1), ()),
    S(F(0), (2, 0)),
    S(F(4, layout="strided"), (2, 2)),
)
op("reshape_method", lambda torch, x: x.reshape(3, -1), S(F(2, 3)), S(F(2, 3, layout=T)))
op("reshape_as", lambda torch, x, y: x.reshape_as(y), S(F(2, 3), F(3, 2)))
op(
    "view",
    lambda torch, x, *shape: x.view(*shape),
    S(F(2, 3), 3, 2),
    S(F(2, 3), -1),
    S(F(), 1),
    S(F(0, 3), 3, 0),
)
op("view_as", lambda torch, x, y: x.view_as(y), S(F(2, 3), F(6)))
op(
    "permute",
    lambda torch, x, dims: torch.permute(x, dims),
    S(F(2, 3, 2), (2, 0, 1)),
    S(F(2, 3), (1, 0)),
    S(F(2, 3, 2), (-1, 0, 1)),
    S(F(), ()),
    S(F(0, 2), (1, 0)),
)
for _name in ("transpose", "swapaxes", "swapdims"):
    op(
        _name,
        lambda torch, x, a, b, name=_name: getattr(torch, name)(x, a, b),
        S(F(2, 3), 0, 1),
        S(F(2, 3, 2), -1, 0),
        S(F(), 0, -1),
        S(F(3), 0, 0),
        S(F(2, 3, layout=T), 0, 1),
    )
op("t", lambda torch, x: torch.t(x), S(F(2, 3)), S(F(3)), S(F()), S(F(0, 3)))
op("T", lambda torch, x: x.T, S(F(2, 3)), S(F()))
op("mT", lambda torch, x: x.mT, S(F(2, 3)), S(F(2, 3, 2)))
op("H", lambda torch, x: x.H, S(F(2, 3)))
op("mH", lambda torch, x: x.mH, S(F(2, 3)), S(F(2, 3, 2)))
for _name in ("movedim", "moveaxis"):
    op(
        _name,
        lambda torch, x, a, b, name=_name: getattr(torch, name)(x, a, b),
        S(F(2, 3, 4), 0, 2),
        S(F(2, 3, 4), (0, 1), (-1, 0)),
        S(F(3), 0, 0),
        S(F(2, 3, 4), -1, 0),
    )
op(
    "unsqueeze",
    lambda torch, x, dim: torch.unsqueeze(x, dim),
    S(F(), 0),
    S(F(3), 0),
    S(F(3), -1),
    S(F(2, 3), 1),
    S(F(0), 1),
)
op(
    "squeeze",
    lambda torch, x, *dim: torch.squeeze(x, *dim),
    S(F(1, 3, 1)),
    S(F(1, 3, 1), 0),
    S(F(1, 3, 1), -1),
    S(F(1, 3, 1), 1),
    S(F(1, 3, 1), (0, 2)),
    S(F()),
    S(F(), 0),
)
op(
    "expand",
    lambda torch, x, *shape: x.expand(*shape),
    S(F(), 2, 3),
    S(F(3), 2, 3),
    S(F(2, 1), 2, 3),
    S(F(1, 3), -1, 3),
    S(F(1), 0),
    S(F(2, 1), 4, -1, 3),
    S(F(1, 3, layout=T), 2, 3),
)
op("expand_as", lambda torch, x, y: x.expand_as(y), S(F(3), F(2, 3)))
op(
    "broadcast_to",
    lambda torch, x, shape: torch.broadcast_to(x, shape),
    S(F(3), (2, 3)),
    S(F(), (2,)),
    S(F(2, 1), (2, 3)),
)
op(
    "flatten",
    lambda torch, x, *dims: torch.flatten(x, *dims),
    S(F(2, 3, 2)),
    S(F(2, 3, 2), 1),
    S(F(2, 3, 2), 0, 1),
    S(F()),
    S(F(3)),
    S(F(2, 3, layout=T)),
    S(F(0, 3)),
)
op("ravel", lambda torch, x: torch.ravel(x), S(F(2, 3)), S(F()), S(F(3)), S(F(2, 3, layout=T)))
op(
    "select",
    lambda torch, x, d, i: torch.select(x, d, i),
    S(F(3), 0, 1),
    S(F(2, 3), 1, -1),
    S(F(2, 3, 2), -2, 0),
)
op(
    "narrow",
    lambda torch, x, d, a, n: torch.narrow(x, d, a, n),
    S(F(4), 0, 1, 2),
    S(F(2, 3), -1, 0, 2),
    S(F(2, 3), 1, 1, 0),
    S(F(4), 0, -3, 2),
)
op(
    "split",
    lambda torch, x, n, *dim: torch.split(x, n, *dim),
    S(F(5), 2),
    S(F(2, 5), 2, 1),
    S(F(5), [1, 4]),
    S(F(2, 3), [1, 0, 2], -1),
    S(F(4), 4),
    S(F(0), 1),
)
op(
    "chunk",
    lambda torch, x, n, *dim: torch.chunk(x, n, *dim),
    S(F(5), 2),
    S(F(2, 5), 3, 1),
    S(F(3), 5),
    S(F(2, 3), 1, -1),
)
op(
    "unbind",
    lambda torch, x, *dim: torch.unbind(x, *dim),
    S(F(3)),
    S(F(2, 3), 1),
    S(F(2, 3, 2), -2),
    S(F(3, 0)),
)
op(
    "diagonal",
    lambda torch, x, **kw: torch.diagonal(x, **kw),
    S(F(3, 3)),
    S(F(2, 3), offset=1),
    S(F(3, 2), offset=-1),
    S(F(2, 3, 3), dim1=1, dim2=2),
    S(F(3, 2, 3), dim1=2, dim2=0),
    S(F(2, 3), offset=5),
    S(F(3, 3, layout=T), offset=-2),
)
op(
    "flip",
    lambda torch, x, dims: torch.flip(x, dims),
    S(F(3), (0,)),
    S(F(2, 3), (0, 1)),
    S(F(2, 3), (-1,)),
    S(F(0), (0,)),
    S(F(2, 3), ()),
)
for _name in ("tril", "triu"):
    op(
        _name,
        lambda torch, x, *k, name=_name: getattr(torch, name)(x, *k),
        S(F(3, 3)),
        S(F(2, 3), 1),
        S(F(3, 2), -1),
        S(F(2, 2, 3)),
        S(F(2, 3), -4),
        S(F(2, 3), 4),
        S(F(3, 3, layout=T)),
    )
for _name in ("tril_", "triu_"):
    op(_name, lambda torch, x, name=_name: getattr(x.clone(), name)(), S(F(3, 3)))
op("clone", lambda torch, x: torch.clone(x), *UNARY)
op("contiguous", lambda torch, x: x.contiguous(), *UNARY)
for _name in ("cat", "concat", "concatenate"):
    op(
        _name,
        lambda torch, xs, *dim, name=_name: getattr(torch, name)(xs, *dim),
        S([F(2), F(3)]),
        S([F(2, 3), F(1, 3)], 0),
        S([F(2, 3), F(2, 1)], -1),
        S([F(2, 3)], 1),
        S((F(0), F(3))),
        S([F(0), F(2, 3)], 1),
        S([F(2, 0), F(2, 3)], 1),
        S([F(2, 3, layout=T), F(2, 3)], 1),
    )
op(
    "stack",
    lambda torch, xs, *dim: torch.stack(xs, *dim),
    S([F(), F()]),
    S([F(3), F(3)], 1),
    S([F(2, 3), F(2, 3)], -1),
    S([F(2, 3)], 0),
    S((F(0), F(0), F(0)), 1),
)
op("cat_of_one_twice", lambda torch, x: torch.cat([x, x * 2, x], 0), S(F(2, 3)), S(F(2)))
op("meshgrid", lambda torch, x, y: torch.meshgrid(x, y, indexing="ij"), S(F(2), F(3)), S(F(1), F(2)))
op("meshgrid_xy", lambda torch, x, y: torch.meshgrid(x, y, indexing="xy"), S(F(2), F(3)))
for _name, _arguments in {
    "t_": (),
    "transpose_": (0, 1),
    "unsqueeze_": (0,),
    "squeeze_": (),
    "swapaxes_": (0, 1),
}.items():
    op(_name, lambda torch, x, name=_name, a=_arguments: getattr(x.clone(), name)(*a), S(F(2, 3)), S(F(1, 3)))
op("copy_", lambda torch, x, y: x.clone().copy_(y), S(F(2, 3), F(2, 3)), S(F(2, 3), F(3)), S(F(2, 3), F()))
op("fill_", lambda torch, x, y: x.clone().fill_(y), S(F(2, 3), F()), S(F(2, 3), 1.5))
op("zero_", lambda torch, x: x.clone().zero_(), S(F(2, 3)))
op("write_into_view", lambda torch, x, y: _into_view(x, y), S(F(2, 3), F(3)))
op("type_as", lambda torch, x, y: x.type_as(y), S(F(2, 3), F(3)))


def _into_view(x: Any, y: Any) -> Any:
    z = x.clone()
    z[1] = y * 2
    z[:, 0].mul_(3)
    return z * z
