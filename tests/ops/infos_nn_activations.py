"""Activation functions, dropout that is off, and linear maps."""

from __future__ import annotations

from typing import Any

from tests.ops.opinfo import EVERYWHERE, UNARY, F, K, Op, S

OPS: list[Op] = []
AWAY = ((-7.5, -3.4), (-2.6, -1.4), (-0.9, -0.6), (0.6, 0.9), (1.4, 2.6), (3.4, 5.5), (6.5, 7.5))  # from all kinks


def activation(name, samples=UNARY, *, domain=EVERYWHERE, **options):
    """Add a function of nn.functional whose keywords are torch's."""

    def call(torch, x, *rest, **kw):
        return getattr(torch.nn.functional, name)(x, *rest, **kw)

    OPS.append(Op(f"nn_{name}", call, samples, domain=domain, **options))


def also(**options):
    """Return the usual samples, and one with options."""
    return (*UNARY, S(F(2, 3), **options), S(F(), **options))


REAL = ("float64", "float32", "bfloat16", "float16")
for _name in ("mish", "logsigmoid"):
    activation(_name)
activation("silu", oracle_dtypes=REAL)  # torch's tangents of complex numbers are those of another function
for _name in ("softsign", "tanhshrink"):
    activation(_name, complex=True)
for _name in ("relu", "relu6", "hardswish", "hardtanh"):
    activation(_name, domain=AWAY)
activation("hardsigmoid", domain=AWAY, oracle_dtypes=REAL[1:])  # torch's slope of float64 is 1 / 6 in float32
activation("gelu", also(approximate="tanh"))
activation("softplus", also(beta=2.0, threshold=1.0), domain=((-3, 0.4), (0.6, 3)))
activation("elu", also(alpha=0.7), domain=AWAY)
activation("celu", also(alpha=0.5), domain=AWAY)
activation("selu", domain=AWAY)
activation("leaky_relu", also(negative_slope=-0.4), domain=AWAY)
activation("hardshrink", also(lambd=0.3), domain=AWAY)
activation("softshrink", also(lambd=0.3), domain=AWAY)
activation("rrelu", also(lower=0.2, upper=0.4), domain=AWAY)
activation("threshold", (S(F(2, 3), 0.5, 2.0), S(F(), 0.5, 2.0), S(F(0), 0.5, 2.0)), domain=AWAY)
activation("prelu", (S(F(2, 3), F(1)), S(F(2, 3), F(3)), S(F(4), F(1)), S(F(2, 3, 2), F(3)), S(F(), F())), domain=AWAY)
activation("glu", (S(F(4)), S(F(2, 4)), S(F(4, 3), dim=0), S(F(2, 4, layout="transposed"), dim=1), S(F(2, 0))))
activation("softmin", (S(F(3), dim=0), S(F(2, 3), dim=1)))
activation("dropout", (S(F(2, 3), training=False), S(F(2, 3), p=0.0)), same_graph=False)


def drop_gradient(torch: Any, g: Any, kept: Any, scale: float) -> Any:
    inner = getattr(torch, "native_dropout_backward", None) or torch.ops.aten.native_dropout_backward
    return inner(g, kept, scale)


KEPT = K([[True, False, True], [False, True, True]])
OPS.append(Op("native_dropout_backward", drop_gradient, (S(F(2, 3), KEPT, 1.5),), same_graph=False))
LINEAR = (
    S(F(2, 3), F(4, 3), F(4)),
    S(F(2, 3), F(4, 3)),
    S(F(3), F(4, 3), F(4)),
    S(F(3), F(4, 3)),
    S(F(2, 2, 3), F(4, 3), F(4)),
    S(F(2, 2, 3), F(4, 3)),
    S(F(0, 3), F(4, 3), F(4)),
    S(F(2, 3, layout="transposed"), F(4, 3, layout="transposed"), F(4)),
    S(F(2, 3), F(4, 3), F(2, 4)),
    S(F(2, 3), F(3)),
)
activation("linear", LINEAR, complex=True, same_graph=False)
activation(
    "bilinear",
    (S(F(2, 3), F(2, 4), F(5, 3, 4), F(5)), S(F(3), F(4), F(5, 3, 4)), S(F(2, 2, 3), F(2, 2, 4), F(5, 3, 4), F(5))),
    complex=True,
    same_graph=False,
)
