"""Programs that train in several processes print what they print on torch with gloo."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.distributed.programs import ran, ran_on_torch
from tests.distributed.ranks import needs_mpi

pytestmark = needs_mpi

TRAINS = """
import os, torch, torch.distributed as dist, torch.multiprocessing as mp
from torch import nn
from torch.nn.parallel import DistributedDataParallel as DDP

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(4, 4, dtype=torch.float64) for _ in range(3))
        with torch.no_grad():
            for at, layer in enumerate(self.layers):
                layer.weight.copy_(torch.arange(16.0, dtype=torch.float64).reshape(4, 4).sub(7).div(9 + at).sin())
                layer.bias.zero_()

    def forward(self, x, skip):
        for at, layer in enumerate(self.layers):
            if at != skip:
                x = layer(x).tanh()
        return x

def losses(rank, model, skips=(None,), batches=6, rate=0.1):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    found = []
    with model.join() if batches != 6 else torch.enable_grad():
        for step in range(batches):
            optimizer.zero_grad(set_to_none=step % 2 == 0)
            x = torch.arange(8.0, dtype=torch.float64).reshape(2, 4).mul(step + 1 + rank).sin()
            loss = (model(x, skips[step % len(skips)]) - 0.5).square().mean()
            loss.backward()
            optimizer.step()
            found.append(f"{loss.item():.8f}")
    return found, [f"{one.sum().item():.7f}" for one in model.parameters()]

def work(rank, size):
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    said = []
    for options in ({}, {"bucket_cap_mb": 1e-4}, {"gradient_as_bucket_view": True}, {"static_graph": True}):
        said.append(losses(rank, DDP(Net(), **options)))
    said.append(losses(rank, DDP(Net(), find_unused_parameters=True), [rank, None, 1]))
    said.append(losses(rank, DDP(Net()), batches=5 + 2 * rank))
    from torch.distributed.algorithms.ddp_comm_hooks import default_hooks
    for hook in (default_hooks.allreduce_hook, default_hooks.fp16_compress_hook):
        model = DDP(Net())
        model.register_comm_hook(None, hook)
        said.append([one[:7] for one in losses(rank, model, rate=0.01)[0]])
    from torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook import PowerSGDState, powerSGD_hook
    for rank_of_matrices in (1, 2):
        model = DDP(Net())
        state = PowerSGDState(None, rank_of_matrices, start_powerSGD_iter=2, min_compression_rate=0.9)
        model.register_comm_hook(state, powerSGD_hook)
        said.append((losses(rank, model, rate=0.01)[0], state.compression_stats()))
    for turn in range(size):
        dist.barrier()
        if turn == rank:
            print(rank, *said, sep="\\n", flush=True)
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (2,), 2)
"""


@pytest.mark.oracle
def test_training_prints_the_same_losses(tmp_path: Path) -> None:
    pytest.importorskip("torch")
    own, theirs = ran(tmp_path, TRAINS), ran_on_torch(tmp_path, TRAINS)
    assert own[0] == theirs[0] == 0, (own, theirs)
    assert own[1] == theirs[1]
