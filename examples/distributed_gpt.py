"""Teach the GPT of gpt.py in several processes at once: each reads other pieces of the text, and gradients are averaged.

retrograd run --nproc-per-node 2 examples/distributed_gpt.py
torchrun --nproc-per-node 2 examples/distributed_gpt.py              (where PyTorch is installed)
"""

import os

import torch
import torch.distributed as dist
from gpt import GPT, LEARNING_RATE, draw, loss_of, pick_batch
from shared import DATA, read_options, report, training_steps
from torch import nn
from torch.distributed.optim import ZeroRedundancyOptimizer
from torch.nn.parallel import DistributedDataParallel


def join_the_others():
    """Meet the processes that were started together; a process on its own is a group of one."""
    if "RANK" in os.environ:
        dist.init_process_group("gloo")
    else:
        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
    return dist.get_rank(), dist.get_world_size()


def train(model, codes, steps, rank):
    """Fit the model; give the loss of every step, averaged over the processes."""
    optimizer = ZeroRedundancyOptimizer(model.parameters(), torch.optim.AdamW, lr=LEARNING_RATE, betas=(0.9, 0.99))
    losses = []
    for step in training_steps(steps) if rank == 0 else range(1, steps + 1):
        loss = loss_of(model, *pick_batch(codes))
        optimizer.zero_grad()
        loss.backward()  # which averages gradients while it goes on
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        mean = loss.detach() / dist.get_world_size()
        dist.all_reduce(mean)
        losses.append(mean.item())
        if rank == 0:
            report(step, steps, f"loss {losses[-1]:.4f}")
    return losses


def main():
    rank, size = join_the_others()
    options = read_options(__doc__, steps=100)
    text = (DATA / "alice.txt").read_text()
    alphabet = sorted(set(text))
    codes = torch.tensor([alphabet.index(character) for character in text])
    model = DistributedDataParallel(GPT(len(alphabet)))
    torch.manual_seed(options.seed + rank)  # from here on every process draws other pieces
    if rank == 0:
        print(f"{len(text)} characters, {size} process(es)")
    losses = train(model, codes, options.steps, rank)
    if rank == 0:
        picture = options.out / "distributed_gpt.png"
        draw(losses, len(alphabet), picture)
        print(f"picture: {picture}")
    dist.destroy_process_group()


if __name__ == "__main__":
    main()
