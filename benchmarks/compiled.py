"""How quick are compiled functions against torch's eager mode?

python benchmarks/compiled.py [--json] [--threads N] [--torch-compile] [--jax] [ROW ...]
python benchmarks/compiled.py --memory [ROW ...]

Each library has a process of its own, and they are timed in turns. Figures are times over torch's eager time: retrograd compiled,
retrograd in eager and, with `--torch-compile`, torch compiled (its first call may take minutes, and needs g++), with `--jax`
jax.jit (`jax_compiled.py`, `pip install jax`). `first` is what the first three compiled calls of retrograd take, in seconds.
`--memory` shows the most memory that a call of retrograd takes at a time, in eager and compiled, what programs keep between calls included.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import json
import statistics
import sys
import time
import tracemalloc

from processes import Library, NotMeasuredError, serve, warn_if_busy

ROUNDS, SECONDS = 7, 0.2


def multiplications(lib):
    x = lib.randn(4, 4)

    def function(x):
        for _ in range(20):
            x = x * 1.01
        return x

    return function, (x,)


def multiplications_with_backward(lib):
    x = lib.randn(4, 4, requires_grad=True)

    def function(x):
        y = x
        for _ in range(20):
            y = y * 1.01
        return lib.autograd.grad(y.sum(), x)[0]

    return function, (x,)


def scalar_graph(lib):
    a, b = lib.tensor(1.0, requires_grad=True), lib.tensor(0.9, requires_grad=True)

    def function(a, b):
        x, y = a, b
        for _ in range(67):
            x, y = x * y, x + y * 0.01
        return lib.autograd.grad(x + y, (a, b))

    return function, (a, b)


def training_step(lib, model, x, y, optimizer=None):
    optimizer = optimizer or lib.optim.SGD(model.parameters(), lr=0.01)

    def step(x, y):
        loss = lib.nn.functional.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        optimizer.zero_grad()
        return loss.detach()

    return step, (x, y)


def small_mlp_step(lib):
    nn = lib.nn
    model = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 4))
    return training_step(lib, model, lib.randn(32, 16), lib.randint(0, 4, (32,)))


def mlp_step(lib):
    nn = lib.nn
    model = nn.Sequential(nn.Linear(784, 512), nn.ReLU(), nn.Linear(512, 512), nn.ReLU(), nn.Linear(512, 10))
    return training_step(lib, model, lib.randn(64, 784), lib.randint(0, 10, (64,)))


def lenet_step(lib):
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.AvgPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.AvgPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    return training_step(lib, model, lib.randn(32, 1, 28, 28), lib.randint(0, 10, (32,)))


def rnn_loop(lib):
    w, u = (lib.randn(n, 32).mul(0.15).requires_grad_() for n in (32, 16))
    xs = lib.randn(20, 8, 16)

    def function(xs, w, u):
        h = lib.zeros(8, 32)
        for x in xs.unbind(0):
            h = lib.tanh(x @ u + h @ w)
        return lib.autograd.grad(h.sum(), (w, u))

    return function, (xs, w, u)


def transformer_step(lib):
    nn = lib.nn

    class Model(nn.Module):
        def __init__(self):
            super().__init__()
            self.embedding = nn.Embedding(100, 64)
            self.layer = nn.TransformerEncoderLayer(64, 4, 128, dropout=0.0, batch_first=True)
            self.head = nn.Linear(64, 100)

        def forward(self, x):
            return self.head(self.layer(self.embedding(x))).flatten(0, 1)

    return training_step(lib, Model(), lib.randint(0, 100, (8, 32)), lib.randint(0, 100, (256,)))


def elementwise_chain(lib):
    x, w, b = (lib.randn(2_000_000, requires_grad=True) for _ in range(3))

    def function(x, w, b):
        y = lib.tanh(x * w + b) * lib.sigmoid(x) - lib.log1p(lib.exp(x))
        return lib.autograd.grad(y.sum(), (x, w, b))

    return function, (x, w, b)


def cross_entropy(lib):
    x, y = lib.randn(4096, 8192, requires_grad=True), lib.randint(0, 8192, (4096,))

    def function(x, y):
        return lib.autograd.grad(lib.nn.functional.cross_entropy(x, y), x)[0]

    return function, (x, y)


def hessian(lib):
    a, x = lib.randn(64, 64), lib.randn(64)

    def inner(x):
        y = lib.tanh(a @ x)
        return (y * y).sum() + lib.exp(-(x * x)).sum()

    return (lambda x: lib.func.hessian(inner)(x)), (x,)


def jacobian(lib):
    a, b, c = (lib.randn(64, 64) * 0.1 for _ in range(3))

    def inner(x):
        return c @ lib.tanh(b @ lib.tanh(a @ x))

    return (lambda x: lib.func.jacrev(inner)(x)), (lib.randn(64),)


def hessian_vector_product(lib):
    sizes = [(100, 256), (256, 256), (256, 32)]  # 99,328 parameters
    weights = [(lib.randn(n, m) * 0.05).requires_grad_() for n, m in sizes]
    vectors = [lib.randn(n, m) for n, m in sizes]
    x, y = lib.randn(64, 100), lib.randn(64, 32)

    def function(weights, vectors, x, y):
        h = lib.tanh(lib.tanh(x @ weights[0]) @ weights[1])
        loss = ((h @ weights[2] - y) ** 2).mean()
        grads = lib.autograd.grad(loss, weights, create_graph=True)
        return lib.autograd.grad(grads, weights, vectors)

    return function, (weights, vectors, x, y)


ROWS = {
    one.__name__: one
    for one in (
        multiplications, multiplications_with_backward, scalar_graph, small_mlp_step, mlp_step, lenet_step, rnn_loop,
        transformer_step, elementwise_chain, cross_entropy, hessian, jacobian, hessian_vector_product,
    )
}  # fmt: skip


def make(lib, row, compiles):
    """Return the calls of one row, and what the compiled function tells of itself."""
    if lib.__name__ == "jax":
        import jax_compiled

        return {"compiled": jax_compiled.call_of(row)}, {}
    lib.manual_seed(0)
    function, args = ROWS[row](lib)
    calls = {"eager": lambda: function(*args)}
    told = {}
    if compiles:
        compiled = lib.compile(function)
        begin = time.perf_counter()
        for _ in range(3):  # an optimizer makes its state in the first
            compiled(*args)
        told["first"] = time.perf_counter() - begin
        inner = getattr(compiled, "_compiled", None)
        if inner is not None:
            told["reasons"] = inner.reasons
        calls["compiled"] = lambda: compiled(*args)
    return calls, told


def measured(libraries, row, threads, with_torch):
    asked = [("torch", "eager"), ("retrograd", "compiled"), ("retrograd", "eager")]
    asked += [("torch", "compiled")] if with_torch else []
    asked += [("jax", "compiled")] if "jax" in libraries else []
    told = {}
    for name, library in libraries.items():
        told[name] = library.ask(make={"row": row, "compiles": name == "retrograd" or with_torch})
    times = {key: [] for key in asked}
    for _ in range(ROUNDS):
        for name, way in asked:
            times[name, way].append(libraries[name].ask(time=way, threads=threads, seconds=SECONDS))
    base = times["torch", "eager"]
    ratios = {
        f"{name} {way}": statistics.median(a / b for a, b in zip(times[name, way], base, strict=True))
        for name, way in asked
    }
    return {"row": row, "torch_us": statistics.median(base) * 1e6, **ratios, **told["retrograd"]}


def show_memory(row):
    """Print the most bytes that a call takes beyond what there was before, in eager and compiled."""
    import retrograd
    from retrograd.compiler import _stages

    retrograd.manual_seed(0)
    function, args = ROWS[row](retrograd)
    most = []
    tracemalloc.start()
    for call in (function, retrograd.compile(function)):
        for _ in range(3):
            call(*args)
        gc.collect()
        before, _ = tracemalloc.get_traced_memory()
        tracemalloc.reset_peak()
        call(*args)
        most.append(tracemalloc.get_traced_memory()[1] - before)
    tracemalloc.stop()
    most[1] += sum(one.nbytes for kept in _stages.arenas.values() for one in kept)
    _stages.arenas.clear()
    print(f"{row:30} eager {most[0] / 1e6:8.3f} MB, compiled {most[1] / 1e6:8.3f} MB", flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("rows", nargs="*", metavar="ROW", help=f"of {', '.join(ROWS)}; all if none is named")
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--torch-compile", action="store_true")
    parser.add_argument("--jax", action="store_true")
    parser.add_argument("--memory", action="store_true")
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, make)
        return
    if options.memory:
        for row in options.rows or ROWS:
            show_memory(row)
        return
    warn_if_busy(options.threads)
    names = ["torch", "retrograd", *(["jax"] if options.jax else [])]
    with contextlib.ExitStack() as stack:
        libraries = {name: stack.enter_context(Library(__file__, name)) for name in names}
        for row in options.rows or ROWS:
            try:
                found = measured(libraries, row, options.threads, options.torch_compile)
            except NotMeasuredError as error:
                print(f"{row}: {error}", file=sys.stderr)
                continue
            if options.json:
                print(json.dumps(found), flush=True)
            else:
                ways = ", ".join(
                    f"{name} {value:.3f}" for name, value in found.items() if " " in name and name != "torch eager"
                )
                print(
                    f"{row:30} torch {found['torch_us']:>10.1f} us; {ways}; first {found['first']:.2f} s {found['reasons'] or ''}",
                    flush=True,
                )


if __name__ == "__main__":
    main()
