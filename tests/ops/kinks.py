"""Points where an operation has no derivative, or a formula would give NaN: torch decides what to give."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

NAN, INF = math.nan, math.inf


@dataclass(frozen=True, eq=False)
class Kink:
    name: str
    call: Callable[..., Any]
    inputs: tuple[Any, ...]  # lists of numbers
    skipped: tuple[str, ...] = ()  # what is not compared: value, gradient or tangent
    second_order: bool = False


KINKS: list[Kink] = []


def kink(name: str, call: Callable[..., Any], *inputs: Any, skipped: str = "", second_order: bool = False) -> None:
    KINKS.append(Kink(name, call, inputs, tuple(skipped.split()), second_order))


def on_each(names: str, *inputs: Any, skipped: str = "") -> None:
    """Add functions of the same inputs."""
    for name in names.split():
        kink(name, lambda torch, *xs, name=name: getattr(torch, name)(*xs), *inputs, skipped=skipped)


SPECIAL = [0.0, -0.0, 1.0, -1.0, INF, -INF, NAN, 1e-300, 1e300]
on_each("relu abs sign sgn sqrt rsqrt reciprocal square exp expm1 log log1p log2 log10 sin tanh sigmoid", SPECIAL)
on_each("floor ceil trunc round cos tan sinh cosh atan erf neg", SPECIAL)
on_each("asin acos", [0.0, 1.0, -1.0, 0.5, 2.0, NAN])
on_each("round", [0.5, 1.5, 2.5, -0.5, -1.5])
on_each("floor ceil trunc", [1.0, -1.0, 2.0])
on_each("asinh atanh acosh exp2 frac erfc sinc nan_to_num angle deg2rad", SPECIAL)
on_each("erfinv logit", [0.0, -0.0, 1.0, -1.0, 0.5, 2.0, NAN])
kink("logit eps", lambda torch, x: torch.logit(x, 0.25), [0.0, 0.25, 0.75, 1.0, 2.0, NAN, 0.5])
kink("digamma", lambda torch, x: torch.digamma(x), [0.0, -0.0, 1.0, INF, -INF, NAN], skipped="gradient tangent")
kink("lgamma", lambda torch, x: torch.lgamma(x), [0.0, -0.0, 1.0, 2.0, -1.0, INF, -INF, NAN])
kink("lgamma of denormals", lambda torch, x: torch.lgamma(x), [1e-310, -1e-310, 5e-324, 2e-308])
kink("i0", lambda torch, x: torch.i0(x), [0.0, -0.0, 1.0, -1.0])
for name in ("i1", "i1e"):
    tiny = [0.0, -0.0, 1.0, -3.0, INF, -INF, 5e-324, 1e-310, -1e-310, 1e-200, 1e-17]
    kink(name, lambda torch, x, n=name: getattr(torch.special, n)(x), tiny)
for name in ("entr", "erfcx", "log_ndtr", "ndtri"):
    kink(name, lambda torch, x, n=name: getattr(torch.special, n)(x), [0.0, 1.0, 0.5, NAN])
kink("complex angle", lambda torch, x: torch.angle(x), [0j, 1 + 0j, -1 + 0j, 1j])
kink("complex sinc", lambda torch, x: torch.sinc(x), [0j, 1 + 1j])

# ---- ties and NaN of two operands ----
LEFT = [1.0, 2.0, 3.0, INF, -INF, 0.0]
RIGHT = [1.0, 3.0, 2.0, INF, INF, -0.0]
on_each("maximum minimum", LEFT, RIGHT)
# torch's gradient passes both operands where one is NaN, its tangent the second alone: not adjoint there
on_each("maximum minimum", [NAN, 1.0, NAN], [1.0, NAN, NAN], skipped="tangent")
on_each("fmax fmin hypot logaddexp logaddexp2 copysign nextafter", LEFT, RIGHT)
on_each("fmax fmin", [NAN, 1.0, NAN], [1.0, NAN, NAN])
on_each("xlogy", [0.0, 0.0, 1.0, 0.0, 2.0, NAN, 0.0], [0.0, -1.0, 0.0, NAN, 3.0, 1.0, INF])
kink("xlog1py", lambda torch, x, y: torch.special.xlog1py(x, y), [0.0, 0.0, 1.0, 0.0], [-1.0, -2.0, 0.5, NAN])
kink("polar at zero", lambda torch, x, y: torch.polar(x, y), [0.0, 1.0], [1.0, 0.0], skipped="gradient tangent")
on_each("remainder", [0.0, -0.0, 0.0, -4.0, 4.0], [-1.0, 2.0, -INF, 2.0, -2.0])
kink("max_of_two", lambda torch, x, y: torch.max(x, y), LEFT, RIGHT)
on_each("atan2", [1.0, 0.0, -1.0], [0.0, 1.0, 0.0])
on_each("atan2", [0.0], [0.0], skipped="tangent")  # NaN in torch, where the gradient is 0
on_each("div mul add sub", [0.0, 0.0, INF, NAN], [1.0, 0.0, INF, 1.0])
on_each("div", [1.0], [0.0], skipped="tangent")  # inf - inf in ours, (1 - inf) / 0 in torch's
on_each("fmod remainder", [3.0, -3.0, 2.5, 0.0, 1.0], [1.0, 2.0, -1.0, 2.0, INF])
on_each("fmod remainder", [1.0, -1.0], [0.0, 0.0])

# ---- powers ----
BASES = [0.0, 0.0, 0.0, 0.0, -1.0, -2.0, 2.0, 1.0, INF, NAN, 0.0]
EXPONENTS = [0.0, 1.0, 2.0, -1.0, 2.0, 0.5, 0.0, NAN, 2.0, 0.0, 0.5]
on_each("pow", BASES, EXPONENTS)
for exponent in (0, 1, 2, 3, 0.5, -1, -0.5, 0.0, 1.0):
    kink(f"pow {exponent}", lambda torch, x, e=exponent: x**e, [0.0, -1.0, 2.0, INF, NAN])
for base in (0, 0.0, 1, -2.0, 2):
    kink(f"{base} pow", lambda torch, x, b=base: b**x, [0.0, 1.0, -1.0, 2.0])
kink("negative number ** complex", lambda torch, x: (-2.0) ** x, [0.5 + 1j, 2 + 0j])
kink("complex pow at zero", lambda torch, x, y: torch.pow(x, y), [0j, 1 + 1j], [2 + 0j, 0j])
kink("complex square at zero", lambda torch, x: x**2, [0j, 1j])
on_each("abs sgn sqrt log", [0j, 1 + 0j, -1 + 0j, 1j, -1j])

# ---- clamping ----
kink("clamp", lambda torch, x: torch.clamp(x, -1, 1), [-1.0, 1.0, 0.0, 2.0, -2.0, NAN, INF])
kink("clamp min", lambda torch, x: torch.clamp(x, min=0), [0.0, -0.0, -1.0, 1.0, NAN])
kink("clamp max", lambda torch, x: torch.clamp(x, max=0), [0.0, 1.0, -1.0, NAN])
kink("clamp crossed", lambda torch, x: torch.clamp(x, 1, -1), [-1.0, 0.0, 1.0, 2.0, NAN])
kink("clamp nan bounds", lambda torch, x: torch.clamp(x, NAN, 1), [0.0, 1.0])
TENSOR = [-1.0, 1.0, 0.0, 3.0, -3.0, 1.0]
LOW, HIGH = [-1.0, 0.0, 0.0, 2.0, -2.0, 2.0], [1.0, 1.0, 0.0, 2.5, -1.0, 0.5]
kink("clamp tensors nan", lambda torch, x, a, b: torch.clamp(x, a, b), [NAN], [0.0], [1.0], skipped="tangent")
kink("clamp tensors", lambda torch, x, low, high: torch.clamp(x, low, high), TENSOR, LOW, HIGH)
kink("clamp tensor min", lambda torch, x, low: torch.clamp(x, low), TENSOR, LOW)
kink("clamp tensor max", lambda torch, x, high: torch.clamp(x, None, high), TENSOR, HIGH)

# ---- ties of reductions ----
TIES = [[1.0, 3.0, 3.0], [2.0, 2.0, 2.0], [0.0, -0.0, -1.0]]
for name in ("max", "min", "amax", "amin"):
    kink(f"{name} all", lambda torch, x, n=name: getattr(torch, n)(x), TIES)
    kink(f"{name} dim", lambda torch, x, n=name: getattr(torch, n)(x, 1), TIES)
    kink(f"{name} keepdim", lambda torch, x, n=name: getattr(torch, n)(x, 0, True), TIES)
    # the gradient of amax is NaN everywhere then, that of max goes to the NaN
    kink(f"{name} nan", lambda torch, x, n=name: getattr(torch, n)(x, 0), [1.0, NAN, 2.0, NAN])
    kink(f"{name} all nan", lambda torch, x, n=name: getattr(torch, n)(x), [1.0, NAN, 2.0])
    kink(f"{name} infinite", lambda torch, x, n=name: getattr(torch, n)(x, 0), [INF, INF, -INF, -INF])
kink("amax two dims", lambda torch, x: torch.amax(x, (0, 1)), TIES)
for name in ("argmax", "argmin"):
    kink(name, lambda torch, x, n=name: getattr(torch, n)(x, 1), TIES)
    kink(f"{name} nan", lambda torch, x, n=name: getattr(torch, n)(x), [1.0, NAN, 2.0, NAN])
kink("sort stable", lambda torch, x: torch.sort(x, stable=True), [2.0, 1.0, 2.0, 1.0])
kink("sort descending", lambda torch, x: torch.sort(x, stable=True, descending=True), [2.0, 1.0, 2.0, 1.0])
kink("sort nan", lambda torch, x: torch.sort(x, stable=True), [2.0, NAN, 1.0, NAN, INF])
kink(
    "sort nan descending",
    lambda torch, x: torch.sort(x, stable=True, descending=True),
    [2.0, NAN, 1.0, INF, NAN],
)
kink("argsort nan", lambda torch, x: torch.argsort(x, stable=True), [2.0, NAN, 1.0, NAN])

# ---- products ----
for zeros in (
    [1.0, 2.0, 3.0],
    [0.0, 2.0, 3.0],
    [0.0, 2.0, 0.0],
    [0.0, 0.0, 0.0],
    [NAN, 0.0, 1.0],
    [INF, 0.0, 2.0],
):
    finite = all(map(math.isfinite, zeros))
    kink(f"prod {zeros}", lambda torch, x: torch.prod(x), zeros, second_order=finite)
    kink(f"prod dim {zeros}", lambda torch, x: torch.prod(x, 0), zeros, second_order=finite)
ZERO_ROWS = [[0.0, 2.0, 3.0], [0.0, 0.0, 1.0], [1.0, 2.0, 3.0]]
kink("prod rows", lambda torch, x: torch.prod(x, 1), ZERO_ROWS, second_order=True)
kink("prod columns kept", lambda torch, x: torch.prod(x, 0, keepdim=True), ZERO_ROWS, second_order=True)
kink("prod matrix", lambda torch, x: torch.prod(x), ZERO_ROWS, second_order=True)
kink("prod complex zeros", lambda torch, x: torch.prod(x), [0j, 1 + 1j, 2j], second_order=True)
kink("relu twice", lambda torch, x: torch.relu(x) ** 2, [0.0, -1.0, 1.0], second_order=True)
kink("abs twice", lambda torch, x: torch.abs(x) ** 3, [0.0, -1.0, 1.0], second_order=True)
kink("square twice", lambda torch, x: x**2, [0.0, -1.0], second_order=True)
kink("cube twice", lambda torch, x: x**3, [0.0, -1.0], second_order=True)
kink("linear power twice", lambda torch, x: x**1, [0.0, -1.0], second_order=True)

# ---- norms and spreads ----
for p in (2, 1, INF, -INF, 0, 3, 1.5, 0.5):
    kink(f"norm {p} at zero", lambda torch, x, p=p: torch.norm(x, p), [0.0, 0.0])
    kink(
        f"norm {p} with a zero",
        lambda torch, x, p=p: torch.norm(x, p, 1),
        [[0.0, 3.0], [0.0, 0.0], [-4.0, 4.0]],
    )
for p in (-1, 0.5, 1.5, 3):
    kink(f"norm {p} of order two at zero", lambda torch, x, p=p: torch.norm(x, p), [0.0, 2.0], second_order=True)
kink("norm 2 of order two at zero", lambda torch, x: torch.norm(x), [0.0, 0.0], second_order=True)
for rank, matrix in enumerate(
    ([[0.0] * 3] * 3, [[1.0, 2.0, 3.0]] * 3, [[1.0, 2.0, 3.0], [0.0, 1.0, 1.0], [1.0, 3.0, 4.0]])
):
    kink(f"det of rank {rank}", lambda torch, x: torch.linalg.det(x), matrix)
    kink(f"largest column of rank {rank}", lambda torch, x: torch.linalg.matrix_norm(x, 1), matrix)
kink("norm nan", lambda torch, x: torch.norm(x), [NAN, 1.0])
kink("norm inf ties", lambda torch, x: torch.norm(x, INF), [3.0, -3.0, 1.0])
kink("norm complex at zero", lambda torch, x: torch.norm(x), [0j, 0j])
kink("norm large", lambda torch, x: torch.norm(x), [3e200, 4e200])
kink("std constant", lambda torch, x: torch.std(x), [1.0, 1.0, 1.0])
kink("var constant", lambda torch, x: torch.var(x), [1.0, 1.0])
kink("std single", lambda torch, x: torch.std(x, correction=0), [1.0])

# ---- exponentials ----
LARGE = [[1000.0, 1000.0, -1000.0], [-INF, 0.0, 1.0], [-INF, -INF, -INF]]
for name in ("softmax", "log_softmax", "logsumexp"):
    kink(f"{name} large", lambda torch, x, n=name: getattr(torch, n)(x, 1), LARGE)
    kink(f"{name} inf", lambda torch, x, n=name: getattr(torch, n)(x, 0), [INF, 1.0])
    kink(f"{name} nan", lambda torch, x, n=name: getattr(torch, n)(x, 0), [NAN, 1.0])
on_each("sigmoid tanh", [1000.0, -1000.0, 40.0, -40.0])

# ---- choices and indices: the branch not taken gives no NaN ----
kink("where guards sqrt", lambda torch, x: torch.where(x > 0, x, torch.ones_like(x)).sqrt(), [-1.0, 0.0, 4.0])
kink(
    "where lets nan through",
    lambda torch, x: torch.where(x > 0, x.sqrt(), torch.zeros_like(x)),
    [-1.0, 0.0, 4.0],
)
kink("index repeats", lambda torch, x: x[torch.tensor([0, 0, 1])], [1.0, 2.0])
kink("gather repeats", lambda torch, x: torch.gather(x, 0, torch.tensor([0, 0, 1])), [1.0, 2.0])
kink("masked_fill inf", lambda torch, x: x.masked_fill(x > 0, INF), [1.0, -1.0])
kink("cumsum inf", lambda torch, x: torch.cumsum(x, 0), [1.0, INF, -INF, 1.0])
kink("mean of nothing", lambda torch, x: torch.mean(x), np.zeros(0))
kink("sum of nothing", lambda torch, x: torch.sum(x), np.zeros(0))
kink("prod of nothing", lambda torch, x: torch.prod(x), np.zeros(0))
kink("sum nan", lambda torch, x: torch.sum(x), [NAN, 1.0])
kink("var of nothing", lambda torch, x: torch.var(x), np.zeros(0), skipped="tangent")  # 0, of a NaN, in torch
kink("floor_divide", lambda torch, x, y: torch.floor_divide(x, y), [5.0, -5.0, 1.0, 0.0], [2.0, 2.0, 0.0, 0.0])
kink(
    "div floor",
    lambda torch, x, y: torch.div(x, y, rounding_mode="floor"),
    [5.0, -5.0, 1.0, 0.0],
    [2.0, 2.0, 0.0, 0.0],
)
kink(
    "div trunc",
    lambda torch, x, y: torch.div(x, y, rounding_mode="trunc"),
    [5.0, -5.0, 1.0, 0.0],
    [2.0, 2.0, 0.0, 0.0],
)
kink("matmul inf", lambda torch, x: x @ torch.zeros(2, dtype=x.dtype), [INF, 1.0])
kink("lerp ends", lambda torch, x, y: torch.lerp(x, y, 1.0), [1.0, 2.0], [3.0, 5.0])

# ---- scatters with reductions: ties, zeros, NaN ----
for name in ("amax", "amin", "prod", "mean"):
    for own in (True, False):
        kink(
            f"scatter_reduce {name} {own}",
            lambda torch, x, y, n=name, o=own: torch.scatter_reduce(
                x, 0, torch.tensor([0, 0, 1, 1, 2]), y, n, include_self=o
            ),
            [1.0, 0.0, 2.0, 5.0],
            [1.0, 1.0, 0.0, 3.0, 2.0],
            # torch loses the tangent of products, and shares gradients with a value of its own that is not included
            skipped="tangent" if name == "prod" else "gradient" if name in ("amax", "amin") and not own else "",
        )
kink(
    "scatter_reduce amax nan",
    lambda torch, x, y: torch.scatter_reduce(x, 0, torch.tensor([0, 1, 1]), y, "amax"),
    [NAN, 1.0, 2.0],
    [1.0, NAN, 0.0],
    skipped="gradient tangent",
)
kink(
    "index_fill repeated",
    lambda torch, x, y: torch.index_fill(x, 0, torch.tensor([1, 1, 2]), y.sum()),
    [1.0, 2.0, 3.0],
    [4.0, 5.0],
)
