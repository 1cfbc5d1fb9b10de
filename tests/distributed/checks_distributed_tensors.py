"""Meshes and distributed tensors in several processes: placements, moves between them, operations, gradients."""

from __future__ import annotations

import copy
import itertools
from typing import Any

import numpy as np

import retrograd as torch
import retrograd.nn.functional as F  # noqa: N812
from retrograd import distributed as d
from retrograd import nn
from retrograd.distributed.device_mesh import DeviceMesh, init_device_mesh
from retrograd.distributed.tensor import DTensor, Partial, Replicate, Shard, distribute_module, distribute_tensor
from retrograd.distributed.tensor import ones as ones_on_a_mesh
from retrograd.distributed.tensor._utils import compute_local_shape_and_global_offset
from tests.distributed.ranks import raised_by

CLOSE = {"rtol": 1e-10, "atol": 1e-10}


def values(*shape: int, seed: int = 0) -> Any:
    return torch.tensor(np.random.default_rng(seed).standard_normal(shape))


def meshes(size: int) -> list[Any]:
    found = [init_device_mesh("cpu", (size,))]
    return [*found, init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))] if size == 4 else found


def all_placements(mesh: Any, ndim: int, partial: bool) -> list[Any]:
    single = [Replicate(), *(Shard(dim) for dim in range(ndim)), *([Partial()] if partial else [])]
    return list(itertools.product(single, repeat=mesh.ndim))


