"""How quick are whole models, forward and backward, against torch eager?

python benchmarks/nn.py [--json] [--threads N] [--only small,conv] [--train]

Both libraries run the same program in turns, each in a process of its own, with the same number of threads (2 unless told).
`--train` adds an optimizer step to each. Needs torch (pip install torch==2.13.0).
"""

from __future__ import annotations

import argparse
import itertools

from compare import Row, report
from processes import Library, race, serve, warn_if_busy


def mlp(lib, sizes, batch):
    """Linear layers with ReLU between, cross entropy on top."""
    layers = []
    for i, (n, m) in enumerate(itertools.pairwise(sizes)):
        layers += [lib.nn.Linear(n, m), lib.nn.ReLU()] if i < len(sizes) - 2 else [lib.nn.Linear(n, m)]
    model = lib.nn.Sequential(*layers)
    x, y = lib.randn(batch, sizes[0]), lib.randint(0, sizes[-1], (batch,))
    return model, lambda: lib.nn.functional.cross_entropy(model(x), y)


def conv_net(lib):
    """LeNet's shape: two convolutions with pooling, three linear layers; batch 32 of 28 x 28."""
    nn = lib.nn
    model = nn.Sequential(
        nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
    )  # fmt: skip
    x, y = lib.randn(32, 1, 28, 28), lib.randint(0, 10, (32,))
    return model, lambda: nn.functional.cross_entropy(model(x), y)


def transformer(lib):
    """Two encoder layers: d = 128, 4 heads, sequences of 64, batch 8."""
    nn = lib.nn
    model = nn.TransformerEncoder(
        nn.TransformerEncoderLayer(128, 4, 512, batch_first=True), 2, enable_nested_tensor=False
    )
    x = lib.randn(8, 64, 128)
    return model, lambda: (model(x) ** 2).mean()


class HandWrittenGRU:
    """A GRU as people write it: a loop over 50 steps; hidden 64, batch 16."""

    def __init__(self, lib):
        self.lib = lib
        self.input, self.hidden = lib.nn.Linear(32, 192), lib.nn.Linear(64, 192)
        self.x = lib.randn(50, 16, 32)

    def __call__(self):
        lib = self.lib
        h = lib.zeros(16, 64)
        for step in range(50):
            xr, xz, xn = self.input(self.x[step]).chunk(3, 1)
            hr, hz, hn = self.hidden(h).chunk(3, 1)
            r, z = lib.sigmoid(xr + hr), lib.sigmoid(xz + hz)
            n = lib.tanh(xn + r * hn)
            h = n + z * (h - n)
        return (h * h).sum()


def gru(lib):
    cell = HandWrittenGRU(lib)
    return lib.nn.ModuleList([cell.input, cell.hidden]), cell


def cross_entropy(lib):
    """4096 x 8192 logits."""
    logits, y = lib.nn.Parameter(lib.randn(4096, 8192)), lib.randint(0, 8192, (4096,))
    return lib.nn.ParameterList([logits]), lambda: lib.nn.functional.cross_entropy(logits, y)


def elementwise(lib, a, b):
    x = lib.tanh(a * b + a)
    x = lib.sigmoid(x - b) * x
    return (lib.exp(-x * x) + x).sum()


def chain(lib):
    """Elementwise operations on 2 million elements."""
    a, b = lib.nn.Parameter(lib.randn(2_000_000)), lib.nn.Parameter(lib.randn(2_000_000))

    return lib.nn.ParameterList([a, b]), lambda: elementwise(lib, a, b)


WORKLOADS = {
    "mlp: 784-512-512-10, batch 128": (lambda lib: mlp(lib, (784, 512, 512, 10), 128), "Adam"),
    "conv net: LeNet, batch 32 of 28x28": (conv_net, "SGD"),
    "transformer: 2 layers, d=128, seq 64, batch 8": (transformer, "AdamW"),
    "gru: written by hand, hidden 64, 50 steps": (gru, "Adam"),
    "small mlp: 16-32-32-4, batch 32": (lambda lib: mlp(lib, (16, 32, 32, 4), 32), "SGD"),
    "cross entropy: 4096 x 8192 logits": (cross_entropy, "SGD"),
    "chain: elementwise, 2 million elements": (chain, "SGD"),
}


def step_of(lib, name, train):
    """Return one step of a workload: forward and backward, with the optimizer if asked for."""
    lib.manual_seed(0)
    make, optimizer = WORKLOADS[name]
    model, loss = make(lib)
    if train:
        optim = getattr(lib.optim, optimizer)(model.parameters(), lr=1e-4)

        def step():
            optim.zero_grad()
            loss().backward()
            optim.step()

        return step
    parameters = list(model.parameters())

    def step():
        loss().backward()
        for p in parameters:
            p.grad = None

    return step


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--json", action="store_true")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", default="", help="words that the names of workloads begin with")
    parser.add_argument("--train", action="store_true")
    parser.add_argument("--rounds", type=int, default=15)
    parser.add_argument("--serve", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.serve:
        serve(options.serve, lambda lib, **what: ({"step": step_of(lib, **what)}, None))
        return
    rows = []
    if not options.json:
        warn_if_busy(options.threads)
    with Library(__file__, "retrograd") as ours, Library(__file__, "torch") as theirs:
        for name in WORKLOADS:
            if not options.only or any(name.startswith(word) for word in options.only.split(",")):
                for library in (ours, theirs):
                    library.ask(make={"name": name, "train": options.train})
                rows.append(Row.of(name, *race((ours, theirs), "step", options.threads, options.rounds)))
    what = "training steps" if options.train else "forward and backward"
    report(f"{what}: times as quick as torch eager, {options.threads} threads (median, middle half)", rows)


if __name__ == "__main__":
    main()
