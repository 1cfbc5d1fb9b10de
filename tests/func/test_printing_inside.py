"""How tensors are written inside transforms: a wrapper for every transform that they are in."""

from __future__ import annotations

from typing import Any

from tests.autograd.recording import Programs

program = Programs("func_printing_inside")


def table(torch: Any) -> Any:
    return torch.arange(6.0).reshape(2, 3)


def written(transformed: Any, change: Any = lambda t: t) -> list[str]:
    """Return how a function sees its argument, or what it makes of it."""
    texts = []

    def look(t):
        texts.append(repr(change(t)))
        return t.sum()

    transformed(look)
    return texts


TRANSFORMS = {
    "vmap": lambda torch, f, x: torch.vmap(f)(x),
    "vmap of vmap": lambda torch, f, x: torch.vmap(torch.vmap(f))(x),
    "grad": lambda torch, f, x: torch.func.grad(f)(x),
    "grad of grad": lambda torch, f, x: torch.func.grad(torch.func.grad(f))(x[0, 0]),
    "vmap of grad": lambda torch, f, x: torch.vmap(torch.func.grad(f))(x),
    "grad of vmap": lambda torch, f, x: torch.func.grad(lambda t: torch.vmap(f)(t).sum())(x),
    "jvp": lambda torch, f, x: torch.func.jvp(f, (x,), (x,)),
    "vjp": lambda torch, f, x: torch.func.vjp(f, x),
    "jacrev": lambda torch, f, x: torch.func.jacrev(f)(x),
    "jacfwd": lambda torch, f, x: torch.func.jacfwd(f)(x),
    "hessian": lambda torch, f, x: torch.func.hessian(f)(x),
}


@program
def arguments(torch):
    return {name: written(lambda f, t=t: t(torch, f, table(torch))) for name, t in TRANSFORMS.items()}


@program
def arguments_on_other_axes(torch):
    x = torch.ones(2, 3, 2, dtype=torch.float64)
    return (
        written(lambda f: torch.vmap(f, in_dims=1)(table(torch))),
        written(lambda f: torch.vmap(torch.vmap(f, in_dims=1), in_dims=1)(x)),
        written(lambda f: torch.vmap(f, in_dims=-1)(torch.ones(2, 3, dtype=torch.int64))),
    )


@program
def results(torch):
    def sums(change):
        one = {name: t for name, t in TRANSFORMS.items() if name not in ("vmap of vmap", "grad of grad")}
        return {n: written(lambda f, t=t: t(torch, f, table(torch)), change) for n, t in one.items()}

    return [sums(f) for f in (lambda t: t.sin(), lambda t: t[0], lambda t: t.unsqueeze(0), lambda t: torch.ones(2))]


@program
def a_tensor_made_inside(torch):
    return {
        n: written(lambda f, t=t: t(torch, f, table(torch)), lambda t: torch.ones(2)) for n, t in TRANSFORMS.items()
    }


@program
def of_other_sizes_and_dtypes(torch):
    out = []
    for x in (torch.zeros(40, 3, 20), torch.zeros(0), torch.tensor(1.0)):
        out.append(written(lambda f, x=x: torch.func.grad(f)(x)))
    for dtype in (torch.float16, torch.bfloat16, torch.float64):
        out.append(written(lambda f, d=dtype: torch.func.grad(f)(torch.zeros(2, dtype=d))))
        out.append(written(lambda f, d=dtype: torch.vmap(f)(torch.zeros(2, dtype=d))))
    return out


@program
def what_requires_grad_outside(torch):
    y, w = torch.ones(2, requires_grad=True), torch.nn.Parameter(torch.zeros(2, 2))
    return (
        written(lambda f: torch.func.grad(f)(y)),
        written(lambda f: torch.func.grad(f)(torch.zeros(2)), lambda t: y),
        written(lambda f: torch.vmap(f)(w)),
        written(lambda f: torch.vmap(f)(w), lambda t: t * 2),
    )


@program
def duals(torch):
    forward = torch.autograd.forward_ad
    with forward.dual_level():
        dual = forward.make_dual(torch.zeros(2), torch.ones(2))
        return repr(dual), repr(dual * 2)


test_as_torch, test_recording_is_torchs = program.tests()
