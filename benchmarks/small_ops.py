"""How quick is a small operation, forward and backward, against torch eager?

python benchmarks/small_ops.py [--json]        needs torch (pip install torch==2.13.0); one thread on both sides
"""

from __future__ import annotations

import torch
from compare import compare, report

import retrograd


def workloads(lib):
    """Build the same closures for either library."""
    a = lib.tensor([1.0, 2.0, 3.0], requires_grad=True)
    b = lib.tensor([0.5, 0.6, 0.7], requires_grad=True)
    s = lib.tensor(1.1, requires_grad=True)
    u = lib.tensor(0.9, requires_grad=True)
    seed = lib.ones(3)

    def twenty():
        y = a
        for _ in range(20):
            y = y * b
        y.backward(seed)

    def expression():
        x = s
        for _ in range(50):  # 4 operations each: 200 nodes
            x = x * u + s
            x = x * 0.5 - u
        x.backward()

    def no_grad():
        with lib.no_grad():
            return a * b

    return {
        "a * b, 3 elements, with grad": lambda: a * b,
        "a + b, 3 elements, with grad": lambda: a + b,
        "a * 2.0, 3 elements, with grad": lambda: a * 2.0,
        "a.tanh(), 3 elements, with grad": lambda: a.tanh(),
        "a.sum(), 3 elements, with grad": lambda: a.sum(),
        "a[0], with grad": lambda: a[0],
        "scalar * scalar, with grad": lambda: s * u,
        "a * b under no_grad": no_grad,
        "a * b, forward and backward": lambda: (a * b).backward(seed),
        "20 multiplications, forward and backward": twenty,
        "200-node scalar expression, forward and back": expression,
    }


def main() -> None:
    torch.set_num_threads(1)
    ours, theirs = workloads(retrograd), workloads(torch)
    report(
        "times as quick as torch eager (median, middle half)",
        [compare(name, ours[name], theirs[name]) for name in ours],
    )


if __name__ == "__main__":
    main()
