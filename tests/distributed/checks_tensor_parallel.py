"""Layers divided among several processes compute what whole ones do, forward and backward."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np

import retrograd as torch
import retrograd.nn.functional as F  # noqa: N812
from retrograd import nn
from retrograd.distributed.device_mesh import init_device_mesh
from retrograd.distributed.tensor import DTensor, Replicate, Shard, distribute_tensor
from retrograd.distributed.tensor.parallel import (
    ColwiseParallel,
    PrepareModuleInput,
    PrepareModuleOutput,
    RowwiseParallel,
    SequenceParallel,
    loss_parallel,
    parallelize_module,
)
from tests.distributed.ranks import raised_by

CLOSE = {"rtol": 1e-9, "atol": 1e-9}


def values(*shape: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def assert_same_gradients(divided: Any, plain: Any) -> None:
    for (name, one), other in zip(divided.named_parameters(), plain.parameters(), strict=True):
        found = one.grad.full_tensor() if isinstance(one.grad, DTensor) else one.grad
        torch.testing.assert_close(found, other.grad, **CLOSE, msg=name)


def check_a_perceptron_in_columns_and_rows(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(5, 12), nn.GELU(), nn.Linear(12, 3)).double()
    divided = copy.deepcopy(plain)
    parallelize_module(divided, mesh, {"0": ColwiseParallel(), "2": RowwiseParallel()})
    assert divided[0].weight.placements == (Shard(0),)
    assert divided[2].weight.placements == (Shard(1),)
    assert divided[2].bias.placements == (Replicate(),)
    one, other = (torch.optim.Adam(model.parameters(), 0.02) for model in (plain, divided))
    for at in range(20):
        x, y = values(2, 4, 5, seed=at).requires_grad_(), values(2, 4, 5, seed=at).requires_grad_()
        for model, optimizer, given in ((plain, one, x), (divided, other, y)):
            optimizer.zero_grad()
            found = model(given)
            assert type(found) is torch.Tensor
            found.square().mean().backward()
        torch.testing.assert_close(y.grad, x.grad, **CLOSE)
        assert_same_gradients(divided, plain)
        one.step()
        other.step()
    state = divided.state_dict()
    assert list(state) == list(plain.state_dict())
    assert state["0.weight"].placements == (Shard(0),)
    for name, value in plain.state_dict().items():
        torch.testing.assert_close(state[name].full_tensor(), value, **CLOSE)
    again = copy.deepcopy(divided)
    again.load_state_dict({name: one * 0 for name, one in state.items()})
    assert again[0].weight.full_tensor().count_nonzero() == 0


class Attention(nn.Module):
    """Attention whose heads are divided, as in the tutorials: the number of heads is that of this process."""

    def __init__(self, width: int, heads: int) -> None:
        super().__init__()
        self.heads, self.size = heads, width // heads
        self.query, self.key, self.value = (nn.Linear(width, width) for _ in range(3))
        self.out = nn.Linear(width, width)

    def forward(self, x: Any) -> Any:
        batch = x.shape[0]
        parts = (
            layer(x).view(batch, -1, self.heads, self.size).transpose(1, 2)
            for layer in (self.query, self.key, self.value)
        )
        found = F.scaled_dot_product_attention(*parts, is_causal=True)
        return self.out(found.transpose(1, 2).reshape(batch, found.shape[2], -1))


class Transformer(nn.Module):
    """A table, a block with norms whose places are divided, and scores for each word."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        torch.manual_seed(0)
        width = 6 * heads
        self.table = nn.Embedding(11, width)
        self.norm, self.attention = nn.LayerNorm(width), Attention(width, heads)
        self.norm_2, self.up, self.down = nn.LayerNorm(width), nn.Linear(width, 4 * heads), nn.Linear(4 * heads, width)
        self.scores = nn.Linear(width, 11 * heads)
        self.double()

    def forward(self, words: Any) -> Any:
        x = self.table(words)
        x = x + self.attention(self.norm(x))
        x = x + self.down(self.up(self.norm_2(x)).relu())
        return self.scores(x)


