"""Does the cost of a node grow with the graph? Chains of 100 to 1,000,000 operations, collector off and on.

python benchmarks/depth.py
"""

from __future__ import annotations

import gc
import time

import retrograd


def chain(length: int) -> tuple[float, float, float]:
    """Return nanoseconds per node: forward, backward, freeing."""
    x = retrograd.tensor(1.0, requires_grad=True)
    start = time.perf_counter()
    y = x
    for _ in range(length):
        y = y * 1.0000001
    built = time.perf_counter()
    y.backward()
    done = time.perf_counter()
    del y
    freed = time.perf_counter()
    return tuple(t / length * 1e9 for t in (built - start, done - built, freed - done))  # type: ignore[return-value]


def main() -> None:
    print(f"{'nodes':>9}  collector   forward  backward   freeing   (ns per node, best of 3)")
    for collector in (False, True):
        for length in (100, 1_000, 10_000, 100_000, 1_000_000):
            gc.collect()
            (gc.enable if collector else gc.disable)()
            best = [min(times) for times in zip(*(chain(length) for _ in range(3)), strict=True)]
            print(f"{length:>9}  {'on' if collector else 'off':>9}" + "".join(f"{t:>10.0f}" for t in best))
    gc.enable()


if __name__ == "__main__":
    main()
