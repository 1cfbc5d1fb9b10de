"""Tensors on the meta device have shapes and dtypes, and no elements."""

from __future__ import annotations

import copy
import importlib.util
import io
import pickle
import tracemalloc
import warnings
from typing import Any

import pytest

import retrograd
from retrograd import nn
from tests.oracle import answer

HUGE = 10**12

PROGRAMS = [
    "repr(m)", "repr(m.requires_grad_())", "repr(i)", "repr(m.sum())", "str(m)", "m.device", "m.is_meta", "m.is_cpu", "m.get_device()",
    "torch.ones(1).is_meta", "o.item()", "bool(o)", "float(o)", "int(o)", "m.tolist()", "m.numpy()", "m.cpu()", "m.to('cpu')",
    "repr(m.copy_(torch.ones(2, 3)))", "m + torch.ones(2, 3)", "torch.ones(2, 3) + m", "repr(m + torch.tensor(1.0))", "m.data_ptr()",
    "repr(m.untyped_storage())", "m.untyped_storage().nbytes()", "m.untyped_storage().data_ptr()", "m[1].storage_offset()",
    "m.T.is_contiguous()", "m.T.stride()", "m[:, ::2].stride()", "torch.empty(2, device='meta:0').device", "m.to('meta') is m",
    "repr(m.to(torch.float16))", "repr(m.int())", "repr(torch.zeros_like(m, device='cpu'))", "repr(torch.full((2,), 3, device='meta'))",
    "repr(torch.tensor([1.0, 2], device='meta'))", "repr(torch.arange(5, device='meta'))", "repr(torch.ones(2).to('meta'))",
    "len(m)", "[repr(one) for one in m]", "[repr(one) for one in m.max(1)]", "[repr(one) for one in m.sort()]", "f'{o:.2f}'",
    "m.is_shared()", "m.element_size()", "repr(m == m)", "repr(m.masked_fill(m > 0, 1))", "repr(m[:, torch.tensor([0, 1])])",
    "repr(torch.bernoulli(m))", "repr(torch.multinomial(m, 1))", "repr(m.uniform_())", "repr(torch.normal(m, m))",
    "repr(torch.nn.init.xavier_uniform_(m))", "repr(torch.nn.init.trunc_normal_(m))", "repr(torch.nn.init.orthogonal_(m))",
    "repr(torch.nn.functional.dropout(m))", "m.__array__()", "repr(m.new_ones(3))", "repr(torch.nn.Parameter(m))",
    "repr(torch.nn.Linear(2, 3).to('meta').weight)", "torch.nn.Linear(2, 3, device='meta').to('cpu')",
    "torch.nn.Linear(2, 3).load_state_dict(torch.nn.Linear(2, 3, device='meta').state_dict())",
    "torch.nn.Linear(2, 3, device='meta').load_state_dict(torch.nn.Linear(2, 3).state_dict())",
    "torch.empty(10**15, device='meta').shape", "torch.empty(2, 3).copy_(m).shape", "m.view(-1).shape", "m.view(4).shape",
    "setattr(torch.ones(2, 3), 'data', m)", "repr(o.resize_(4))", "torch.empty(0, device='meta').resize_(3, 2).stride()",
    "repr(torch.empty(2, dtype=torch.float8_e4m3fn, device='meta'))", "repr(torch.ones(2, device='meta').to(torch.float8_e5m2))",
    "repr(torch.empty(2, dtype=torch.uint16, device='meta'))", "repr(torch.ones(2, dtype=torch.uint16).to('meta').int())",
    "m.share_memory_()", "m.__dlpack__()", "torch.allclose(m, m)",
    "repr(torch.nn.functional.one_hot(torch.empty(3, 2, dtype=torch.int64, device='meta'), 4))",
    "torch.nn.functional.one_hot(torch.empty(3, 2, dtype=torch.int64, device='meta'))",
    "repr(torch.nn.functional.embedding_bag(torch.empty(3, 2, dtype=torch.int64, device='meta'), m))",
    "[repr(one) for one in torch.embedding_bag(m, torch.arange(6, device='meta'), torch.arange(3, device='meta'), mode=2)]",
    "[repr(one) for one in torch.embedding_bag(m, *2 * [torch.arange(6, device='meta')], include_last_offset=True)]",
    "repr(torch.ones(16, 16, device='meta').to(torch.float8_e4m3fn) @ torch.ones(16, 16, device='meta').to(torch.float8_e4m3fn))",
    "m.reshape(3, 2).stride()", "(m @ m.T).shape", "torch.cat([m, m]).shape", "m.expand(4, 2, 3).stride()",
]  # fmt: skip

