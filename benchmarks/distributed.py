"""What do collectives cost, against mpi4py's own, and does memory stay where it is?

mpiexec -n 2 python benchmarks/distributed.py [--steps 1000]       needs mpi4py and mpich

Both reduce the same memory in turns; the best of several rounds is compared. A ratio above 1 says that ours is quicker. Then a
training step, with its gradients exchanged during the backward and after it; a thousand steps of mixed collectives, after which no process
may have grown. The last lines are a model of many machines, with the
latency and the bandwidth of this one (run it with two processes).
"""

from __future__ import annotations

import argparse
import math
import os
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import distributed as d
from retrograd import nn


def seconds(call: Callable[[], Any], times: int, rounds: int = 5) -> float:
    """Return the best mean of several rounds; all processes begin a round together."""
    best = float("inf")
    for _ in range(rounds):
        d.barrier()
        began = time.perf_counter()
        for _ in range(times):
            call()
        best = min(best, (time.perf_counter() - began) / times)
    return best


def resident() -> int:
    """Return the bytes of memory that this process holds."""
    with open("/proc/self/statm", encoding="ascii") as file:
        return int(file.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")


def show(text: str) -> None:
    """Print, in the first process."""
    if d.get_rank() == 0:
        print(text, flush=True)


def against_mpi() -> tuple[float, float]:
    """Compare all_reduce with mpi4py's; return the latency and the time of a byte."""
    from mpi4py import MPI

    world = MPI.COMM_WORLD
    show(
        f"all_reduce of float32, {d.get_world_size()} processes\n{'bytes':>10} {'mpi4py':>10} {'ours':>10} {'ratio':>6}"
    )
    latency = per_byte = 0.0
    for count in (1, 1 << 8, 1 << 14, 1 << 20, 1 << 24):
        tensor = torch.ones(count)
        array = np.ones(count, np.float32)
        times = 1 if count >= 1 << 20 else 300
        theirs = ours = float("inf")
        for _ in range(25 if times == 1 else 6):  # in turns: the machine may have other work
            theirs = min(theirs, seconds(partial(world.Allreduce, MPI.IN_PLACE, array), times, 1))
            ours = min(ours, seconds(partial(d.all_reduce, tensor), times, 1))
        latency = latency or ours
        per_byte = ours / (4 * count)
        show(f"{4 * count:>10} {theirs * 1e6:>8.1f}us {ours * 1e6:>8.1f}us {theirs / ours:>6.2f}")
    return latency, per_byte


def others() -> None:
    """Time the other collectives on 4 MB."""
    size, count = d.get_world_size(), 1 << 20
    one, every = torch.ones(count), torch.ones(size, count)
    half = torch.ones(count, dtype=torch.bfloat16)
    for name, call in {
        "all_reduce of bfloat16": lambda: d.all_reduce(half),
        "broadcast": lambda: d.broadcast(one, 0),
        "all_gather_into_tensor": lambda: d.all_gather_into_tensor(every, one),
        "reduce_scatter_tensor": lambda: d.reduce_scatter_tensor(one, every),
        "all_to_all_single": lambda: d.all_to_all_single(torch.empty_like(one), one),
        "all_gather_object": lambda: d.all_gather_object([None] * size, {"a": 1}),
        "barrier": d.barrier,
    }.items():
        show(f"{name:>24} {seconds(call, 10) * 1e6:>10.1f}us")


def data_parallel() -> None:
    """Time a training step: without exchange of gradients, with DistributedDataParallel, and with one exchange after the backward."""
    torch.set_num_threads(1)
    x = torch.randn(64, 1024)
    layers = [layer for _ in range(8) for layer in (nn.Linear(1024, 1024), nn.ReLU())]
    plain = nn.Sequential(*layers)
    model = nn.parallel.DistributedDataParallel(plain, bucket_cap_mb=8)
    optimizer = torch.optim.SGD(plain.parameters(), 1e-4)
    gradients = sum(one.numel() * 4 for one in plain.parameters())

    def step(forward: Callable[[Any], Any], after: Callable[[], None] | None = None) -> None:
        optimizer.zero_grad()
        forward(x).square().mean().backward()
        if after is not None:
            after()
        optimizer.step()

    def without_exchange() -> None:
        with model.no_sync():
            step(model)

    def exchange() -> None:
        d.all_reduce_coalesced([one.grad for one in plain.parameters()])
        for one in plain.parameters():
            one.grad /= d.get_world_size()

    def one_exchange_at_the_end() -> None:
        with model.no_sync():
            step(model, exchange)

    ways = {
        "without exchange": without_exchange,
        "overlapped with backward": lambda: step(model),
        "one exchange at the end": one_exchange_at_the_end,
        "the exchange alone": exchange,
    }
    found = dict.fromkeys(ways, float("inf"))
    for _ in range(6):  # in turns: the machine may have other work
        for name, call in ways.items():
            found[name] = min(found[name], seconds(call, 5, 1))
    show(f"a step of 8 layers, {gradients / 1e6:.0f} MB of gradients, one thread a process")
    for name, one in found.items():
        show(f"{name:>26} {one * 1e3:>8.1f} ms")


def latency() -> None:
    """Say what a small all_reduce takes, and what of it is MPI's own: blocking, and started and asked for as ours is."""
    from mpi4py import MPI

    world, array, tensor = MPI.COMM_WORLD, np.ones(1, np.float32), torch.ones(1)

    def asked() -> None:
        request = world.Iallreduce(MPI.IN_PLACE, array, MPI.SUM)
        while not request.Test():
            pass

    ways = {
        "mpi4py, blocking": lambda: world.Allreduce(MPI.IN_PLACE, array),
        "mpi4py, started and asked": asked,
        "ours": lambda: d.all_reduce(tensor),
        "ours, async_op=True": lambda: d.all_reduce(tensor, async_op=True).wait(),
    }
    for name, call in ways.items():
        show(f"{name:>26} {seconds(call, 1000) * 1e6:>8.1f} us")


def growth(steps: int) -> None:
    """Say how much memory a process gains over many steps."""
    size = d.get_world_size()
    tensors = [torch.ones(1 << 14, dtype=dtype) for dtype in (torch.float32, torch.bfloat16, torch.int64)]

    def step() -> None:
        works = [d.all_reduce(one.fill_(1), async_op=True) for one in tensors]
        futures = [work.get_future() for work in works]
        for work, future in zip(works, futures, strict=True):
            work.wait()
            future.wait()
        d.all_gather_object([None] * size, {"rank": d.get_rank()})

    for _ in range(100):
        step()
    before = resident()
    for _ in range(steps):
        step()
    grown = [0] * size
    d.all_gather_object(grown, resident() - before)
    show(f"memory gained in {steps} steps, by process: {[f'{one / 1024:.0f} kB' for one in grown]}")


def model(latency: float, per_byte: float) -> None:
    """Say what a step's reductions would take on many machines: see docs/distributed.md."""
    gradients, bucket = 400e6, 25e6  # 100 million parameters in float32, in DistributedDataParallel's buckets
    message = latency / 2  # two processes: a message there and one back
    rate = per_byte  # a ring of two sends every byte once
    show(f"{message * 1e6:.1f} us a message, {1e-9 / rate:.2f} GB/s, 400 MB of gradients in buckets of 25 MB:")
    for count in (2, 8, 64, 1000):
        bytes_take = 2 * gradients * (count - 1) / count * rate
        ring, tree = (gradients / bucket * messages * message for messages in (2 * (count - 1), 2 * math.log2(count)))
        show(
            f"{count:>6} processes {(bytes_take + ring) * 1e3:>8.1f} ms by rings, {(bytes_take + tree) * 1e3:>8.1f} ms by halving"
        )


def main() -> None:
    """Measure."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--steps", type=int, default=1000)
    options = parser.parse_args()
    d.init_process_group("gloo")
    measured = against_mpi()
    latency()
    others()
    data_parallel()
    growth(options.steps)
    model(*measured)
    d.destroy_process_group()


if __name__ == "__main__":
    main()
