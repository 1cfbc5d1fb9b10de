"""Modules that libraries import before they compute: torch.jit, torch.distributed, torch.types and the like."""

from __future__ import annotations

import copy
import importlib
from collections.abc import Iterator
from typing import Any

import pytest

import retrograd
from retrograd import as_torch

NAMES = """amp amp.autocast_mode amp.grad_scaler backends.cuda backends.cudnn backends.mps cuda.amp distributed functional jit
multiprocessing nn.parallel.distributed torch_version types utils._foreach_utils"""


@pytest.fixture
def torch() -> Iterator[Any]:
    with as_torch():
        yield importlib.import_module("torch")


@pytest.mark.parametrize("name", NAMES.split())
def test_a_module_is_found_under_its_name(torch: Any, name: str) -> None:
    assert importlib.import_module(f"torch.{name}") is importlib.import_module(f"retrograd.{name}")


# ---- names ----
def test_functional_has_torchs_functions() -> None:
    for name in retrograd.functional.__all__:
        assert getattr(retrograd.functional, name) is getattr(retrograd, name)
    with pytest.raises(AttributeError, match="no attribute 'relu'"):
        _ = retrograd.functional.relu


def test_types_name_what_there_is() -> None:
    types = retrograd.types
    assert isinstance(3, types.Number)
    assert types._dtype is retrograd.dtype
    assert types._device is retrograd.device
    assert types._size == retrograd.Size | list[int] | tuple[int, ...]


def test_versions_compare_by_their_numbers() -> None:
    version = retrograd.torch_version
    assert version.__version__ >= "2.9"
    assert version.TorchVersion("2.10") > (2, 9)


def test_switches_of_cudnn_hold_for_a_block() -> None:
    cudnn = retrograd.backends.cudnn
    before = cudnn.deterministic
    with cudnn.flags(deterministic=not before):
        assert cudnn.deterministic is not before
    assert cudnn.deterministic is before
    assert cudnn.version() is None
    assert not cudnn.is_acceptable(retrograd.ones(1))


@pytest.mark.parametrize("name", ["flash", "mem_efficient", "math", "cudnn"])
def test_switches_of_attention_are_kept(name: str) -> None:
    cuda = retrograd.backends.cuda
    getattr(cuda, f"enable_{name}_sdp")(False)
    assert getattr(cuda, f"{name}_sdp_enabled")() is False
    getattr(cuda, f"enable_{name}_sdp")(True)
    assert getattr(cuda, f"{name}_sdp_enabled")() is True


@pytest.mark.oracle
def test_tensors_are_sorted_as_torch_sorts_them() -> None:
    def groups(library: Any) -> Any:
        utils = importlib.import_module(f"{library.__name__}.utils._foreach_utils")
        tensors = [library.ones(1), library.ones(2, dtype=library.float64), library.ones(3)]
        made = utils._group_tensors_by_device_and_dtype([tensors, [None, None, None]], with_indices=True)
        return {str(key): str(value) for key, value in made.items()}

    assert groups(retrograd) == groups(pytest.importorskip("torch"))


def test_views_share_their_storage() -> None:
    x = retrograd.arange(6.0)
    whole, part = x.untyped_storage(), x[2:4].untyped_storage()
    assert whole.data_ptr() == part.data_ptr() == x.data_ptr()
    assert part.nbytes() == part.size() == len(part) == 24
    assert part.element_size() == 1
    assert whole.tolist()[:8] == [0, 0, 0, 0, 0, 0, 128, 63]
    assert whole.__sizeof__() > 24
    assert retrograd.empty(0).untyped_storage().data_ptr() == 0


def test_what_libraries_register_for_an_export_is_taken(torch: Any) -> None:
    parse_args = importlib.import_module("torch.onnx.symbolic_helper").parse_args
    written = parse_args("v", "f")(lambda g, x, y: None)
    assert written._arg_descriptors == ("v", "f")
    torch.onnx.register_custom_op_symbolic("library::op", written, 11)
    torch.onnx.unregister_custom_op_symbolic("library::op", 11)
    with pytest.raises(
        torch.onnx.OnnxExporterError, match=r"Failed to register operator op\. The symbolic name must match"
    ):
        torch.onnx.register_custom_op_symbolic("op", written, 11)


@pytest.mark.oracle
def test_the_instructions_of_the_cpu_are_those_that_torch_finds() -> None:
    reference = pytest.importorskip("torch")
    assert retrograd.backends.cpu.get_cpu_capability() == reference.backends.cpu.get_cpu_capability()


def test_a_library_can_copy_a_graph_module_by_its_attributes(torch: Any) -> None:
    place = importlib.import_module("torch.fx.graph_module")
    module = torch.fx.symbolic_trace(torch.nn.Linear(2, 3))
    module.meta[place._USER_PRESERVED_ATTRIBUTES_KEY] = {"kept": 1}
    again = torch.fx.GraphModule(place._CodeOnlyModule(copy.deepcopy(module.__dict__)), module.graph)
    x = torch.ones(1, 2)
    assert again(x).tolist() == module(x).tolist()
    assert again.weight is not module.weight


def test_a_library_replaces_the_steps_of_vmap_to_map_over_its_own_objects(
    torch: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    steps = importlib.import_module("torch._functorch.vmap")

    class Held:
        def __init__(self, value: Any) -> None:
            self.value = value

    def process(in_dims: Any, args: Any, func: Any) -> Any:
        return len(args[0].value), [0] * len(args), list(args), None

    def create(dims: Any, flat: Any, level: Any, spec: Any) -> Any:
        return tuple(Held(steps._add_batch_dim(one.value, dim, level)) for one, dim in zip(flat, dims, strict=True))

    def unwrap(result: Any, out_dims: Any, level: Any, size: int, func: Any) -> Any:
        name = steps._get_name(func)
        return Held(steps._maybe_remove_batch_dim(name, result.value, level, size, out_dims))

    for name, step in (
        ("_process_batched_inputs", process),
        ("_create_batched_inputs", create),
        ("_unwrap_batched", unwrap),
    ):
        monkeypatch.setattr(steps, name, step)
    x = torch.arange(6.0).reshape(3, 2)
    made = torch.vmap(lambda one: Held(one.value.sum() * one.value), out_dims=1)(Held(x))
    assert torch.equal(made.value, (x.sum(1, keepdim=True) * x).T)

    def named(one: Any) -> Any:
        return Held(3)

    with pytest.raises(ValueError, match="`named` must only return Tensors, got type <class 'int'>"):
        torch.vmap(named)(Held(x))
    monkeypatch.undo()
    size, dims, flat, spec = steps._process_batched_inputs(0, (x,), sum)
    assert (size, dims) == (3, [0])
    made = torch.vmap(lambda y: steps._create_batched_inputs([None], flat, None, spec)[0] * y)(x)
    assert made.shape == (3, 3, 2)


def test_switches_of_backends_may_be_set_everywhere(torch: Any) -> None:
    with getattr(torch.backends, "__allow_nonbracketed_mutation")():
        torch.backends.cudnn.deterministic = torch.backends.cudnn.deterministic
