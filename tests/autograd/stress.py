"""Many threads at once: forward and backward with hooks on separate and shared graphs, for a given time.

python -m tests.autograd.stress [--threads 16] [--seconds 60]
"""

from __future__ import annotations

import argparse
import gc
import threading
import time
import tracemalloc
import weakref
from typing import Any

import numpy as np

import retrograd as torch


class Stress:
    """The work of all threads, and what they found."""

    def __init__(self, seconds: float) -> None:
        torch.manual_seed(0)
        self.end = time.monotonic() + seconds
        self.model = torch.nn.Sequential(
            torch.nn.Linear(8, 16), torch.nn.Tanh(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 4)
        ).double()
        self.x = torch.randn(5, 8, dtype=torch.float64)
        self.expected = self._gradients()
        leaf = torch.ones(6, dtype=torch.float64, requires_grad=True)
        self.shared_leaf = leaf
        self.shared = (leaf.exp() * leaf.sin()).sum()
        (self.shared_expected,) = torch.autograd.grad(self.shared, leaf, retain_graph=True)
        self.rounds = 0
        self.wrong: list[str] = []
        self.lock = threading.Lock()
        self.graphs: weakref.WeakSet[Any] = weakref.WeakSet()

    def _gradients(self) -> list[np.ndarray]:
        loss = (self.model(self.x) ** 2).sum()
        return [g.numpy() for g in torch.autograd.grad(loss, list(self.model.parameters()))]

    def check(self, what: str, ok: bool) -> None:
        if not ok:
            with self.lock:
                self.wrong.append(what)

    def own_graph(self) -> None:
        """A graph of this thread over shared parameters: sums are made in one order, so the bits are the same."""
        found = self._gradients()
        self.check("own graph", all(np.array_equal(a, b) for a, b in zip(found, self.expected, strict=True)))

    def shared_graph(self) -> None:
        """One retained graph, walked by all threads."""
        (found,) = torch.autograd.grad(self.shared, self.shared_leaf, retain_graph=True)
        self.check("shared graph", torch.equal(found, self.shared_expected))

    def hooks(self) -> None:
        """Hooks on tensors, leaves and nodes, one of which runs a backward of its own."""
        x = torch.ones(3, dtype=torch.float64, requires_grad=True)
        seen: list[int] = []
        y = x * 3

        def inside(g: Any) -> Any:
            z = torch.ones(2, dtype=torch.float64, requires_grad=True)
            with torch.enable_grad():
                (z * z).sum().backward()
            seen.append(int(z.grad.sum()))
            return g * 2

        y.register_hook(inside)
        y.grad_fn.register_prehook(lambda grads: seen.append(1))
        x.register_post_accumulate_grad_hook(lambda p: seen.append(2))
        out = (y * y).sum()
        self.graphs.add(out.grad_fn)
        out.backward()
        self.check("hooks", x.grad.tolist() == [36.0] * 3 and sorted(seen) == [1, 2, 4])

    def transforms(self) -> None:
        """vmap of grad, and forward over reverse."""
        x = torch.arange(4, dtype=torch.float64)
        found = torch.func.vmap(torch.func.grad(lambda t: t**3))(x)
        self.check("vmap(grad)", torch.equal(found, 3 * x**2))
        second = torch.func.hessian(lambda t: (t**3).sum())(x)
        self.check("hessian", torch.allclose(second, torch.diag(6 * x)))

    def writes(self) -> None:
        """In-place writes through views."""
        x = torch.ones(4, dtype=torch.float64, requires_grad=True)
        y = x.clone()
        y[:2].mul_(3)
        (y * y).sum().backward()
        self.check("writes", x.grad.tolist() == [18.0, 18.0, 2.0, 2.0])

    def work(self, which: int) -> None:
        jobs = [self.own_graph, self.shared_graph, self.hooks, self.transforms, self.writes]
        done = 0
        while time.monotonic() < self.end:
            jobs[(which + done) % len(jobs)]()
            done += 1
        with self.lock:
            self.rounds += done


def run(threads: int, seconds: float) -> tuple[int, list[str], int, int]:
    """Return the rounds done, what went wrong, the graphs that are left, and the bytes that are left."""
    Stress(0.2).work(0)  # what is loaded and cached on first use is no leak
    gc.collect()
    tracemalloc.start()
    stress = Stress(seconds)
    errors: list[str] = []

    def guarded(which: int) -> None:
        try:
            stress.work(which)
        except BaseException as error:
            errors.append(repr(error))

    gc.disable()  # memory must go by reference counting alone
    try:
        workers = [threading.Thread(target=guarded, args=(i,), daemon=True) for i in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join(seconds + 60)
        errors += ["a thread hangs" for worker in workers if worker.is_alive()]
        graphs = len(stress.graphs)
        bytes_left = tracemalloc.get_traced_memory()[0]
    finally:
        gc.enable()
        tracemalloc.stop()
    return stress.rounds, stress.wrong + errors, graphs, bytes_left


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    parser.add_argument("--threads", type=int, default=16)
    parser.add_argument("--seconds", type=float, default=60)
    options = parser.parse_args()
    rounds, wrong, graphs, left = run(options.threads, options.seconds)
    print(f"{rounds} rounds in {options.threads} threads, {len(wrong)} wrong, {graphs} graphs and {left} bytes left")
    for line in wrong[:10]:
        print(" ", line)


if __name__ == "__main__":
    main()
