"""Programs with meshes, distributed tensors and sharded modules print what they print on torch with gloo."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.distributed.ranks import needs_mpi
from tests.distributed.test_starting import ran

pytestmark = needs_mpi

FRAME = """
import os, warnings, torch, torch.distributed as dist, torch.multiprocessing as mp
import torch.nn.functional as F
from torch import nn
from torch.distributed.device_mesh import DeviceMesh, init_device_mesh
from torch.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
warnings.simplefilter("ignore")

def tried(call):
    try:
        return call()
    except Exception as error:
        return f"{type(error).__name__}: {str(error).splitlines()[0]}"

def numbers(*shape):
    count = torch.Size(shape).numel()
    return torch.arange(float(count), dtype=torch.float64).mul(1.7).sin().reshape(shape)

def shown(value):
    if isinstance(value, DTensor):
        return (tuple(value.shape), value.stride(), value.placements, shown(value.to_local()))
    if isinstance(value, torch.Tensor):
        return [f"{one:.8f}" for one in value.detach().flatten().tolist()], tuple(value.shape)
    return value

def work(rank, size):
    os.environ.update(MASTER_ADDR="127.0.0.1")
    dist.init_process_group("gloo", rank=rank, world_size=size)
    said = answers(rank, size)
    for turn in range(size):
        dist.barrier()
        if turn == rank:
            print(rank, *said, sep="\\n", flush=True)
    dist.barrier()
    dist.destroy_process_group()

if __name__ == "__main__":
    mp.spawn(work, (SIZE,), SIZE)
"""

MESHES = """
def answers(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    row = init_device_mesh("cpu", (4,))
    said = [mesh, mesh.shape, mesh.size(), mesh.size(1), mesh.mesh.tolist(), mesh.get_coordinate(), mesh.get_local_rank("dp")]
    for name in ("dp", "tp", ("dp", "tp")):
        part = mesh[name]
        said += [part, part.mesh.tolist(), part.get_coordinate(), [one.size() for one in part.get_all_groups()]]
    said += [row, row.get_local_rank(), row.get_group().size(), mesh == init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))]
    odd = DeviceMesh("cpu", [[0, 2], [1, 3]])
    said += [odd, odd.get_coordinate(), DeviceMesh("cpu", [0, 1]).get_coordinate()]
    joined = mesh["dp", "tp"]._flatten("all")
    said += [joined, mesh["all"], joined.get_local_rank(), DeviceMesh.from_group(mesh.get_group("tp"), "cpu").mesh.tolist()]
    for call in (
        lambda: mesh["tp", "dp"], lambda: mesh["xx"], lambda: mesh["tp"]["dp"], lambda: mesh.get_group(), lambda: row["a"],
        lambda: mesh.get_local_rank(), lambda: mesh.get_group("zz"), lambda: init_device_mesh("cpu", (8,)),
        lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a", "a")), lambda: init_device_mesh("cuda:0", (4,)),
        lambda: init_device_mesh("cpu", (2, 2), mesh_dim_names=("a",)),
        lambda: DeviceMesh.from_group([mesh.get_group(0), mesh.get_group(1)], "cpu"),
    ):
        said.append(tried(call))
    return said
"""

TENSORS = """
def answers(rank, size):
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    row = init_device_mesh("cpu", (4,))
    x, said = numbers(5, 6), []
    cut = distribute_tensor(x, row, [Shard(0)])
    said += [cut, shown(cut), shown(cut.full_tensor()), cut.numel(), len(cut), cut.dim()]
    for places in ([Shard(0), Shard(1)], [Shard(0), Shard(0)], [Replicate(), Shard(-1)], [Shard(1), Replicate()]):
        both = distribute_tensor(x, mesh, places)
        said += [shown(both), shown(both.redistribute(placements=[Shard(1), Shard(0)])), shown(both.full_tensor())]
    said.append(shown(distribute_tensor(x, row, [Partial()])))
    said.append(shown(DTensor.from_local(torch.full((2, 3), float(rank)), row, [Shard(1)])))
    weight = distribute_tensor(numbers(6, 8), row, [Shard(1)])
    whole = distribute_tensor(x, row)
    for call in (
        lambda: cut + cut, lambda: cut * 2, lambda: cut.sin(), lambda: cut.sum(1), lambda: cut.sum(0), lambda: cut.sum(),
        lambda: whole @ weight, lambda: cut @ distribute_tensor(numbers(6, 3), row), lambda: cut.T, lambda: cut.softmax(-1),
        lambda: F.linear(whole, distribute_tensor(numbers(4, 6), row, [Shard(0)])), lambda: cut.unsqueeze(0),
        lambda: F.linear(distribute_tensor(x, row, [Shard(1)]), distribute_tensor(numbers(4, 6), row, [Shard(1)])),
        lambda: F.layer_norm(cut, (6,)), lambda: cut[:, 2], lambda: torch.cat([cut, cut], 1), lambda: cut > 0,
        lambda: cut.transpose(0, 1), lambda: torch.zeros_like(cut), lambda: weight.max(), lambda: whole.reshape(30),
        lambda: cut.redistribute(placements=[Partial()]), lambda: cut.redistribute(),
        lambda: DTensor.from_local(torch.ones(2), row, [Shard(5)]), lambda: cut.tolist(), lambda: cut.numpy(),
        lambda: DTensor.from_local(cut, row, [Shard(0)]), lambda: cut.item(),
    ):
        said.append(shown(tried(call)))
    leaf = nn.Parameter(distribute_tensor(x, row, [Shard(0)]))
    ((leaf @ weight).tanh() * 3).sum().backward()
    said += [type(leaf).__name__, isinstance(leaf, nn.Parameter), leaf.is_leaf, shown(leaf.grad.full_tensor())]
    return said
