"""How much memory does a process need that trains a sharded model, and what does a step take?

python benchmarks/sharding.py [--processes 1 2 4]       needs mpi4py and mpich

Sixteen layers of 1024 x 1024 in float32 (64 MB of parameters) train with Adam: whole in every process (DistributedDataParallel), sharded,
and sharded without freeing parameters between forward and backward. Each way runs in fresh processes. The peak is the most resident memory
during steps, above what it was before the model was made.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import threading
import time
from typing import Any

LAYERS, WIDTH, BATCH, STEPS = 16, 1024, 32, 6
WAYS = ("whole", "sharded", "sharded, kept between forward and backward")


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


class Peak(threading.Thread):
    """Looks every millisecond how much memory the process holds, and keeps the most."""

    def __init__(self) -> None:
        super().__init__(daemon=True)
        self.most, self.over = 0, False

    def run(self) -> None:
        """Look until it is over."""
        while not self.over:
            self.most = max(self.most, resident())
            time.sleep(0.001)


def model_of(way: str) -> Any:
    """Return the model, whole or sharded layer by layer."""
    from retrograd import nn
    from retrograd.distributed.fsdp import fully_shard
    from retrograd.nn.parallel import DistributedDataParallel

    layers = []
    for _ in range(LAYERS):
        layer: Any = nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh())
        layers.append(layer if way == WAYS[0] else fully_shard(layer, reshard_after_forward=way == WAYS[1]))
    whole = nn.Sequential(*layers)
    return DistributedDataParallel(whole) if way == WAYS[0] else fully_shard(whole)


def train(model: Any, steps: int, peak: Peak | None = None) -> float:
    """Take some steps, and return the seconds of the quickest. The peak is looked for from the third on."""
    import retrograd as torch

    optimizer = torch.optim.Adam(model.parameters())
    x = torch.ones(BATCH, WIDTH)
    best = float("inf")
    for at in range(steps):
        if at == 2 and peak is not None:
            peak.start()
        began = time.perf_counter()
        optimizer.zero_grad()
        model(x).square().mean().backward()
        optimizer.step()
        best = min(best, time.perf_counter() - began)
    return best


def measure(way: str) -> None:
    """Train, and print the peak of this process and the time of a step."""
    import retrograd as torch
    from retrograd import distributed as d
    from retrograd import nn

    d.init_process_group("gloo")
    torch.set_num_threads(1)
    d.all_reduce(torch.ones(1 << 20))  # MPI's own memory
    train(nn.Sequential(nn.Linear(WIDTH, WIDTH), nn.Tanh()), 1)  # that of the compiler of kernels
    before = resident()
    peak = Peak()
    best = train(model_of(way), STEPS, peak)
    peak.over = True
    peak.join()
    most: list[Any] = [None] * d.get_world_size()
    d.all_gather_object(most, peak.most - before)
    if d.get_rank() == 0:
        print(f"{d.get_world_size()} processes, {way}: {max(most) / 1e6:.0f} MB at most, {best * 1e3:.0f} ms a step")
    d.destroy_process_group()


def main() -> None:
    """Measure one way, or all of them by starting processes like this one."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--way", type=int)
    parser.add_argument("--processes", type=int, nargs="*")
    options = parser.parse_args()
    if options.way is not None:
        measure(WAYS[options.way])
        return
    mpiexec = os.path.join(os.path.dirname(sys.executable), "mpiexec")
    for count in options.processes or (1, 2, 4):
        for way in range(len(WAYS)):
            subprocess.run([mpiexec, "-n", str(count), sys.executable, __file__, "--way", str(way)], check=True)


if __name__ == "__main__":
    main()
