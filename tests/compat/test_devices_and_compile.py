"""What scripts ask of devices before they use one, and compiling, which changes nothing."""

from __future__ import annotations

import copy
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import nn
from tests.oracle import answer

PROGRAMS = """
torch.cuda.get_rng_state_all()
torch.cuda.set_rng_state_all([])
torch.cuda.max_memory_allocated(), torch.cuda.max_memory_reserved(), torch.cuda.memory_stats()
torch.cuda.is_bf16_supported(), torch.cuda.get_arch_list()
torch.cuda.seed_all()
torch.cuda.Stream()
torch.cuda.nvtx.range_push("a")
torch.cuda.OutOfMemoryError is torch.OutOfMemoryError, torch.OutOfMemoryError.__mro__[1:]
torch.accelerator.is_available(), torch.accelerator.current_accelerator(), torch.accelerator.device_count()
torch.accelerator.current_device_index()
torch.accelerator.synchronize()
torch.xpu.is_available(), torch.mps.is_available(), torch.mtia.is_available(), torch.xpu.device_count()
torch.cpu.is_available(), torch.cpu.device_count(), torch.cpu.current_device(), torch.cpu.synchronize()
torch.get_device_module("cpu") is torch.cpu, torch.get_device_module("cuda") is torch.cuda
torch.is_autocast_cpu_enabled(), torch.get_autocast_cpu_dtype(), torch.get_autocast_gpu_dtype()
torch.channels_last_3d
torch.compiler.is_compiling(), torch.compiler.list_backends(), torch.compiler.reset(), torch._dynamo.is_compiling()
torch.compile(lambda x: x * 2)(torch.ones(1))
torch.compile()(lambda x: x * 2)(torch.ones(1))
torch.compile(3)
torch.compile(torch.sin, mode="nope")
torch.compile(torch.sin, mode="max-autotune", options={"a": 1})
torch.compile(torch.nn.Linear(2, 2))
list(torch.compile(torch.nn.Linear(2, 2)).state_dict())
type(torch.compile(torch.nn.Linear(2, 2)))
torch.compile(torch.nn.Linear(2, 3)).out_features
len(torch.compile(torch.nn.Sequential(torch.nn.ReLU())))
torch.compile(torch.nn.Linear(2, 2).eval()).training
torch.nn.modules.utils._pair(2)
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.skipif(retrograd.cuda.is_available(), reason="there is a CUDA device: torch's CPU build answers otherwise")
@pytest.mark.parametrize("program", PROGRAMS)
def test_same_answer(program: str) -> None:
    assert answer(retrograd, program) == answer(pytest.importorskip("torch"), program)


def test_a_compiled_module_trains_as_the_module() -> None:
    model = nn.Sequential(nn.Linear(2, 2), nn.Dropout(0.5))
    compiled = retrograd.compile(model)
    compiled.eval()
    assert not model.training
    assert not model[1].training
    compiled.some_setting = 3
    assert model.some_setting == 3
    x = retrograd.ones(1, 2)
    compiled(x).sum().backward()
    assert model[0].weight.grad.equal(compiled._orig_mod[0].weight.grad)
    assert next(compiled.parameters()) is model[0].weight
    again = copy.deepcopy(compiled)
    assert again(x).equal(compiled(x))
    compiled.load_state_dict({f"_orig_mod.{k}": v * 0 for k, v in model.state_dict().items()})
    assert not compiled(x).any()


def test_a_decorated_function() -> None:
    @retrograd.compile(fullgraph=True, dynamic=True)
    def twice(x: Any) -> Any:
        return x * 2

    assert twice(retrograd.ones(2)).tolist() == [2, 2]


def test_weights_from_an_address(tmp_path: Path) -> None:
    source = tmp_path / "weights-deadbeef.pth"
    retrograd.save({"a": retrograd.ones(2)}, source)
    loaded = retrograd.hub.load_state_dict_from_url(source.as_uri(), str(tmp_path / "kept"))
    assert loaded["a"].tolist() == [1, 1]
    assert (tmp_path / "kept" / source.name).exists()
    with pytest.raises(RuntimeError, match="invalid hash value"):
        retrograd.hub.load_state_dict_from_url(source.as_uri(), str(tmp_path / "other"), check_hash=True)
    assert list((tmp_path / "other").iterdir()) == []
