"""How quick are transforms against the fastest way torch has, and against jax.jit?

python benchmarks/transforms.py [--json] [--threads N]

Hessian of a function of 64 variables, Jacobian of a three-layer MLP from 64 to 64, Hessian-vector product of an MLP with 100,000
parameters, per-sample gradients of a small conv net. torch may do each in several ways; the fastest of them counts. jax.jit's figure is
shown if jax is installed: it compiles beforehand, which eager libraries do not.
"""

from __future__ import annotations

import argparse
import statistics
import time
import timeit

import torch
from compare import REST, Row, compare, report

import retrograd


def hessian_ways(lib):
    lib.manual_seed(0)
    a, x = lib.randn(64, 64), lib.randn(64)

    def f(x):
        y = lib.tanh(a @ x)
        return (y * y).sum() + lib.exp(-(x * x)).sum()

    ways = {
        "func.hessian": lambda: lib.func.hessian(f)(x),
        "jacrev(jacrev)": lambda: lib.func.jacrev(lib.func.jacrev(f))(x),
        "functional.hessian": lambda: lib.autograd.functional.hessian(f, x),
        "functional.hessian, vectorize": lambda: lib.autograd.functional.hessian(f, x, vectorize=True),
    }
    return ways, (a, x)


def jacobian_ways(lib):
    lib.manual_seed(0)
    weights = [lib.randn(64, 64) * 0.1 for _ in range(3)]
    x = lib.randn(64)

    def f(x):
        for w in weights[:-1]:
            x = lib.tanh(w @ x)
        return weights[-1] @ x

    ways = {
        "func.jacrev": lambda: lib.func.jacrev(f)(x),
        "func.jacfwd": lambda: lib.func.jacfwd(f)(x),
        "functional.jacobian": lambda: lib.autograd.functional.jacobian(f, x),
        "functional.jacobian, vectorize": lambda: lib.autograd.functional.jacobian(f, x, vectorize=True),
    }
    return ways, (weights, x)


def hvp_ways(lib):
    lib.manual_seed(0)
    sizes = [(100, 256), (256, 256), (256, 32)]
    weights = [lib.randn(n, m) * 0.05 for n, m in sizes]  # 99,328 parameters
    vectors = [lib.randn(n, m) for n, m in sizes]
    x, y = lib.randn(64, 100), lib.randn(64, 32)

    def loss(*ws):
        h = x
        for w in ws[:-1]:
            h = lib.tanh(h @ w)
        return ((h @ ws[-1] - y) ** 2).mean()

    def double_backward():
        ws = [w.clone().requires_grad_() for w in weights]
        grads = lib.autograd.grad(loss(*ws), ws, create_graph=True)
        return lib.autograd.grad(grads, ws, vectors)

    def forward_over_reverse():
        return lib.func.jvp(lib.func.grad(loss, argnums=(0, 1, 2)), tuple(weights), tuple(vectors))

    ways = {
        "double backward": double_backward,
        "jvp(grad)": forward_over_reverse,
        "functional.hvp": lambda: lib.autograd.functional.hvp(loss, tuple(weights), tuple(vectors)),
        "functional.vhp": lambda: lib.autograd.functional.vhp(loss, tuple(weights), tuple(vectors)),
    }
    if hasattr(lib.func, "hvp"):
        ways["func.hvp"] = lambda: lib.func.hvp(loss, tuple(weights), tuple(vectors), argnums=(0, 1, 2))
    return ways, (weights, vectors, x, y)


def per_sample_ways(lib):
    lib.manual_seed(0)
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 8, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
        nn.Linear(400, 10),
    )  # fmt: skip
    params = {name: p.detach() for name, p in model.named_parameters()}
    x, y = lib.randn(32, 1, 28, 28), lib.randint(0, 10, (32,))

    def loss(params, sample, target):
        out = lib.func.functional_call(model, params, (sample.unsqueeze(0),))
        return nn.functional.cross_entropy(out, target.unsqueeze(0))

    per_sample = lib.func.vmap(lib.func.grad(loss), in_dims=(None, 0, 0))

    def loop():
        leaves = {name: p.clone().requires_grad_() for name, p in params.items()}
        return [lib.autograd.grad(loss(leaves, x[i], y[i]), list(leaves.values())) for i in range(32)]

    return {"vmap(grad)": lambda: per_sample(params, x, y), "loop": loop}, (params, x, y)


QUESTIONS = {
    "Hessian, 64 variables": hessian_ways,
    "Jacobian 64 x 64, three-layer MLP": jacobian_ways,
    "HVP, MLP of 100,000 parameters": hvp_ways,
    "per-sample gradients, conv net, 32": per_sample_ways,
}


def seconds(function, rounds=7):
    """Return the median time of a call."""
    time.sleep(REST)
    function()
    number = max(1, int(0.05 / max(timeit.timeit(function, number=1), 1e-6)))
    return statistics.median(timeit.timeit(function, number=number) / number for _ in range(rounds))


def fastest(ways):
    return min(ways.items(), key=lambda item: seconds(item[1], rounds=3))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    for lib in (torch, retrograd):
        lib.set_num_threads(options.threads)
    try:
        import jax_ways
    except ImportError:
        jax_ways = None
    rows: list[Row] = []
    for name, make in QUESTIONS.items():
        (our_name, ours), (their_name, theirs) = fastest(make(retrograd)[0]), fastest(make(torch)[0])
        rows.append(compare(f"{name}: {our_name} against {their_name}", ours, theirs, rounds=9, rest=REST))
        if jax_ways is not None:
            call = jax_ways.WAYS[name](make(torch)[1])
            rows.append(compare("  the same against jax.jit, compiled", ours, call, rounds=5, rest=REST))
    report("times as quick as the fastest way of torch (median, middle half)", rows)


if __name__ == "__main__":
    main()