UNDER_THE_DEVICE = [
    "torch.zeros(2)", "torch.tensor([1, 2])", "torch.nn.Linear(2, 3).weight", "torch.as_tensor([1.0])", "torch.randperm(4)",
    "torch.linspace(0, 1, 3)", "torch.eye(2)", "torch.zeros(2, device='cpu')", "torch.zeros_like(torch.zeros(2, device='cpu'))",
    "torch.rand_like(torch.zeros(2, device='cpu'))", "torch.zeros(2, device='cpu').new_ones(3)", "torch.randint(3, (2,))",
    "torch.full((2,), 1.5)", "torch.rand(2)", "torch.nn.LSTM(2, 3).weight_hh_l0", "torch.nn.BatchNorm1d(2).running_mean",
    "torch.tril_indices(2, 2)", "torch.nn.Embedding(3, 2).weight", "torch.normal(0.0, 1.0, (2,))", "torch.hann_window(4)",
    "torch.nn.MultiheadAttention(4, 2).in_proj_weight", "torch.scalar_tensor(1.0)", "torch.arange(3)",
]  # fmt: skip


def values(library: Any) -> dict[str, Any]:
    return {
        "m": library.empty(2, 3, device="meta"),
        "o": library.empty(1, device="meta"),
        "i": library.empty(3, device="meta", dtype=library.long),
    }


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program, **values(retrograd)) == answer(torch, program, **values(torch))


@pytest.mark.oracle
@pytest.mark.parametrize("program", UNDER_THE_DEVICE)
def test_block_chooses_the_device_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")

    def made(library: Any) -> Any:
        with library.device("meta"):
            tensor = eval(program, {"torch": library})
        return tensor.device.type, str(tensor.dtype), tuple(tensor.shape), tensor.requires_grad

    assert made(retrograd) == made(torch)


def test_huge_tensors_cost_nothing() -> None:
    retrograd.empty(2, device="meta") + 1  # everything is loaded
    tracemalloc.start()
    try:
        x = retrograd.empty(HUGE, device="meta", requires_grad=True)
        weight = retrograd.randn(10**6, 10**6, device="meta", requires_grad=True)
        loss = (x.view(10**6, 10**6) @ weight).relu().softmax(-1).sum() + retrograd.zeros(HUGE, device="meta").sum()
        loss.backward()
        assert x.grad is not None
        assert x.grad.shape == (HUGE,)
        with retrograd.device("meta"):
            layer = nn.Linear(10**6, 10**6)
        assert layer(retrograd.ones(3, 10**6, device="meta")).shape == (3, 10**6)
        assert tracemalloc.get_traced_memory()[1] < 2_000_000
    finally:
        tracemalloc.stop()


def test_filling_takes_nothing_from_the_random_stream() -> None:
    retrograd.manual_seed(0)
    expected = retrograd.rand(3)
    retrograd.manual_seed(0)
    with retrograd.device("meta"):
        nn.Linear(4, 5)
        retrograd.randn(7)
        nn.init.kaiming_normal_(retrograd.empty(3, 4))
    assert retrograd.equal(retrograd.rand(3), expected)


def test_model_made_without_memory_is_filled_from_a_state() -> None:
    def model() -> nn.Module:
        return nn.Sequential(nn.Embedding(10, 4), nn.LayerNorm(4), nn.Linear(4, 4), nn.GELU(), nn.Linear(4, 10))

    source = model()
    with retrograd.device("meta"):
        target = model()
    assert all(p.is_meta for p in target.parameters())
    tokens = retrograd.tensor([[1, 2, 3]])
    assert target(tokens.to("meta")).shape == (1, 3, 10)
    result = target.load_state_dict(source.state_dict(), assign=True)
    assert not result.missing_keys
    assert not any(p.is_meta for p in target.parameters())
    assert all(isinstance(p, nn.Parameter) and p.requires_grad for p in target.parameters())
    assert retrograd.equal(target(tokens), source(tokens))


def test_model_gets_memory_and_then_a_state() -> None:
    source = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    with retrograd.device("meta"):
        target = nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2))
    without_memory = target[0].weight
    target.to_empty(device="cpu")
    assert target[0].weight is not without_memory  # as in torch: one device's tensor cannot get the other's memory
    assert isinstance(target[0].weight, nn.Parameter)
    target.load_state_dict(source.state_dict())
    image = retrograd.randn(1, 1, 5, 5)
    assert retrograd.equal(target.eval()(image), source.eval()(image))


