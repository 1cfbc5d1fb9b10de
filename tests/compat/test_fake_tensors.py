"""Fake tensors have no elements; torch's small questions about shapes answer as torch's."""

from __future__ import annotations

import importlib
from typing import Any

import pytest

import retrograd
from tests.oracle import answer, before_the_hint, outcome

fakes = importlib.import_module("retrograd._subclasses.fake_tensor")


def test_mode_makes_tensors_without_elements() -> None:
    with fakes.FakeTensorMode():
        x = retrograd.empty(10**6, 10**6)
        layer = retrograd.nn.Linear(10**6, 10)
        y = layer(x).softmax(-1)
        assert fakes.is_fake(x)
    assert isinstance(y, fakes.FakeTensor)
    assert not fakes.is_fake(retrograd.empty(2, device="meta"))
    assert y.shape == (10**6, 10)
    assert retrograd.ones(2).device.type == "cpu"
    assert not fakes.is_fake(retrograd.ones(2))


def test_fake_of_a_tensor_has_its_strides() -> None:
    mode = fakes.FakeTensorMode()
    source = retrograd.ones(2, 3).T
    made = mode.from_tensor(source)
    assert (made.shape, made.stride(), made.dtype) == ((3, 2), (1, 3), retrograd.float32)
    assert made.fake_device == retrograd.device("cpu")
    assert mode.from_tensor(source) is made
    with mode:
        assert fakes.is_fake(made @ made.T)


def test_real_tensors_are_refused_unless_allowed() -> None:
    x = retrograd.ones(2)
    with fakes.FakeTensorMode(), pytest.raises(AssertionError, match="convert all Tensors to FakeTensors"):
        x + retrograd.zeros(2)
    with fakes.FakeTensorMode(allow_non_fake_inputs=True):
        assert fakes.is_fake(x + retrograd.zeros(2))


FAKES = [
    "torch.ones(3)",
    "type(torch.ones(3) * 2).__name__",
    "mode.from_tensor(real), mode.from_tensor(real).device, mode.from_tensor(real).is_meta",
    "torch.nn.Linear(3, 4)(torch.randn(2, 3))",
    "torch.nn.Linear(3, 4).weight",
    "torch.ones(3).item()",
    "bool(torch.ones(3).sum() > 0)",
    "torch.tensor(2.0).item(), torch.tensor(3).tolist()",
    "torch.ones(3).nonzero()",
    "torch.ones(3).tolist()",
    "torch.ones(3).numpy()",
    "real + torch.ones(2)",
    "torch.ones(3, requires_grad=True).exp().sum()",
    "torch.empty(2, 2, device='cuda')",
    "torch.ones(2, 3).t_(), torch.ones(2, 3).add_(1).to(torch.float64)",
    "torch.nn.Conv2d(1, 2, 3)(torch.ones(1, 1, 5, 5)).stride()",
    "torch.autograd.grad(torch.nn.Linear(3, 4)(torch.ones(2, 3, requires_grad=True)).sum(), [])",
    "torch.cat([torch.ones(2), torch.ones(3)]), torch.ones(4).split(2)",
    "torch.randn(3, 4).std(), torch.randn(3, 4).std(0)",
    "F.cross_entropy(torch.randn(2, 3), torch.ones(2, dtype=torch.int64)).dtype",
    "F.nll_loss(torch.randn(2, 3), torch.ones(2, dtype=torch.int64)).dtype",
    "torch.tensor(2.0).add_(1).mul(5).item(), bool(torch.tensor(3) > 2)",
    "(x := torch.tensor(2.0), x.view(1).mul_(3), x.item())[2]",
    "(x := torch.tensor(2.0), x.view(1).add_(torch.ones(1)), x.item())[2]",
    "(x := torch.tensor(2.0), x.expand(3), x.item())[2]",
    "torch.tensor(0.5).bernoulli_().item()",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", FAKES)
def test_fakes_look_as_those_of_torch(program: str) -> None:
    pytest.importorskip("torch")

    def told(name: str) -> Any:
        library = importlib.import_module(name)
        real = library.ones(2)
        with importlib.import_module(f"{name}._subclasses.fake_tensor").FakeTensorMode() as mode:
            scope = {"torch": library, "F": library.nn.functional, "mode": mode, "real": real}
            return outcome(lambda: repr(eval(program, scope)), words=before_the_hint, ignore_warnings=False)

    assert told("retrograd") == told("torch")


def test_gradients_of_fakes_are_fake() -> None:
    with fakes.FakeTensorMode():
        x = retrograd.ones(3, requires_grad=True)
        (x * 2).sum().backward()
    assert fakes.is_fake(x.grad)
    assert x.grad.shape == (3,)


OPTIMIZERS = ["Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "RAdam", "RMSprop", "Rprop", "SGD"]


@pytest.mark.oracle
@pytest.mark.parametrize("name", OPTIMIZERS)
def test_optimizers_step_on_fakes_as_those_of_torch(name: str) -> None:
    pytest.importorskip("torch")

    def state_after_steps(library: Any) -> Any:
        with importlib.import_module(f"{library.__name__}._subclasses.fake_tensor").FakeTensorMode():
            layer = library.nn.Linear(3, 2)
            optimizer = getattr(library.optim, name)(layer.parameters(), lr=0.1)
            for _ in range(3):
                layer(library.ones(2, 3)).sum().backward()
                optimizer.step()
            state = optimizer.state[layer.weight]
            return {key: (type(one).__name__, tuple(one.shape), str(one.dtype)) for key, one in state.items()}

    assert state_after_steps(retrograd) == state_after_steps(importlib.import_module("torch"))


QUESTIONS = [
    "c.make_contiguous_strides_for((2, 3, 4))",
    "c.make_contiguous_strides_for((2, 3, 4), row_major=False)",
    "c.make_contiguous_strides_for(())",
    "c.make_contiguous_strides_for((0, 2))",
    "c.canonicalize_dims(3, (-1, 0))",
    "c.canonicalize_dims(3, -2)",
    "c.canonicalize_dim(0, -1)",
    "c.get_computation_dtype(torch.bfloat16)",
    "c.get_computation_dtype(torch.float64)",
    "c.is_integer_dtype(torch.bool)",
    "c.is_integer_dtype(torch.uint8)",
    "c.is_float_dtype(torch.half)",
    "c.corresponding_complex_dtype(torch.float64)",
    "c.corresponding_real_dtype(torch.complex64)",
    "c.dtype_to_type(torch.int8)",
    "c.type_to_dtype(complex)",
    "c.suggest_memory_format(torch.ones(2, 3, 4, 5).contiguous(memory_format=torch.channels_last))",
    "c.suggest_memory_format(torch.ones(2, 3))",
    "c.is_contiguous_or_false(torch.ones(2, 3).T)",
    "c.compute_required_storage_length((2, 3), (3, 1), 1)",
    "c.is_expandable_to((1, 3), (2, 2, 3))",
    "w._maybe_convert_to_dtype(1, torch.float32)",
    "w._maybe_convert_to_dtype(torch.ones(2), torch.int64)",
    "w._maybe_convert_to_dtype(None, torch.int64)",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", QUESTIONS)
def test_questions_are_answered_as_by_torch(program: str) -> None:
    pytest.importorskip("torch")

    def found(name: str) -> Any:
        library = importlib.import_module(name)
        common = importlib.import_module(f"{name}._prims_common")
        return answer(library, program, c=common, w=importlib.import_module(f"{name}._prims_common.wrappers"))

    assert found("retrograd") == found("torch")