"""

SHARDED = """
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.distributed.checkpoint.state_dict import StateDictOptions, get_model_state_dict
from torch.distributed.tensor.parallel import ColwiseParallel, RowwiseParallel, parallelize_module

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(5, 5, dtype=torch.float64) for _ in range(3))
        self.last = nn.Linear(5, 2, dtype=torch.float64)
        with torch.no_grad():
            for at, one in enumerate(self.parameters()):
                one.copy_(numbers(*one.shape).add(at).sin())

    def forward(self, x):
        for layer in self.layers:
            x = x + layer(x).tanh()
        return self.last(x)

def trained(rank, model, steps=20, clip=None, every=1, rate=0.05):
    optimizer = torch.optim.Adam(model.parameters(), rate)
    said = []
    for step in range(steps):
        x = numbers(3, 5).mul(step + 1 + rank).sin()
        if every > 1:
            model.set_requires_gradient_sync((step + 1) % every == 0)
        loss = (model(x) - 0.5).square().mean()
        loss.backward()
        if (step + 1) % every == 0:
            if clip is not None:
                said.append(f"{nn.utils.clip_grad_norm_(model.parameters(), clip).full_tensor().item():.8f}")
            optimizer.step()
            optimizer.zero_grad()
        said.append(f"{loss.item():.8f}")
    state = get_model_state_dict(model, options=StateDictOptions(full_state_dict=True))
    return said, [f"{one.sum().item():.7f}" for one in state.values()]

def divided(**options):
    net = Net()
    for layer in net.layers:
        fully_shard(layer, **options)
    return fully_shard(net, **options)

def answers(rank, size):
    net = divided()
    said = [type(net).__name__]
    said += [(name, one.placements, tuple(one.shape), tuple(one.to_local().shape)) for name, one in net.named_parameters()]
    said += [trained(rank, net), trained(rank, divided(reshard_after_forward=False)), trained(rank, fully_shard(Net()), 3)]
    said += [trained(rank, divided(), 4, clip=0.1), trained(rank, divided(), 6, every=3)]
    policy = MixedPrecisionPolicy(param_dtype=torch.float32, reduce_dtype=torch.float32)
    said.append([one[:7] for one in trained(rank, divided(mp_policy=policy), 4)[0]])
    if size == 4:
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("replicate", "shard"))
        said.append(trained(rank, divided(mesh=mesh), 4))
        mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        both = Net()
        for layer in both.layers:
            parallelize_module(layer, mesh["tp"], ColwiseParallel(output_layouts=Replicate()))
            fully_shard(layer, mesh=mesh["dp"])
        both = fully_shard(both, mesh=mesh["dp"])
        said += [(name, tuple(one.shape), tuple(one.to_local().shape)) for name, one in both.named_parameters()]
        said.append(trained(rank // 2, both, 6))
    net.unshard()
    said.append([type(one).__name__ for one in net.parameters()])
    net.reshard()
    said.append([type(one).__name__ for one in net.parameters()])
    for call in (
        lambda: fully_shard(nn.ModuleList()), lambda: fully_shard(Net(), reshard_after_forward=7),
        lambda: fully_shard(Net(), reshard_after_forward="x"), lambda: net.set_modules_to_forward_prefetch([nn.Linear(1, 1)]),
    ):
        said.append(tried(call))
    mesh = init_device_mesh("cpu", (size,))
    net = nn.Sequential(nn.Linear(5, 4 * size, dtype=torch.float64), nn.Tanh(), nn.Linear(4 * size, 3, dtype=torch.float64))
    with torch.no_grad():
        for at, one in enumerate(net.parameters()):
            one.copy_(numbers(*one.shape).add(at).sin())
    parallelize_module(net, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    said += [[(name, one.placements, tuple(one.to_local().shape)) for name, one in net.named_parameters()], trained(0, net)]
    said.append([shown(one.grad) for one in net.parameters()])
    return said
"""


def assert_prints_the_same(tmp_path: Path, program: str, size: int) -> None:
    pytest.importorskip("torch")
    text = FRAME.replace("\ndef work", program + "\ndef work").replace("SIZE", str(size))
    own, theirs = ran(tmp_path, text), ran(tmp_path, text, python=(sys.executable,))
    assert own[0] == theirs[0] == 0, (own, theirs)
    assert own[1].splitlines() == theirs[1].splitlines()


@pytest.mark.oracle
def test_meshes(tmp_path: Path) -> None:
    assert_prints_the_same(tmp_path, MESHES, 4)


@pytest.mark.oracle
def test_distributed_tensors(tmp_path: Path) -> None:
    assert_prints_the_same(tmp_path, TENSORS, 4)


@pytest.mark.oracle
@pytest.mark.parametrize("size", [2, 3, 4])
def test_sharded_and_divided_modules(tmp_path: Path, size: int) -> None:
    assert_prints_the_same(tmp_path, SHARDED, size)