def check_a_transformer_with_divided_places(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,), mesh_dim_names=("tp",))
    plain, divided = Transformer(size), Transformer(size)
    plan = {
        "table": RowwiseParallel(input_layouts=Replicate(), output_layouts=Shard(1), use_local_output=False),
        "norm*": SequenceParallel(),
        "attention": PrepareModuleInput(input_layouts=Shard(1), desired_input_layouts=Replicate()),
        "attention.query": ColwiseParallel(),
        "attention.key": ColwiseParallel(),
        "attention.value": ColwiseParallel(),
        "attention.out": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "up": ColwiseParallel(input_layouts=Shard(1)),
        "down": RowwiseParallel(output_layouts=Shard(1), use_local_output=False),
        "scores": ColwiseParallel(input_layouts=Shard(1), use_local_output=False),
    }
    parallelize_module(divided, mesh, plan)
    divided.attention.heads = 1
    words = torch.tensor(np.random.default_rng(0).integers(0, 11, (2, 2 * size)))
    target = torch.tensor(np.random.default_rng(1).integers(0, 11 * size, (2, 2 * size)))
    target[0, 0] = -100
    expected = F.cross_entropy(plain(words).flatten(0, 1), target.flatten())
    expected.backward()
    with loss_parallel():
        scores = divided(words)
        assert scores.placements == (Shard(2),)
        loss = F.cross_entropy(scores.flatten(0, 1), target.flatten())
        loss.backward()
    torch.testing.assert_close(loss.full_tensor(), expected, **CLOSE)
    assert_same_gradients(divided, plain)


def check_tables_by_columns_and_rows(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    plain = nn.Embedding(7, 6).double()
    words = torch.tensor([[0, 6, 3], [2, 2, 5]])
    slope = values(2, 3, 6)
    (plain(words) * slope).sum().backward()
    for style in (ColwiseParallel(output_layouts=Replicate()), RowwiseParallel(input_layouts=Replicate())):
        divided = copy.deepcopy(plain)
        divided.weight.grad = None
        parallelize_module(divided, mesh, style)
        found = divided(words)
        torch.testing.assert_close(found, plain(words), **CLOSE)
        (found * slope).sum().backward()
        assert_same_gradients(divided, plain)


def check_inputs_and_outputs_are_brought(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    seen = []

    class Shows(nn.Module):
        def forward(self, x: Any, *, y: Any) -> Any:
            seen.append((x.placements, y.placements))
            return x, y

    module = Shows()
    parallelize_module(
        module,
        mesh,
        PrepareModuleInput(
            input_layouts=(Shard(0),),
            desired_input_layouts=(Replicate(),),
            input_kwarg_layouts={"y": Replicate()},
            desired_input_kwarg_layouts={"y": Shard(1)},
        ),
    )
    parallelize_module(
        module, mesh, PrepareModuleOutput(output_layouts=(Replicate(), None), desired_output_layouts=(Shard(0), None))
    )
    x, y = module(torch.full((1, 2), float(rank)), y=torch.ones(2, size))
    assert seen == [((Replicate(),), (Shard(1),))]
    assert x.tolist() == [[rank, rank]]
    assert y.placements == (Shard(1),)


def check_data_and_tensor_parallel_together(rank: int, size: int) -> None:
    if size != 4:
        return
    mesh = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
    torch.manual_seed(0)
    plain = nn.Sequential(nn.Linear(3, 4), nn.ReLU(), nn.Linear(4, 2)).double()
    divided = copy.deepcopy(plain)
    parallelize_module(divided, mesh["tp"], {"0": ColwiseParallel(), "2": RowwiseParallel()})
    x = values(2, 5, 3)
    plain(x.flatten(0, 1)).square().sum().backward()
    divided(x[mesh.get_local_rank("dp")]).square().sum().backward()
    for (name, one), other in zip(divided.named_parameters(), plain.parameters(), strict=True):
        summand = one.grad.full_tensor()
        torch.distributed.all_reduce(summand, group=mesh.get_group("dp"))
        torch.testing.assert_close(summand, other.grad, **CLOSE, msg=name)


def check_what_is_refused(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    assert "only support nn.Linear and nn.Embedding" in raised_by(
        lambda: parallelize_module(nn.LayerNorm(2), mesh, ColwiseParallel())
    )
    assert "Expect Union[ParallelStyle" in raised_by(lambda: parallelize_module(nn.Linear(2, 2), mesh, 3))
    assert "should have same length" in raised_by(
        lambda: PrepareModuleInput(input_layouts=(Shard(0), Shard(1)), desired_input_layouts=(Replicate(),))
    )
    assert repr(ColwiseParallel()) == (
        "ColwiseParallel(input_layouts=(Replicate(),), output_layouts=(Shard(dim=-1),), use_local_output=True)"
    )
    with loss_parallel():
        scores = distribute_tensor(values(4, 6), mesh, [Shard(1)])
        assert "numbers of classes" in raised_by(lambda: F.cross_entropy(scores, values(4, 6).softmax(1)))