def test_copies_and_pickles_stay_on_the_device() -> None:
    tensor = retrograd.empty(3, 2, device="meta").T.requires_grad_()
    file = io.BytesIO()
    retrograd.save(tensor, file)
    file.seek(0)
    for other in (copy.deepcopy(tensor), pickle.loads(pickle.dumps(tensor)), retrograd.load(file)):
        assert other.is_meta
        assert (other.shape, other.stride(), other.dtype, other.requires_grad) == (
            (2, 3),
            (1, 2),
            retrograd.float32,
            True,
        )
    layer = nn.Linear(2, 3, device="meta")
    assert copy.deepcopy(layer).weight.is_meta
    assert pickle.loads(pickle.dumps(layer)).weight.is_meta


def test_file_is_loaded_without_elements() -> None:
    file = io.BytesIO()
    retrograd.save({"x": retrograd.ones(2, 3)}, file)
    file.seek(0)
    loaded = retrograd.load(file, map_location="meta")["x"]
    assert loaded.is_meta
    assert loaded.shape == (2, 3)


@pytest.mark.oracle
@pytest.mark.skipif(importlib.util.find_spec("torch") is None, reason="needs torch")
def test_torch_reads_the_file_of_a_meta_tensor() -> None:
    import torch

    file = io.BytesIO()
    retrograd.save(retrograd.empty(2, 3, device="meta"), file)
    file.seek(0)
    loaded = torch.load(file)
    assert loaded.is_meta
    assert loaded.shape == (2, 3)


def test_training_step_has_gradients_of_every_shape() -> None:
    with retrograd.device("meta"):
        model = nn.TransformerEncoder(nn.TransformerEncoderLayer(8, 2, 16, batch_first=True), 2)
        optimizer = retrograd.optim.AdamW(model.parameters())
        loss = model(retrograd.randn(3, 5, 8)).square().mean()
        loss.backward()
    optimizer.step()
    assert all(p.grad is not None and p.grad.is_meta and p.grad.shape == p.shape for p in model.parameters())


def test_transforms_run_on_shapes() -> None:
    x = retrograd.empty(4, 3, device="meta")
    w = retrograd.empty(3, 2, device="meta")
    assert retrograd.func.vmap(lambda row: (row @ w).tanh().sum())(x).shape == (4,)
    assert retrograd.func.jacrev(lambda w: x @ w)(w).shape == (4, 2, 3, 2)
    assert retrograd.func.jvp(lambda w: (x @ w).exp(), (w,), (w,))[1].shape == (4, 2)
    assert retrograd.func.hessian(lambda w: (x @ w).exp().sum())(w).shape == (3, 2, 3, 2)


def test_writes_check_shapes_and_move_the_version() -> None:
    x = retrograd.empty(2, 3, device="meta")
    before = x._version
    x[0] = 1
    x.add_(1).mul_(x)
    assert x._version > before
    with pytest.raises(RuntimeError):
        x.add_(retrograd.empty(4, device="meta"))


def test_what_depends_on_values_says_so() -> None:
    x = retrograd.empty(2, 3, device="meta")
    for call in (
        x.nonzero,
        lambda: x[x > 0],
        lambda: retrograd.unique(x),
        lambda: retrograd.masked_select(x, x > 0),
        lambda: retrograd.equal(x, x),
    ):
        with pytest.raises(NotImplementedError, match="depends on"):
            call()


def test_gradients_move_with_their_parameters() -> None:
    layer = nn.Linear(2, 3)
    layer(retrograd.ones(1, 2)).sum().backward()
    layer.to("meta")
    assert layer.weight.grad is not None
    assert layer.weight.grad.is_meta


@pytest.mark.oracle
@pytest.mark.parametrize("assign", [False, True])
def test_loading_numbers_into_meta_parameters_warns_as_torch_does(assign: bool) -> None:
    torch = pytest.importorskip("torch")

    def warned(library: Any) -> list[str]:
        layer = library.nn.BatchNorm1d(2, device="meta")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            layer.load_state_dict(library.nn.BatchNorm1d(2).state_dict(), assign=assign)
            library.nn.Linear(2, 2, device="meta").load_state_dict(library.nn.Linear(2, 2, device="meta").state_dict())
        return [str(one.message) for one in caught]

    assert warned(retrograd) == warned(torch)
