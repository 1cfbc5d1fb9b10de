"""Elementwise functions of two tensors that few programs use."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import BINARY, NOT_ZERO, POSITIVE, Domain, F, K, Op, S, Sample

OPS: list[Op] = []
INPLACE = (S(F(2, 3), F(3)), S(F(2, 3), F()), S(F(), F()))
# retrograd has no complex32
NO_HALF = ("float64", "complex128", "float32", "bfloat16", "int64", "bool")


def add(
    name: str,
    domain: Domain | None = None,
    *,
    complex: bool = False,
    also: tuple[Sample, ...] = (),
    inplace: bool = True,
    **rest: Any,
) -> None:
    """Add a function of two tensors, and its in-place method."""
    options: dict[str, Any] = {"complex": complex, **rest} | ({} if domain is None else {"domain": domain})
    OPS.append(Op(name, lambda torch, x, y, **kw: getattr(torch, name)(x, y, **kw), BINARY + also, **options))
    if inplace:
        call = lambda torch, x, y: getattr(x.clone(), f"{name}_")(y)  # noqa: E731
        OPS.append(Op(f"{name}_", call, INPLACE, **options))


add("fmax", inplace=False)
add("fmin", inplace=False)
add("hypot", NOT_ZERO)
add("logaddexp", complex=True, inplace=False)
add("logaddexp2", inplace=False)
add("nextafter", NOT_ZERO)
add("ldexp", complex=True)
add("copysign", NOT_ZERO, also=(S(F(2, 3), -1.5), S(F(), 2)))
add("xlogy", POSITIVE, also=(S(F(2, 3), 1.5), S(1.5, F(2, 3)), S(2, F())))
add("float_power", POSITIVE, also=(S(F(2, 3), 2), S(2.5, F(3)), S(F(), 0.5)), complex=True, inplace=False)
OPS.append(Op("float_power_", lambda torch, x: x.double().clone().float_power_(2), (S(F()), S(F(2, 3)))))
OPS.append(
    Op(
        "polar",
        lambda torch, x, y: torch.polar(x, y),
        (S(F(), F()), S(F(2, 3), F(2, 3)), S(F(0), F(0)), S(F(2, 1), F(3))),
        domain=POSITIVE,
        oracle_dtypes=("float64", "float32", "bfloat16", "int64", "bool"),
    )
)

# ---- no derivative ----
OPS.append(
    Op(
        "heaviside",
        lambda torch, x, y: torch.heaviside(x.detach(), y.detach()),
        BINARY,
        differentiable=False,
    )
)
INTEGERS = (S(K([[4, -6, 0], [9, 12, 35]]), K([6, 4, 0])), S(K(12), K(18)))
for _name in ("gcd", "lcm", "bitwise_left_shift", "bitwise_right_shift"):
    OPS.append(Op(_name, lambda torch, x, y, n=_name: getattr(torch, n)(x, y), INTEGERS, differentiable=False))
    OPS.append(
        Op(f"{_name}_", lambda torch, x, y, n=_name: getattr(x.clone(), f"{n}_")(y), INTEGERS, differentiable=False)
    )
SHIFTS = {
    "operator_lshift": lambda torch, x, y: x << y,
    "operator_rshift": lambda torch, x, y: x >> y,
    "operator_rlshift": lambda torch, x, y: 3 << y,
    "operator_rrshift": lambda torch, x, y: 300 >> y,
}
for _name, _call in SHIFTS.items():
    OPS.append(Op(_name, _call, INTEGERS, differentiable=False))
OPS.append(
    Op(
        "heaviside_",
        lambda torch, x, y: x.clone().heaviside_(y),
        (S(K([1.0, 0.0]), K([0.5, 2.0])),),
        differentiable=False,
    )
)
for _name in ("allclose", "equal"):  # they answer with a bool
    _call = lambda torch, x, y, n=_name: torch.tensor(getattr(torch, n)(x, y))  # noqa: E731
    OPS.append(Op(_name, _call, (S(F(3), F(3)), S(F(), F())), differentiable=False, batching=False))
CLOSE = (*BINARY[:6], S(F(2, 3), F(2, 3), rtol=0.5, atol=0.1), S(F(3), F(3), equal_nan=True))
OPS.append(Op("isclose", lambda torch, x, y, **kw: torch.isclose(x, y, **kw), CLOSE, differentiable=False))
