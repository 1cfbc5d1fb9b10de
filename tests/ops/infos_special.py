"""Special functions."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import BINARY, NOT_ZERO, POSITIVE, UNARY, UNIT, Domain, F, K, Op, S, Sample

OPS: list[Op] = []
INSIDE: Domain = ((0.12, 0.88),)
WIDE: Domain = ((2.3, 6.1),)
# torch computes trigamma to nine digits only, and has other nodes for ndtr
IMPRECISE = ("float32", "bfloat16", "float16", "int64", "bool", "complex128")
FEW = (S(F()), S(F(2, 3)), S(F(4, layout="strided")))


def special(name: str, domain: Domain | None = None, also: tuple[Sample, ...] = (), **rest: Any) -> None:
    """Add a function of one tensor."""
    options: dict[str, Any] = rest | ({} if domain is None else {"domain": domain})
    call = lambda torch, x, **kw: getattr(torch.special, name)(x, **kw)  # noqa: E731
    OPS.append(Op(f"special.{name}", call, UNARY + also, **options))


def plain(name: str, domain: Domain | None = None, **rest: Any) -> None:
    """Add a function of the package, and its in-place method."""
    options: dict[str, Any] = rest | ({} if domain is None else {"domain": domain})
    OPS.append(Op(name, lambda torch, x: getattr(torch, name)(x), UNARY, **options))
    OPS.append(Op(f"{name}_", lambda torch, x: getattr(x.clone(), f"{name}_")(), FEW, **options))


plain("erfc")
plain("erfinv", UNIT)
plain("lgamma", POSITIVE, oracle_dtypes=IMPRECISE)
plain("digamma", POSITIVE, oracle_dtypes=IMPRECISE)
plain("i0")
for _name, _domain in {"erfcx": None, "log_ndtr": None, "ndtri": INSIDE, "entr": POSITIVE}.items():
    special(_name, _domain)
special("ndtr", oracle_dtypes=("float32", "int64", "bool"))
for _name in ("i0e", "i1", "i1e"):
    special(_name, NOT_ZERO)

# torch has no derivatives of these: here they are compared with finite differences alone
NEW = ("airy_ai", "bessel_j0", "bessel_j1", "modified_bessel_i0", "modified_bessel_i1", "spherical_bessel_j0")
NEW_POSITIVE = ("bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1")
NEW_POSITIVE += ("scaled_modified_bessel_k0", "scaled_modified_bessel_k1")
for _name in (*NEW, *NEW_POSITIVE):
    special(_name, POSITIVE if _name in NEW_POSITIVE else None, oracle_dtypes=())
DEGREES = K([0, 1, 2, 3, 5])
for _name in (
    "chebyshev_polynomial_t",
    "chebyshev_polynomial_u",
    "chebyshev_polynomial_v",
    "chebyshev_polynomial_w",
    "hermite_polynomial_h",
    "hermite_polynomial_he",
    "laguerre_polynomial_l",
    "legendre_polynomial_p",
    "shifted_chebyshev_polynomial_t",
    "shifted_chebyshev_polynomial_u",
    "shifted_chebyshev_polynomial_v",
    "shifted_chebyshev_polynomial_w",
):
    OPS.append(
        Op(
            f"special.{_name}",
            lambda torch, x, n, name=_name: getattr(torch.special, name)(x, n),
            (S(F(5), DEGREES), S(F(2, 5), DEGREES), S(F(), 4), S(F(2, 3), K(2)), S(F(0), 3)),
            domain=UNIT,
            oracle_dtypes=(),
        )
    )

# ---- with a whole number ----
OPS.append(
    Op(
        "polygamma",
        lambda torch, x, n: torch.polygamma(n, x),
        (S(F(2, 3), 1), S(F(), 2), S(F(3), 0)),
        domain=POSITIVE,
        oracle_dtypes=IMPRECISE,
    )
)
OPS.append(
    Op(
        "polygamma_",
        lambda torch, x: x.clone().polygamma_(1),
        (S(F(2, 3)), S(F())),
        domain=POSITIVE,
        oracle_dtypes=IMPRECISE,
    )
)
OPS.append(
    Op(
        "mvlgamma",
        lambda torch, x, p: torch.mvlgamma(x, p),
        (S(F(2, 3), 1), S(F(), 3), S(F(3), 5)),
        domain=WIDE,
        oracle_dtypes=IMPRECISE,
    )
)
OPS.append(
    Op("mvlgamma_", lambda torch, x: x.clone().mvlgamma_(2), (S(F(2, 3)), S(F())), domain=WIDE, oracle_dtypes=IMPRECISE)
)

# ---- of two tensors ----
NUMBERS = (S(F(2, 3), 1.5), S(1.5, F(2, 3)))
OPS.append(Op("special.xlog1py", lambda torch, x, y: torch.special.xlog1py(x, y), BINARY + NUMBERS, domain=POSITIVE))
BY_SECOND = {"igamma": "igamma", "igammac": "igammac", "special.zeta": "zeta"}
for _name, _function in BY_SECOND.items():  # there is a derivative by the second argument alone

    def _call(torch: Any, x: Any, y: Any, name: str = _function) -> Any:
        module = torch.special if name == "zeta" else torch
        return getattr(module, name)(x.to(y.dtype) + (1 if name == "zeta" else 0), y)

    OPS.append(Op(_name, _call, (S(K([1.5, 2.5, 3.0]), F(2, 3)), S(K(2.0), F())), domain=POSITIVE, oracle_dtypes=()))
for _name in ("igamma_", "igammac_"):
    OPS.append(
        Op(
            _name,
            lambda torch, x, y, n=_name: getattr(x.clone(), n)(y),
            (S(K([1.5, 2.5]), K([0.5, 4.0])),),
            differentiable=False,
        )
    )
ALIASES = {
    "expit": "sigmoid",
    "gammaln": "lgamma",
    "psi": "digamma",
    "exp2": "exp2",
    "expm1": "expm1",
    "log1p": "log1p",
    "erf": "erf",
    "sinc": "sinc",
    "logit": "logit",
}
for _name in ALIASES:
    special(_name, INSIDE, oracle_dtypes=IMPRECISE if _name in ("gammaln", "psi") else None)
