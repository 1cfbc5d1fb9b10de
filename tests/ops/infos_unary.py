"""Elementwise functions of one tensor that few programs use."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import NOT_ZERO, UNARY, UNIT, Domain, F, Op, S, Sample

OPS: list[Op] = []
ABOVE_ONE: Domain = ((1.2, 3.1),)
INSIDE: Domain = ((0.12, 0.88),)
NO_KINK: Domain = ((-1.9, -1.1), (-0.9, -0.1), (0.1, 0.9), (1.1, 1.9))
FEW = (S(F()), S(F(2, 3)), S(F(4, layout="strided")))


def add(
    name: str,
    domain: Domain | None = None,
    *,
    complex: bool = False,
    also: tuple[Sample, ...] = (),
    inplace: bool = True,
    **rest: Any,
) -> None:
    """Add a function of one tensor, and its in-place method."""
    options: dict[str, Any] = {"complex": complex, **rest} | ({} if domain is None else {"domain": domain})
    OPS.append(Op(name, lambda torch, x, **kw: getattr(torch, name)(x, **kw), UNARY + also, **options))
    if inplace:
        call = lambda torch, x, **kw: getattr(x.clone(), f"{name}_")(**kw)  # noqa: E731
        OPS.append(Op(f"{name}_", call, FEW + also, **options))


for _name, _domain in {"acosh": ABOVE_ONE, "asinh": None, "atanh": UNIT, "exp2": None, "sinc": NOT_ZERO}.items():
    add(_name, _domain, complex=True)
for _name, _other in {"acosh": "arccosh", "asinh": "arcsinh", "atanh": "arctanh"}.items():
    _inside = {"acosh": ABOVE_ONE, "atanh": UNIT}.get(_name, NOT_ZERO)
    OPS.append(Op(f"{_other}_", lambda torch, x, n=_other: getattr(x.clone(), f"{n}_")(), FEW, domain=_inside))
for _name in ("deg2rad", "rad2deg"):
    add(_name)
add("frac", NO_KINK)
add("conj_physical", complex=True)
add("nan_to_num", also=(S(F(3), nan=1.0, posinf=2.0, neginf=3.0),))
add("logit", INSIDE, also=(S(F(2, 3), eps=1e-3), S(F(3, domain=((-0.5, 1.5),)), eps=0.2)))
add("angle", NOT_ZERO, complex=True, inplace=False)
for _name in ("positive", "resolve_conj", "resolve_neg"):
    add(_name, complex=True, inplace=False)
OPS.append(Op("frexp", lambda torch, x: torch.frexp(x), UNARY, domain=NOT_ZERO))
for _name in ("signbit", "isposinf", "isneginf", "isreal"):
    OPS.append(Op(_name, lambda torch, x, n=_name: getattr(torch, n)(x), UNARY, differentiable=False))
