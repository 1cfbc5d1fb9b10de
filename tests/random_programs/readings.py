"""What is asked of the function `f` of a program. `numeric` asks the same of finite differences, where that has a meaning.

Both are text that leaves its answer in `r`; `xs` are the leaves. The words `tup`, `total`, `loss`, `weights` stand in programs.HELPERS, the
numeric ones in NUMERIC.
"""

from __future__ import annotations

from dataclasses import dataclass

NUMERIC = """
def num_jvp(f, xs, ts, h=1e-5):
    up = tup(f(*[x + h * t for x, t in zip(xs, ts)]))
    down = tup(f(*[x - h * t for x, t in zip(xs, ts)]))
    return tuple((a - b) / (2 * h) for a, b in zip(up, down))


def basis(x):
    for k in range(x.numel()):
        for unit in (1, 1j) if x.is_complex() else (1,):
            e = torch.zeros(x.numel(), dtype=x.dtype)
            e[k] = unit
            yield unit, e.reshape(x.shape)


def num_grad(loss, xs, h=1e-5):
    found = []
    for n, x in enumerate(xs):
        g = torch.zeros(x.numel(), dtype=x.dtype)
        for k, (unit, e) in enumerate(basis(x)):
            ts = [e if m == n else torch.zeros_like(one) for m, one in enumerate(xs)]
            g[k // (2 if x.is_complex() else 1)] += unit * num_jvp(loss, xs, ts, h)[0]
        found.append(g.reshape(x.shape))
    return tuple(found)


def num_jac(f, xs, h=1e-5):
    columns = []
    for n, x in enumerate(xs):
        parts = []
        for _, e in basis(x):
            ts = [e if m == n else torch.zeros_like(one) for m, one in enumerate(xs)]
            parts.append(num_jvp(f, xs, ts, h))
        outs = tup(f(*xs))
        columns.append(
            [
                torch.stack([p[k] for p in parts], -1).reshape(out.shape + x.shape)
                if parts
                else torch.zeros(out.shape + x.shape, dtype=out.dtype)
                for k, out in enumerate(outs)
            ]
        )
    return columns


def jac_first(columns):
    return tuple(column[0] for column in columns)
"""


@dataclass(frozen=True)
class Reading:
    """A question, whether the leaves must require grad for it (None: either), and whether `f` must return one tensor."""

    text: str
    numeric: str | None = None
    grad: bool | None = True
    single: bool = False
    weight: float = 1.0


GRAD = "tuple(x.grad for x in xs)"
BATCH = "bs = tuple(torch.stack([x, x * 0.5, x * 0.75]) for x in xs)"
LOOP = "[tup(f(*[b[k] for b in bs])) for k in range(3)]"
TANGENTS = "ts = tuple(weights(x) for x in xs)"
CLEAN = "xs = tuple(x.detach() for x in xs)"
DUAL = f"""{TANGENTS}
with torch.autograd.forward_ad.dual_level():
    y = tup(f(*[torch.autograd.forward_ad.make_dual(x, t) for x, t in zip(xs, ts)]))
    r = tuple(tuple(torch.autograd.forward_ad.unpack_dual(v)) for v in y)"""
NUM_GRAD = "r = num_grad(loss, xs)"
NUM_VALUE_GRAD = "r = tup(f(*xs)) + num_grad(loss, xs)"
NUM_SECOND = "r = num_grad(lambda *a: total(num_grad(loss, a, 1e-4)), xs, 1e-4)"
NUM_HESSIAN = "r = jac_first(num_jac(lambda x: num_grad(lambda a: loss(a, *xs[1:]), (x,), 1e-4), xs[:1], 1e-4))"
NET = """class Net(torch.nn.Module):
    def __init__(self):
        super().__init__()
        for k, x in enumerate(xs):
            self.register_parameter(f"p{k}", torch.nn.Parameter(x.detach().clone()))

    def forward(self):
        return f(*self.parameters())
net = Net()"""

