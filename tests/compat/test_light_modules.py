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
