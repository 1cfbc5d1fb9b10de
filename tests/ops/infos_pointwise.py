"""Elementwise operations."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import BINARY, NOT_ZERO, POSITIVE, UNARY, UNIT, Domain, F, K, Op, S, Sample

OPS: list[Op] = []


def unary(
    name: str,
    domain: Domain | None = None,
    *,
    complex: bool = True,
    also: tuple[Sample, ...] = (),
    **rest: Any,
) -> None:
    """Add a function of one tensor, and its in-place method where it has one."""
    options: dict[str, Any] = {"complex": complex, **rest}
    if domain is not None:
        options["domain"] = domain
    OPS.append(Op(name, lambda torch, x, **kw: getattr(torch, name)(x, **kw), UNARY + also, **options))


def inplace(name: str, samples: tuple[Sample, ...], domain: Domain | None = None, *, complex: bool = True) -> None:
    """Add an in-place method, applied to a fresh copy of the first input."""
    options: dict[str, Any] = {"complex": complex} | ({} if domain is None else {"domain": domain})
    call = lambda torch, x, *a, **kw: getattr(x.clone(), name)(*a, **kw)  # noqa: E731
    OPS.append(Op(name, call, samples, **options))


def binary(name: str, *, complex: bool = True, domain: Domain | None = None, also: tuple[Sample, ...] = ()) -> None:
    """Add a function of two tensors."""
    options: dict[str, Any] = {"complex": complex} | ({} if domain is None else {"domain": domain})
    OPS.append(Op(name, lambda torch, x, y, **kw: getattr(torch, name)(x, y, **kw), BINARY + also, **options))


REAL_UNARY = {"erf": None, "relu": None, "floor": None, "ceil": None, "trunc": None, "sign": None}
UNARY_DOMAINS: dict[str, Domain | None] = {
    "neg": None,
    "exp": None,
    "expm1": None,
    "log": POSITIVE,
    "log1p": ((-0.7, 2.0),),
    "log2": POSITIVE,
    "log10": POSITIVE,
    "sqrt": POSITIVE,
    "rsqrt": POSITIVE,
    "sin": None,
    "cos": None,
    "tan": ((-1.2, 1.2),),
    "sinh": None,
    "cosh": None,
    "tanh": None,
    "asin": UNIT,
    "acos": UNIT,
    "atan": None,
    "sigmoid": None,
    "reciprocal": NOT_ZERO,
    "abs": NOT_ZERO,
    "square": None,
}
for _name, _domain in UNARY_DOMAINS.items():
    unary(_name, _domain)
for _name, _domain in REAL_UNARY.items():
    unary(_name, _domain, complex=False)
unary("sgn", NOT_ZERO)  # with complex numbers it is not flat
unary("round", complex=False, also=(S(F(2, 3), decimals=1), S(F(3), decimals=-1)))
unary("conj", complex=True)

INPLACE_UNARY = [
    "neg",
    "negative",
    "exp",
    "expm1",
    "log",
    "log1p",
    "log2",
    "log10",
    "sqrt",
    "rsqrt",
    "sin",
    "cos",
    "tan",
    "sinh",
    "cosh",
    "tanh",
    "asin",
    "arcsin",
    "acos",
    "arccos",
    "atan",
    "arctan",
    "sigmoid",
    "reciprocal",
    "square",
    "fix",
    "relu",
    "erf",
    "sign",
    "floor",
    "ceil",
    "trunc",
    "round",
]
for _name in INPLACE_UNARY:
    _known = {"arcsin": "asin", "arccos": "acos", "arctan": "atan", "negative": "neg"}.get(_name, _name)
    inplace(f"{_name}_", (S(F()), S(F(2, 3))), UNARY_DOMAINS.get(_known), complex=_known in UNARY_DOMAINS)
inplace("abs_", (S(F()), S(F(2, 3))), NOT_ZERO, complex=False)
inplace("absolute_", (S(F()), S(F(2, 3))), NOT_ZERO, complex=False)

# ---- arithmetic; a number on either side, alpha, rounding ----
NUMBER = (S(F(2, 3), 1.5), S(F(), 2), S(F(3), -3))
binary("add", also=(*NUMBER, S(F(2, 3), F(3), alpha=2), S(F(2, 3), 2, alpha=0.5)))
binary("sub", also=(*NUMBER, S(F(2, 3), F(3), alpha=2)))
binary("mul", also=NUMBER)
binary("div", domain=NOT_ZERO, also=NUMBER)
for _mode in ("floor", "trunc"):
    OPS.append(
        Op(
            f"div_{_mode}",
            lambda torch, x, y, mode=_mode: torch.div(x, y, rounding_mode=mode),
            (*BINARY, *NUMBER),
            domain=NOT_ZERO,
        )
    )
binary("rsub", also=(*NUMBER, S(F(2, 3), F(3), alpha=2)))
binary(
    "pow",
    domain=POSITIVE,
    also=(S(F(2, 3), 2), S(F(3), 3.0), S(F(2, 3), -1), S(F(3), 0.5), S(F(3), 0), S(F(), 1)),
)
OPS.append(Op("pow_of_number", lambda torch, x: torch.pow(2.5, x), UNARY, complex=True))
binary("atan2", complex=False, domain=NOT_ZERO)
binary("maximum", complex=False)
binary("minimum", complex=False)
binary("remainder", complex=False, domain=NOT_ZERO, also=NUMBER)
binary("fmod", complex=False, domain=NOT_ZERO, also=NUMBER)

OPERATORS = {
    "operator_add": lambda torch, x, y: x + y,
    "operator_sub": lambda torch, x, y: x - y,
    "operator_mul": lambda torch, x, y: x * y,
    "operator_div": lambda torch, x, y: x / y,
    "operator_pow": lambda torch, x, y: x**y,
}
for _name, _call in OPERATORS.items():
    OPS.append(Op(_name, _call, (*BINARY, *NUMBER), complex=True, domain=POSITIVE))
REFLECTED = {
    "operator_radd": lambda torch, x: 1.5 + x,
    "operator_rsub": lambda torch, x: 2 - x,
    "operator_rmul": lambda torch, x: 3 * x,
    "operator_rdiv": lambda torch, x: 1.5 / x,
    "operator_rpow": lambda torch, x: 2**x,
    "operator_neg": lambda torch, x: -x,
    "operator_abs": lambda torch, x: abs(x),
}
for _name, _call in REFLECTED.items():
    OPS.append(Op(_name, _call, UNARY, complex=True, domain=NOT_ZERO))
OPS.append(Op("operator_mod", lambda torch, x, y: x % y, (*BINARY, *NUMBER), domain=NOT_ZERO))

INPLACE_BINARY = (S(F(2, 3), F(3)), S(F(2, 3), F()), S(F(2, 3), 1.5), S(F(), F()))
for _name in ("add_", "sub_", "mul_", "div_", "pow_"):
    inplace(_name, INPLACE_BINARY, POSITIVE)
for _name in ("eq_", "ne_", "not_equal_"):
    inplace(_name, (S(F(2, 3), F(3)), S(F(2, 3), 1.5), S(F(), F())))
for _name in ("lt_", "less_", "le_", "less_equal_", "gt_", "greater_", "ge_", "greater_equal_"):
    inplace(_name, (S(F(2, 3), F(3)), S(F(2, 3), 1.5), S(F(), F())), complex=False)
for _name in ("atan2_", "arctan2_"):
    inplace(_name, INPLACE_BINARY[:2], NOT_ZERO, complex=False)
for _name in ("remainder_", "fmod_"):
    inplace(_name, INPLACE_BINARY, NOT_ZERO, complex=False)
OPS.append(Op("add_alpha_", lambda torch, x, y: x.clone().add_(y, alpha=2), (S(F(2, 3), F(3)),), complex=True))

# ---- three operands ----
OPS.append(
    Op(
        "lerp",
        lambda torch, x, y, w: torch.lerp(x, y, w),
        (
            S(F(2, 3), F(2, 3), 0.3),
            S(F(2, 3), F(3), F(3)),
            S(F(), F(), F()),
            S(F(3), F(3), 0.8),
            S(F(0), F(0), 0.5),
        ),
        complex=True,
    )
)
THREE = (S(F(2, 3), F(3), F(2, 1)), S(F(), F(), F()), S(F(3), F(3), F(3), value=0.5), S(F(0), F(0), F(1)))
OPS.append(Op("addcmul", lambda torch, x, y, z, **kw: torch.addcmul(x, y, z, **kw), THREE, complex=True))
OPS.append(
    Op(
        "addcdiv",
        lambda torch, x, y, z, **kw: torch.addcdiv(x, y, z, **kw),
        THREE,
        complex=True,
        domain=NOT_ZERO,
    )
)
for _name in ("addcmul_", "addcdiv_"):
    inplace(_name, (S(F(2, 3), F(3), F(2, 1)), S(F(3), F(3), F(3), value=0.5)), NOT_ZERO)
inplace("lerp_", (S(F(2, 3), F(2, 3), 0.3), S(F(2, 3), F(3), F(3))))

# ---- choice ----
MASK = [[True, False, True], [False, False, True]]
OPS.append(
    Op(
        "where",
        lambda torch, c, x, y: torch.where(c, x, y),
        (
            S(K(MASK), F(2, 3), F(2, 3)),
            S(K(MASK), F(3), F(2, 1)),
            S(K(MASK), F(), F(2, 3)),
            S(K([True, False]), F(3, 2), 0.5),
            S(K([True, False]), 2, F(3, 2)),
            S(K(True), F(), F()),
            S(K(True), F(2), F(2)),
        ),
        complex=True,
    )
)
CLAMP = tuple(S(one.inputs[0], min=-0.52, max=1.03) for one in UNARY)
CLAMP += (S(F(2, 3), min=0.1), S(F(3), max=-0.3), S(F(2, 3), min=1.0, max=-1.0))
OPS.append(Op("clamp", lambda torch, x, **kw: torch.clamp(x, **kw), CLAMP))
OPS.append(
    Op(
        "clamp_tensors",
        lambda torch, x, low, high: torch.clamp(x, low, high),
        (
            S(F(2, 3), F(3, domain=((-1.4, -0.2),)), F(2, 1, domain=((0.2, 1.4),))),
            S(F(2, 3), F(3), None),
            S(F(2, 3), None, F(3)),
            S(F(), F(domain=((-1.4, -0.2),)), F(domain=((0.2, 1.4),))),
            S(F(4), F(4, domain=((0.5, 1.5),)), F(4, domain=((-1.5, -0.5),))),
        ),
    )
)
OPS.append(Op("clamp_min", lambda torch, x: x.clamp_min(0.11), UNARY))
OPS.append(Op("clamp_max", lambda torch, x: x.clamp_max(0.11), UNARY))
inplace("clamp_", (S(F(2, 3), min=-0.5, max=0.7), S(F(3), max=0.2)), complex=False)
inplace("clip_", (S(F(2, 3), min=-0.5, max=0.7), S(F(3), F(3), F(3))), complex=False)
inplace("clamp_min_", (S(F(2, 3), 0.11), S(F(3), F(3))), complex=False)
inplace("clamp_max_", (S(F(2, 3), 0.11), S(F(3), F(3))), complex=False)

# ---- complex numbers; retrograd has no complex32 ----
NO_HALF = ("float64", "complex128", "float32", "bfloat16", "int64", "bool")
OPS.append(Op("real", lambda torch, x: torch.real(x), UNARY, complex=True))
OPS.append(Op("imag", lambda torch, x: torch.imag(x * 1j), UNARY, complex=True, oracle_dtypes=NO_HALF))
OPS.append(Op("real_attribute", lambda torch, x: x.real, UNARY, complex=True))
OPS.append(
    Op(
        "complex",
        lambda torch, x, y: torch.complex(x, y),
        (S(F(), F()), S(F(2, 3), F(2, 3)), S(F(0), F(0)), S(F(2, 1), F(3))),
    )
)
OPS.append(
    Op(
        "abs_of_complex",
        lambda torch, x, y: torch.complex(x, y).abs(),
        (S(F(), F()), S(F(2, 3), F(2, 3))),
        domain=NOT_ZERO,
        oracle_dtypes=NO_HALF,
    )
)
OPS.append(Op("conj_product", lambda torch, x: x * x.conj(), UNARY, complex=True))

# ---- casts; the gradient comes back in the input's dtype ----
OPS.append(Op("double", lambda torch, x: x.double() * 2, UNARY))
OPS.append(Op("to_complex", lambda torch, x: x.to(torch.complex128) * (1 + 2j), UNARY, complex=True))
OPS.append(Op("mixed_real_and_complex", lambda torch, x: x * torch.tensor(0.5 + 2j), UNARY, complex=True))

# ---- no derivative: values only ----
# torch's floor_divide records a node whose backward is not implemented; see test_kinks
FLOORED = {
    "floor_divide": lambda torch, x, y: torch.floor_divide(x, y),
    "floor_divide_": lambda torch, x, y: (x * torch.ones_like(y)).floor_divide_(y),
    "operator_floordiv": lambda torch, x, y: x // y,
}
for _name, _call in FLOORED.items():
    _samples = BINARY if _name.endswith("_") else (*BINARY, *NUMBER)
    OPS.append(Op(_name, _call, _samples, domain=NOT_ZERO, differentiable=False))
for _name in ["eq", "ne", "lt", "le", "gt", "ge"]:
    OPS.append(
        Op(
            _name,
            lambda torch, x, y, name=_name: getattr(torch, name)(x, y),
            (*BINARY, S(F(2, 3), 0), S(F(), 1.5)),
            differentiable=False,
        )
    )
for _name in ["logical_and", "logical_or", "logical_xor", "bitwise_and", "bitwise_or", "bitwise_xor"]:
    OPS.append(
        Op(
            _name,
            lambda torch, x, y, name=_name: getattr(torch, name)(x, y),
            BINARY[:6],
            differentiable=False,
        )
    )
for _name in ["isnan", "isinf", "isfinite", "logical_not", "bitwise_not"]:
    OPS.append(Op(_name, lambda torch, x, name=_name: getattr(torch, name)(x), UNARY, differentiable=False))
