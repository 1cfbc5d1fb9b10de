"""All nestings to depth three of the seven transforms: rows made by a rule, not written one by one.

Every step turns a function R^2 -> R^2 into another one and captures two things by closure: the variable
`x` of the level outside it, and the weights `w`, which live outside all of them.  A row returns the value
and its gradient with respect to `w` by plain autograd; a `dual` row, the tangent when `w` is a dual number.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

from tests.transforms.composition_row import add

STEPS = ("grad", "jvp", "vmap", "vjp", "jacrev", "jacfwd", "hessian")
NEEDS_FORWARD_MODE = {"jvp", "jacfwd", "hessian"}
POINT, WEIGHTS, TANGENT = [0.4, -0.7], [0.6, -0.9], [0.3, 0.8]
MATRIX = [[0.5, -1.1], [0.8, 0.3]]
SCALES = [[0.5, -0.8, 1.2], [0.7, 1.1, -0.4]]
MIX = [0.9, -0.5, 0.7]
Function = Callable[[Any], Any]


def torch_steps(torch: Any, w: Any) -> dict[str, Callable[[Function], Function]]:
    func = torch.func
    scales, mix = (torch.tensor(v, dtype=torch.float64) for v in (SCALES, MIX))

    def grad(f):
        return lambda x: func.grad(lambda y: (f(y) * w * x).sum())(x)

    def jvp(f):
        def step(x):
            out, tangent = func.jvp(lambda y: f(y) * x, (x,), (w * x,))
            return out + tangent

        return step

    def vmap(f):
        return lambda x: func.vmap(lambda s: f(x * s) * w, in_dims=1, out_dims=-1)(scales) @ mix

    def vjp(f):
        def step(x):
            out, pull = func.vjp(lambda y: f(y) * x, x)
            return out + pull(w * x)[0]

        return step

    def jacrev(f):
        return lambda x: func.jacrev(lambda y: f(y) * x)(x) @ w

    def jacfwd(f):
        return lambda x: func.jacfwd(lambda y: f(y) * x)(x) @ w

    def hessian(f):
        return lambda x: func.hessian(lambda y: (f(y) * w * x).sum())(x) @ x

    return dict(grad=grad, jvp=jvp, vmap=vmap, vjp=vjp, jacrev=jacrev, jacfwd=jacfwd, hessian=hessian)


def jax_steps(jax: Any, jnp: Any, w: Any) -> dict[str, Callable[[Function], Function]]:
    scales, mix = jnp.array(SCALES), jnp.array(MIX)

    def jvp(f):
        return lambda x: sum(jax.jvp(lambda y: f(y) * x, (x,), (w * x,)))

    def vjp(f):
        def step(x):
            out, pull = jax.vjp(lambda y: f(y) * x, x)
            return out + pull(w * x)[0]

        return step

    return {
        "grad": lambda f: lambda x: jax.grad(lambda y: jnp.sum(f(y) * w * x))(x),
        "jvp": jvp,
        "vmap": lambda f: lambda x: mix @ jax.vmap(lambda s: f(x * s) * w)(scales.T),
        "vjp": vjp,
        "jacrev": lambda f: lambda x: jax.jacrev(lambda y: f(y) * x)(x) @ w,
        "jacfwd": lambda f: lambda x: jax.jacfwd(lambda y: f(y) * x)(x) @ w,
        "hessian": lambda f: lambda x: jax.hessian(lambda y: jnp.sum(f(y) * w * x))(x) @ x,
    }


def apply(steps: dict[str, Callable[[Function], Function]], names: tuple[str, ...], f: Function) -> Function:
    """names[0](names[1](...(f)))."""
    for name in reversed(names):
        f = steps[name](f)
    return f


def torch_value(torch: Any, names: tuple[str, ...], w: Any) -> Any:
    matrix, x = (torch.tensor(v, dtype=torch.float64) for v in (MATRIX, POINT))
    return apply(torch_steps(torch, w), names, lambda y: torch.sin(matrix @ y) * w)(x)


def jax_value(jax: Any, jnp: Any, names: tuple[str, ...], w: Any) -> Any:
    matrix, x = jnp.array(MATRIX), jnp.array(POINT)
    return apply(jax_steps(jax, jnp, w), names, lambda y: jnp.sin(matrix @ y) * w)(x)


def add_captured_leaf(names: tuple[str, ...]) -> None:
    def program(torch):
        w = torch.tensor(WEIGHTS, dtype=torch.float64, requires_grad=True)
        value = torch_value(torch, names, w)
        if len(names) == 2:
            return value, torch.autograd.grad(value.sum(), w)[0]
        value.sum().backward()
        return value, w.grad

    def reference(jax, jnp):
        def total(w):
            value = jax_value(jax, jnp, names, w)
            return jnp.sum(value), value

        (_, value), gradient = jax.value_and_grad(total, has_aux=True)(jnp.array(WEIGHTS))
        return value, gradient

    add("_of_".join(names), program).jax(reference)


def add_captured_dual(names: tuple[str, ...]) -> None:
    def program(torch):
        w, tangent = (torch.tensor(v, dtype=torch.float64) for v in (WEIGHTS, TANGENT))
        with torch.autograd.forward_ad.dual_level():
            value = torch_value(torch, names, torch.autograd.forward_ad.make_dual(w, tangent))
            return tuple(torch.autograd.forward_ad.unpack_dual(value))

    def reference(jax, jnp):
        return jax.jvp(lambda w: jax_value(jax, jnp, names, w), (jnp.array(WEIGHTS),), (jnp.array(TANGENT),))

    refusal = "func.jvp inside a dual_level" if NEEDS_FORWARD_MODE.intersection(names) else ""
    add("dual_of_" + "_of_".join(names), program, refusal).jax(reference)


for depth in (1, 2, 3):
    for nesting in product(STEPS, repeat=depth):
        add_captured_leaf(nesting)
        if depth < 3 or set(nesting) <= {"grad", "jvp", "vmap"}:
            add_captured_dual(nesting)