def check_meshes_and_their_groups(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    assert mesh.mesh.tolist() == list(range(size))
    assert mesh.get_local_rank() == mesh.get_rank() == rank
    assert repr(mesh) == f"DeviceMesh(({size},), 'cpu', stride=(1,))"
    assert mesh.get_group() is d.group.WORLD
    part = DeviceMesh("cpu", [0, 1])
    assert part.get_coordinate() == ((rank,) if rank < 2 else None)
    said = raised_by(lambda: init_device_mesh("cpu", (size + 1,)))
    assert (
        said == f"RuntimeError: Mesh should not be bigger than default world size {size}, but found {size + 1} ranks!"
    )
    again = DeviceMesh.from_group(d.group.WORLD, "cpu")
    assert again == mesh
    assert hash(again) == hash(mesh)
    if size == 4:
        both = init_device_mesh("cpu", (2, 2), mesh_dim_names=("dp", "tp"))
        assert repr(both) == "DeviceMesh((dp=2, tp=2), 'cpu', stride=(2, 1))"
        assert both.get_coordinate() == (rank // 2, rank % 2)
        assert both["dp"].mesh.tolist() == [rank % 2, rank % 2 + 2]
        assert both["tp"].mesh.tolist() == [rank // 2 * 2, rank // 2 * 2 + 1]
        assert repr(both["dp"]) == "DeviceMesh((dp=2), 'cpu', stride=(2,))"
        total = torch.tensor([float(rank)])
        d.all_reduce(total, group=both["dp"].get_group())
        assert total.item() == 2 * (rank % 2) + 2
        joined = both["dp", "tp"]._flatten("all")
        assert joined.size() == 4
        assert both["all"] is joined
        assert "ascending order" in raised_by(lambda: both["tp", "dp"])
        assert "Optional kwarg `mesh_dim` needs to be specified" in raised_by(both.get_group)


def check_parts_and_wholes_of_every_placement(rank: int, size: int) -> None:
    for mesh in meshes(size):
        for shape in ((5, 3), (8, 4), (2, 7), (1, 1)):
            whole = values(*shape)
            for placements in all_placements(mesh, 2, partial=False):
                placed = distribute_tensor(whole, mesh, placements)
                assert placed.shape == shape
                assert placed.numel() == whole.numel()
                assert placed.stride() == whole.stride()
                local, offset = compute_local_shape_and_global_offset(shape, mesh, placements)
                assert tuple(placed.to_local().shape) == local
                cut = whole[tuple(slice(begin, begin + n) for begin, n in zip(offset, local, strict=True))]
                assert torch.equal(placed.to_local(), cut), (placements, shape)
                assert torch.equal(placed.full_tensor(), whole)


def check_moves_between_all_placements(rank: int, size: int) -> None:
    for mesh in meshes(size):
        whole = values(5, 7)
        for before in all_placements(mesh, 2, partial=True):
            local = distribute_tensor(whole, mesh, before)
            for after in all_placements(mesh, 2, partial=False):
                found = local.redistribute(placements=after)
                assert found.placements == after
                expected = distribute_tensor(whole, mesh, after)
                torch.testing.assert_close(found.to_local(), expected.to_local(), **CLOSE)


def check_gradients_of_moves(rank: int, size: int) -> None:
    for mesh in meshes(size):
        whole, weights = values(5, 4), values(5, 4, seed=1)
        for before in all_placements(mesh, 2, partial=False):
            for after in all_placements(mesh, 2, partial=False):
                leaf = distribute_tensor(whole, mesh, before).requires_grad_()
                factor = distribute_tensor(weights, mesh, after)
                (leaf.redistribute(placements=after) * factor).sum().full_tensor().backward()
                assert leaf.grad.placements == before
                torch.testing.assert_close(leaf.grad.full_tensor(), weights, **CLOSE)


OPERATIONS: dict[str, Any] = {
    "add": lambda x, y, w: x + y,
    "broadcast": lambda x, y, w: x * w[0] - 1,
    "quotient": lambda x, y, w: (x / (y.square() + 1)).tanh(),
    "matmul": lambda x, y, w: x @ w,
    "linear": lambda x, y, w: F.linear(x, w, w[0]),
    "transposed": lambda x, y, w: x.T @ y,
    "t": lambda x, y, w: (w @ x.t()).sum(0),
    "dot": lambda x, y, w: x.flatten().dot(y.flatten()) + torch.vdot(w[0], w[1]),
    "mean": lambda x, y, w: x.mean(),
    "mean of rows": lambda x, y, w: x.mean(1, keepdim=True) * y,
    "sum of columns": lambda x, y, w: x.sum(0),
    "sum then relu": lambda x, y, w: x.sum(0).relu(),
    "softmax": lambda x, y, w: x.softmax(-1) * y,
    "softmax of columns": lambda x, y, w: F.log_softmax(x, 0),
    "layer_norm": lambda x, y, w: F.layer_norm(x, (4,), w[0], w[1]),
    "norm": lambda x, y, w: x.norm() + torch.linalg.vector_norm(y, 3.0),
    "norm of columns": lambda x, y, w: torch.linalg.vector_norm(x, 2, 0),
    "reshape": lambda x, y, w: x.reshape(3, 2, 4).square(),
    "flatten": lambda x, y, w: x.flatten() * y.flatten(),
    "unsqueeze": lambda x, y, w: x.unsqueeze(1) * y.unsqueeze(0),
    "expand": lambda x, y, w: x.unsqueeze(0).expand(2, -1, -1) * y,
    "cat": lambda x, y, w: torch.cat([x, y], 1).sin(),
    "stack": lambda x, y, w: torch.stack([x, y]).sin(),
    "chunk": lambda x, y, w: x.chunk(2, 1)[0] * y.chunk(2, 1)[1],
    "index": lambda x, y, w: x[1:5, 1] * y[2, 0] + x[..., 3][2:],
    "gelu, dropout": lambda x, y, w: F.dropout(F.gelu(x), 0.0) + y,
    "amax": lambda x, y, w: x.amax(1),
    "largest": lambda x, y, w: x.max() * y,
    "variance": lambda x, y, w: x.var(1),
    "mse": lambda x, y, w: F.mse_loss(x, y),
    "cross entropy": lambda x, y, w: F.cross_entropy(x, y.softmax(1).detach(), reduction="sum"),
    "attention": lambda x, y, w: F.scaled_dot_product_attention(
        x.reshape(6, 2, 1, 2), y.reshape(6, 2, 1, 2), x.reshape(6, 2, 1, 2)
    ),
    "in place": lambda x, y, w: (x * 2).add_(y).mul_(3),
    "where": lambda x, y, w: torch.where(x > 0, x, y),
    "einsum": lambda x, y, w: torch.einsum("ij,kj,jl->kl", x, y, w),
    "einsum of a letter": lambda x, y, w: torch.einsum("ij,ij->j", x, y) + torch.einsum("ii", w),
    "outer": lambda x, y, w: torch.outer(x[:, 0], y[0]),
    "added product": lambda x, y, w: torch.addmm(y, x, w, beta=0.5, alpha=2.0),
    "gather": lambda x, y, w: x.gather(1, numbers_in(y, 4)) * x.gather(0, numbers_in(y, 6)),
    "index_select": lambda x, y, w: x.index_select(0, numbers_in(w[0], 6)) * x[numbers_in(w[1], 6)],
    "scatter_add": lambda x, y, w: x.scatter_add(1, numbers_in(y, 4), y),
    "index_add": lambda x, y, w: x.index_add(0, numbers_in(w[0], 6), w),
    "repeat, roll, pad": lambda x, y, w: F.pad(x.repeat(2, 1).roll(1, 0), (1, 0)),
    "view_as": lambda x, y, w: x.reshape(24).view_as(y).expand_as(y) * y,
    "losses": lambda x, y, w: F.l1_loss(x, y) + F.binary_cross_entropy_with_logits(x, y.sigmoid(), reduction="sum"),
    "batchmean": lambda x, y, w: F.kl_div(x.log_softmax(1), y.softmax(1), reduction="batchmean"),
    "conv2d": lambda x, y, w: F.conv2d(x.reshape(6, 1, 2, 2), w.reshape(4, 1, 2, 2)),
    "norms": lambda x, y, w: F.batch_norm(x, None, None, w[0], w[1], training=True) * F.group_norm(x, 2),
    "normalize": lambda x, y, w: F.normalize(x) * F.cosine_similarity(x, y).unsqueeze(1),
    "written": lambda x, y, w: written_into(x * 1, y),
    "wholes": lambda x, y, w: torch.linalg.det(w) * torch.cdist(x, y) + x.diagonal().sum() + x[x > 0].sum(),
    "inplace=True": lambda x, y, w: F.relu(x * 2, inplace=True),
}


def numbers_in(x: Any, length: int) -> Any:
    """Return numbers of rows, from the values of a tensor."""
    return (x.detach() * 5).long() % length


def written_into(x: Any, y: Any) -> Any:
    x[1:3, 0] = y[0, 1]
    x.masked_fill_(y.detach() > 1, 0.5).scatter_(1, numbers_in(y, 4)[:, :1], y[:, :1])
    return x


def check_operations_and_their_gradients(rank: int, size: int) -> None:
    """Every operation gives what it gives on whole tensors, however they lie; so do its gradients."""
    given = values(6, 4), values(6, 4, seed=1), values(4, 4, seed=2)
    for mesh in meshes(size):
        choices = all_placements(mesh, 2, partial=False)
        pairs = list(itertools.product(choices, choices))
        if mesh.ndim == 2:  # too many to try all
            pairs = pairs[::10]
        combinations = [(x, y, choices[(at // 3 + at) % 3]) for at, (x, y) in enumerate(pairs)]
        for name, function in OPERATIONS.items():
            plain = [one.clone().requires_grad_() for one in given]
            expected = function(*plain)
            slope = values(*expected.shape, seed=3)
            wanted = torch.autograd.grad((expected * slope).sum(), plain, allow_unused=True)
            for x_lies, y_lies, w_lies in combinations:
                leaves = [
                    distribute_tensor(one, mesh, place).requires_grad_()
                    for one, place in zip(given, (x_lies, y_lies, w_lies), strict=True)
                ]
                found = function(*leaves)
                where = (name, x_lies, y_lies, w_lies)
                assert found.shape == expected.shape, where
                torch.testing.assert_close(found.full_tensor(), expected, **CLOSE, msg=str(where))
                (found.full_tensor() * slope).sum().backward()
                for leaf, gradient in zip(leaves, wanted, strict=True):
                    if gradient is None:
                        assert leaf.grad is None, where
                    else:
                        torch.testing.assert_close(leaf.grad.full_tensor(), gradient, **CLOSE, msg=str(where))


def check_summands_stay_summands_where_they_can(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    x, w = distribute_tensor(values(4, 6), mesh, [Shard(1)]), distribute_tensor(values(3, 6, seed=1), mesh, [Shard(1)])
    product = F.linear(x, w)
    assert product.placements == (Partial(),)
    assert (product + product).placements == (Partial(),)
    assert (product * 2).placements == (Partial(),)
    assert product.relu().placements == (Replicate(),)
    assert x.sum(0).placements == (Shard(0),)
    assert x.sum(1).placements == (Partial(),)
    assert x.T.placements == (Shard(0),)
    assert x.square().placements == (Shard(1),)


def check_what_is_written_into_summands(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    total, other = distribute_tensor(values(3, 4), mesh, [Shard(0)]).sum(0), distribute_tensor(values(4, seed=1), mesh)
    assert total.placements == (Partial(),)
    plain, added = total.full_tensor(), other.to_local()
    for name, given in {"add_": other, "sub_": other, "copy_": other, "mul_": other, "div_": 2.0}.items():
        expected = getattr(plain.clone(), name)(added if given is other else given)
        torch.testing.assert_close(getattr(total.clone(), name)(given).full_tensor(), expected, **CLOSE)
    for call in (lambda: total.clone().relu_(), lambda: total.clone().add_(1.0), lambda: total.clone().fill_(1.0)):
        assert "in-place operations that require placement changes are not supported" in raised_by(call)


def check_parts_become_a_whole_and_gradients_of_parts(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    part = torch.full((2, 3), float(rank), requires_grad=True)
    joined = DTensor.from_local(part, mesh, [Shard(0)])
    assert joined.shape == (2 * size, 3)
    assert DTensor.from_local(part, mesh, [Shard(-1)]).placements == (Shard(1),)
    (joined.full_tensor() * torch.arange(2.0 * size).unsqueeze(1)).sum().backward()
    assert part.grad[:, 0].tolist() == [2.0 * rank, 2.0 * rank + 1]
    summand = DTensor.from_local(torch.ones(2), mesh, [Partial()])
    assert summand.full_tensor().tolist() == [size, size]
    largest = DTensor.from_local(torch.tensor([float(rank)]), mesh, [Partial("max")])
    assert largest.full_tensor().tolist() == [size - 1]
    uneven = DTensor.from_local(torch.full((rank + 1,), 1.0), mesh, [Replicate()], run_check=False)
    assert uneven.to_local().numel() == rank + 1
    shared = distribute_tensor(torch.ones(2), mesh).requires_grad_()
    (shared.to_local(grad_placements=[Partial()]) * (rank + 1)).sum().backward()
    assert shared.grad.full_tensor().tolist() == [size * (size + 1) / 2] * 2
    assert "only accepts torch.Tensor" in raised_by(lambda: DTensor.from_local(joined, mesh, [Shard(0)]))
    assert "Found shape:" in raised_by(lambda: DTensor.from_local(part, mesh, [Shard(0)], shape=(7, 3)))


def check_what_is_refused(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    x = distribute_tensor(values(4, 4), mesh, [Shard(0)])
    assert raised_by(lambda: F.rrelu(x)).startswith("NotImplementedError: Operator")
    assert raised_by(lambda: x.as_strided((2,), (1,))).startswith("NotImplementedError: Operator")
    assert "use the function that returns a new tensor" in raised_by(
        lambda: x[:3].redistribute(placements=[Shard(0)]).t_()
    )
    assert "mixed torch.Tensor and DTensor" in raised_by(lambda: x + torch.ones(4, 4))
    assert "internal use only" in raised_by(lambda: x.redistribute(placements=[Partial()]))
    assert "placements is needed" in raised_by(x.redistribute)
    assert "Sharding dim 5" in raised_by(lambda: DTensor.from_local(torch.ones(2), mesh, [Shard(5)]))
    assert ".numpy() is not supported" in raised_by(x.numpy)
    assert ".tolist() is not supported" in raised_by(x.tolist)
    assert "cannot be converted to Scalar" in raised_by(x.item)
    assert "mat1 and mat2" in raised_by(lambda: x @ distribute_tensor(values(3, 2), mesh))


def check_parameters_copies_and_optimizers(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    torch.manual_seed(0)
    plain = nn.Linear(3, 5).double()
    divided = copy.deepcopy(plain)

    def cut(name: str, module: Any, where: Any) -> None:
        for key, one in list(module.named_parameters(recurse=False)):
            module.register_parameter(key, nn.Parameter(distribute_tensor(one, where, [Shard(0)])))

    distribute_module(divided, mesh, cut)
    assert type(divided.weight) is DTensor
    assert isinstance(divided.weight, nn.Parameter)
    again = copy.deepcopy(divided)
    assert again.weight.placements == (Shard(0),)
    assert isinstance(again.weight, nn.Parameter)
    for optimizer in (torch.optim.SGD, torch.optim.AdamW, torch.optim.RMSprop):
        options = {"lr": 0.01, "weight_decay": 0.1}
        one, other = optimizer(plain.parameters(), **options), optimizer(divided.parameters(), **options)
        for at in range(3):
            x = values(4, 3, seed=at)
            for model, chosen, batch in ((plain, one, x), (divided, other, distribute_tensor(x, mesh))):
                chosen.zero_grad()
                model(batch).square().sum().backward()
                norm = nn.utils.clip_grad_norm_(model.parameters(), 0.5)
                if model is plain:
                    expected = norm
                chosen.step()
            torch.testing.assert_close(norm.full_tensor(), expected, **CLOSE)
        for name, value in plain.state_dict().items():
            torch.testing.assert_close(divided.state_dict()[name].full_tensor(), value, **CLOSE)
    state = next(iter(other.state.values()))
    assert type(state["square_avg"]) is DTensor
    assert state["square_avg"].placements == (Shard(0),)


def check_optimizers_that_need_the_whole(rank: int, size: int) -> None:
    """Those that do more than work element by element: orthogonal steps, line searches, norms of rows."""
    mesh, given = init_device_mesh("cpu", (size,)), values(6, 4)
    for make in (
        lambda p: torch.optim.Muon([p], 0.1),
        lambda p: torch.optim.LBFGS([p], 0.5, max_iter=3),
        lambda p: torch.optim.LBFGS([p], max_iter=3, line_search_fn="strong_wolfe"),
        lambda p: torch.optim.Adafactor([p], 0.1),
    ):
        found = []
        for place in (None, Replicate(), Shard(0), Shard(1)):
            p = nn.Parameter(given.clone() if place is None else distribute_tensor(given, mesh, [place]))
            optimizer = make(p)

            def loss_of(p: Any = p, optimizer: Any = optimizer) -> Any:
                optimizer.zero_grad()
                loss = (p.sin() * 2 + p.square()).sum()
                loss.backward()
                return loss

            for _ in range(3):
                optimizer.step(loss_of)
            found.append(p.detach() if place is None else p.full_tensor().detach())
        for other in found[1:]:
            torch.testing.assert_close(other, found[0], **CLOSE)


def check_new_tensors_on_a_mesh(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    made = ones_on_a_mesh((5, 2), device_mesh=mesh, placements=[Shard(0)])
    assert made.shape == (5, 2)
    assert made.full_tensor().tolist() == [[1, 1]] * 5
    assert torch.zeros_like(made).placements == (Shard(0),)
    with mesh:
        assert distribute_tensor(torch.ones(2)).device_mesh is mesh
    assert torch.equal(made, made.redistribute(placements=[Replicate()]))
    assert not torch.equal(made, made * (1 if rank else 2))


class Doubled(torch.autograd.Function):
    """What it is given, with twice the gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x

    @staticmethod
    def backward(ctx: Any, grad: Any) -> Any:
        return grad * 2


def check_a_function_that_returns_what_it_is_given(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    leaf = distribute_tensor(values(size, 2), mesh, [Shard(0)]).requires_grad_()
    made = Doubled.apply(leaf)
    assert made.placements == (Shard(0),)
    made.sum().backward()
    assert leaf.grad.full_tensor().tolist() == [[2.0, 2.0]] * size


def check_tables_cut_by_rows(rank: int, size: int) -> None:
    mesh = init_device_mesh("cpu", (size,))
    table, numbers = values(7, 3), torch.tensor([[0, 6, 3], [2, 2, 5]])
    slope = values(2, 3, 3, seed=1)
    plain = table.clone().requires_grad_()
    expected = F.embedding(numbers, plain, padding_idx=2)
    (expected * slope).sum().backward()
    for placement in (Shard(0), Shard(1), Replicate()):
        leaf = distribute_tensor(table, mesh, [placement]).requires_grad_()
        found = F.embedding(distribute_tensor(numbers, mesh), leaf, padding_idx=2)
        torch.testing.assert_close(found.full_tensor(), expected, **CLOSE)
        (found.full_tensor() * slope).sum().backward()
        torch.testing.assert_close(leaf.grad.full_tensor(), plain.grad, **CLOSE)