READINGS: dict[str, Reading] = {
    "forward": Reading("r = f(*xs)", "r = f(*xs)", grad=None),
    "no_grad": Reading("with torch.no_grad():\n    r = f(*xs)", "r = f(*xs)"),
    "backward": Reading(f"y = f(*xs)\ntotal(y).backward()\nr = tup(y) + {GRAD}", NUM_VALUE_GRAD),
    "backward twice": Reading(
        f"y = total(f(*xs))\ny.backward(retain_graph=True)\ny.backward()\nr = {GRAD}",
        "r = tuple(2 * g for g in num_grad(loss, xs))",
    ),
    "grad": Reading("r = torch.autograd.grad(loss(*xs), xs, allow_unused=True)", NUM_GRAD),
    "grad materialized": Reading(
        "y = tup(f(*xs))\nr = torch.autograd.grad(y, xs, [weights(v) for v in y], materialize_grads=True)", NUM_GRAD
    ),
    "grad of grad": Reading(
        "g = torch.autograd.grad(loss(*xs), xs, create_graph=True, allow_unused=True)\n"
        "r = tup(g) + torch.autograd.grad(total(g), xs, allow_unused=True)",
        f"r = num_grad(loss, xs) + {NUM_SECOND[4:]}",
    ),
    "is_grads_batched": Reading(
        "y = f(*xs)\nw = weights(y)\n"
        "r = torch.autograd.grad(y, xs, torch.stack([w, 2 * w, 1 - w]), is_grads_batched=True, allow_unused=True)",
        single=True,
    ),
    "vjp": Reading(
        f"{TANGENTS}\ny, pull = torch.func.vjp(f, *xs)\nr = tup(y) + tup(pull(weights(y)))",
        NUM_VALUE_GRAD,
        grad=None,
        single=True,
    ),
    "func.grad": Reading("r = torch.func.grad(loss, argnums=tuple(range(len(xs))))(*xs)", NUM_GRAD, grad=None),
    "grad_and_value": Reading("r = torch.func.grad_and_value(loss)(*xs)", grad=None),
    "jvp": Reading(
        f"{TANGENTS}\ny, t = torch.func.jvp(f, xs, ts)\nr = tup(y) + tup(t)",
        f"{TANGENTS}\nr = tup(f(*xs)) + num_jvp(f, xs, ts)",
        grad=None,
    ),
    "forward_ad": Reading(DUAL, f"{TANGENTS}\nr = tuple(zip(tup(f(*xs)), num_jvp(f, xs, ts)))", grad=None),
    "jacrev": Reading("r = torch.func.jacrev(f)(*xs)", "r = num_jac(f, xs)[0][0]", grad=None, single=True),
    "jacrev chunked": Reading(
        "r = torch.func.jacrev(f, chunk_size=2)(*xs)", "r = num_jac(f, xs)[0][0]", grad=False, single=True
    ),
    "jacfwd": Reading("r = torch.func.jacfwd(f)(*xs)", "r = num_jac(f, xs)[0][0]", grad=None, single=True),
    "autograd.jacobian": Reading(
        "r = torch.autograd.functional.jacobian(f, xs)", "r = jac_first(num_jac(f, xs))", grad=None, single=True
    ),
    "autograd.hvp": Reading(
        f"{TANGENTS}\nr = torch.autograd.functional.hvp(loss, xs, ts)[1]",
        f"{TANGENTS}\nr = num_jvp(lambda *a: num_grad(loss, a, 1e-4), xs, ts, 1e-4)",
        grad=False,
    ),
    "hessian": Reading("r = torch.func.hessian(loss)(*xs)", f"{NUM_HESSIAN}[0]", grad=False),
    "jacrev of jacrev": Reading("r = torch.func.jacrev(torch.func.jacrev(loss))(*xs)", f"{NUM_HESSIAN}[0]", grad=False),
    "jacfwd of jacfwd": Reading("r = torch.func.jacfwd(torch.func.jacfwd(loss))(*xs)", f"{NUM_HESSIAN}[0]", grad=False),
    "vmap": Reading(
        f"{BATCH}\nr = torch.vmap(f, randomness='same')(*bs)",
        f"{BATCH}\nr = tuple(torch.stack(c) for c in zip(*{LOOP}))",
        grad=None,
    ),
    "vmap in_dims": Reading(
        "bs = tuple(torch.stack([x, x * 0.5], -1) for x in xs)\nr = torch.vmap(f, in_dims=-1, out_dims=-1)(*bs)",
        "r = tuple(torch.stack(c, -1) for c in zip(*[tup(f(*xs)), tup(f(*[x * 0.5 for x in xs]))]))",
        grad=None,
    ),
    "vmap of the first": Reading(
        "b = torch.stack([xs[0], xs[0] * 0.5])\nr = torch.vmap(f, in_dims=(0,) + (None,) * (len(xs) - 1))(b, *xs[1:])",
        "r = tuple(torch.stack(c) for c in zip(*[tup(f(*xs)), tup(f(xs[0] * 0.5, *xs[1:]))]))",
        grad=None,
    ),
    "vmap nested": Reading(
        "bs = tuple(torch.stack([torch.stack([x, x * 0.5]), torch.stack([x * 0.7, x * 0.6])]) for x in xs)\n"
        "r = torch.vmap(torch.vmap(f), in_dims=1)(*bs)",
        grad=None,
    ),
    "vmap then backward": Reading(
        f"{BATCH}\nr = torch.vmap(f)(*bs)\ntotal(r).backward()\nr = {GRAD}",
        f"def g(*xs):\n    {BATCH}\n    return total(tuple(torch.stack(c) for c in zip(*{LOOP})))\nr = num_grad(g, xs)",
    ),
    "vmap of grad": Reading(
        f"{BATCH}\nr = torch.vmap(torch.func.grad(loss))(*bs)",
        f"{BATCH}\nr = torch.stack([num_grad(loss, [b[k] for b in bs])[0] for k in range(3)])",
        grad=None,
    ),
    "vmap of jacrev": Reading(
        f"{BATCH}\nr = torch.vmap(torch.func.jacrev(f))(*bs)",
        f"{BATCH}\nr = torch.stack([num_jac(f, [b[k] for b in bs])[0][0] for k in range(3)])",
        grad=False,
        single=True,
    ),
    "vmap of jvp": Reading(
        f"{BATCH}\nr = torch.vmap(lambda *xs: torch.func.jvp(f, xs, tuple(weights(x) for x in xs))[1])(*bs)",
        f"{BATCH}\nr = tuple(torch.stack(c) for c in zip(*[num_jvp(f, [b[k] for b in bs], [weights(x) for x in xs])"
        " for k in range(3)]))",
        grad=False,
    ),
    "jvp of vmap": Reading(
        f"{BATCH}\nr = torch.func.jvp(torch.vmap(f), bs, tuple(weights(b) for b in bs))",
        f"{BATCH}\nws = [weights(b) for b in bs]\n"
        f"loop = lambda *bs: tuple(torch.stack(c) for c in zip(*{LOOP}))\n"
        "r = tuple(zip(*[loop(*bs), num_jvp(loop, bs, ws)])) if len(loop(*bs)) > 1 else [loop(*bs)[0], num_jvp(loop, bs, ws)[0]]",
        grad=False,
    ),
    "jvp of grad": Reading(
        f"{TANGENTS}\nr = torch.func.jvp(torch.func.grad(loss), xs, ts)[1]",
        f"{TANGENTS}\nr = num_jvp(lambda *a: num_grad(loss, a, 1e-4)[:1], xs, ts, 1e-4)[0]",
        grad=None,
    ),
    "grad of jvp": Reading(
        f"{TANGENTS}\nr = torch.func.grad(lambda *a: total(torch.func.jvp(f, a, ts)[1]))(*xs)",
        f"{TANGENTS}\nr = num_grad(lambda *a: total(num_jvp(f, a, ts, 1e-4)), xs, 1e-4)[0]",
        grad=None,
    ),
    "jvp of jvp": Reading(
        f"{TANGENTS}\nr = torch.func.jvp(lambda *a: torch.func.jvp(f, a, ts)[1], xs, ts)[1]",
        f"{TANGENTS}\nr = num_jvp(lambda *a: num_jvp(f, a, ts, 1e-4), xs, ts, 1e-4)",
        grad=False,
    ),
    "backward of jvp": Reading(
        f"{TANGENTS}\ny, t = torch.func.jvp(f, xs, ts)\ntotal(t).backward()\nr = {GRAD}",
        f"{TANGENTS}\nr = num_grad(lambda *a: total(num_jvp(f, a, ts, 1e-4)), xs, 1e-4)",
    ),
    "backward of func.grad": Reading(
        f"g = torch.func.grad(loss)(*xs)\ntotal(g).backward()\nr = (g, *{GRAD})",
        "r = num_grad(loss, xs)[:1] + num_grad(lambda *a: total(num_grad(loss, a, 1e-4)[0]), xs, 1e-4)",
    ),
    "linearize": Reading(
        f"{TANGENTS}\ny, push = torch.func.linearize(f, *xs)\nr = tup(y) + tup(push(*ts))",
        f"{TANGENTS}\nr = tup(f(*xs)) + num_jvp(f, xs, ts)",
        grad=False,
        weight=0.05,  # torch traces `f`, for a quarter of a second
    ),
    "functional_call": Reading(
        f"{NET}\nr = torch.func.functional_call(net, {{f'p{{k}}': x * 0.5 for k, x in enumerate(xs)}}, ())\n"
        f"total(r).backward()\nr = tup(r) + {GRAD}",
        "g = lambda *a: f(*[x * 0.5 for x in a])\nr = tup(g(*xs)) + num_grad(lambda *a: total(g(*a)), xs)",
    ),
    "module": Reading(
        f"{NET}\ny = net()\ntotal(y).backward()\nr = tup(y) + tuple(p.grad for p in net.parameters())", NUM_VALUE_GRAD
    ),
    "checkpoint": Reading(
        f"y = torch.utils.checkpoint.checkpoint(f, *xs, use_reentrant=False)\ntotal(y).backward()\nr = tup(y) + {GRAD}",
        NUM_VALUE_GRAD,
    ),
    "checkpoint reentrant": Reading(
        f"y = torch.utils.checkpoint.checkpoint(f, *xs, use_reentrant=True)\ntotal(y).backward()\nr = tup(y) + {GRAD}",
        NUM_VALUE_GRAD,
    ),
    "saved_tensors_hooks": Reading(
        "with torch.autograd.graph.saved_tensors_hooks(lambda t: t.clone(), lambda t: t * 1):\n    y = f(*xs)\n"
        f"total(y).backward()\nr = tup(y) + {GRAD}",
        NUM_VALUE_GRAD,
    ),
    "save_on_cpu": Reading(
        f"with torch.autograd.graph.save_on_cpu():\n    y = f(*xs)\ntotal(y).backward()\nr = tup(y) + {GRAD}",
        NUM_VALUE_GRAD,
    ),
    "write into vmap": Reading(
        f"{BATCH}\ny = torch.vmap(f)(*bs)\ny.mul_(2.0)\ntotal(y).backward()\nr = (y, *{GRAD})",
        f"def g(*xs):\n    {BATCH}\n    return torch.stack([one[0] for one in {LOOP}]) * 2\n"
        "r = (g(*xs), *num_grad(lambda *a: total(g(*a)), xs))",
        single=True,
    ),
    "write into jvp": Reading(
        f"{TANGENTS}\ny, t = torch.func.jvp(f, xs, ts)\nt.mul_(2.0)\ntotal((y, t)).backward()\nr = (y, t, *{GRAD})",
        f"{TANGENTS}\ng = lambda *a: (f(*a), 2 * num_jvp(f, a, ts, 1e-4)[0])\n"
        "r = (*g(*xs), *num_grad(lambda *a: total(g(*a)), xs, 1e-4))",
        single=True,
    ),
    "write into grad": Reading(
        f"g = torch.func.grad(loss)(*xs)\ng.mul_(2.0)\ntotal(g).backward()\nr = (g, *{GRAD})",
        "g = lambda *a: 2 * num_grad(loss, a, 1e-4)[0]\nr = (g(*xs), *num_grad(lambda *a: total(g(*a)), xs, 1e-4))",
    ),
    "write into the result": Reading(
        f"y = f(*xs)\ny.mul_(2.0)\ntotal(y).backward()\nr = (y, *{GRAD})",
        "r = (2 * f(*xs), *(2 * g for g in num_grad(loss, xs)))",
        single=True,
    ),
}
