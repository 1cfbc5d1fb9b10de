"""What torch.cuda, torch.accelerator, torch.backends and torch.cpu answer without a GPU: torch's answers, built without CUDA."""

from __future__ import annotations

import pytest

import retrograd
from tests.oracle import Raised, answer

PROGRAMS = [
    *[
        f"torch.accelerator.{name}()"
        for name in [
            "Graph",
            "empty_host_cache",
            "get_device_capability",
            "max_memory_reserved",
            "memory_stats",
            "max_memory_allocated",
            "get_memory_info",
            "reset_accumulated_memory_stats",
            "reset_peak_memory_stats",
            "memory_allocated",
            "empty_cache",
        ]
    ],
    *[
        f"torch.cuda.{name}()"
        for name in [
            "current_blas_handle",
            "current_solver_handle",
            "get_gencode_flags",
            "get_per_process_memory_fraction",
            "get_sync_debug_mode",
            "host_memory_stats",
            "host_memory_stats_as_nested_dict",
            "is_tf32_supported",
            "list_gpu_processes",
            "memory_stats_as_nested_dict",
            "clock_rate",
            "device_memory_used",
            "memory_usage",
            "power_draw",
            "temperature",
            "utilization",
            "ipc_collect",
            "FloatTensor",
            "BFloat16Tensor",
            "FloatStorage",
            "caching_allocator_enable",
            "memory_allocated",
        ]
    ],
    "torch.cuda.has_half, torch.cuda.has_magma, torch.cuda.default_generators",
    "torch.cuda.set_sync_debug_mode(1)",
    "torch.cuda.can_device_access_peer(0, 1)",
    "torch.cuda.set_per_process_memory_fraction(0.5)",
    "torch.cuda.set_stream(None)",
    "torch.cuda.profiler.start()",
    "torch.cuda.caching_allocator_alloc(1)",
    "isinstance(torch.ones(1), torch.cuda.FloatTensor)",
    "torch.nn.parallel.gather([torch.ones(2)], 0)",
    "torch.nn.parallel.replicate(torch.nn.Linear(2, 2), [0])",
    "torch.nn.parallel.parallel_apply([torch.nn.Identity()], [torch.ones(1)])",
    "torch.nn.parallel.comm.reduce_add([torch.ones(2), torch.ones(2)])",
    *[
        f"torch.backends.cuda.{name}()"
        for name in ["fp16_bf16_reduction_math_sdp_allowed", "is_ck_sdpa_available", "is_flash_attention_available"]
    ],
    "torch.backends.cuda.preferred_blas_library().name, torch.backends.cuda.preferred_linalg_library('default').name",
    "torch.backends.cuda.preferred_linalg_library('other')",
    "torch.backends.cuda.cufft_plan_cache.size",
    "torch.backends.mha.get_fastpath_enabled()",
    "torch.backends.mkl.VERBOSE_OFF, torch.backends.mkl.VERBOSE_ON",
    "torch.cpu.current_stream() is torch.cpu.current_stream()",
    "torch.version.debug, torch.version.xpu, torch.version.rocm",
    "[one.__name__ for one in torch.return_types.all_return_types][:4]",
    "len(torch.return_types.all_return_types), torch.return_types.linalg_lstsq_out.n_fields",
    "str(torch._C.DispatchKeySet(torch._C.DispatchKey.AutocastCPU) | torch._C.DispatchKeySet(torch._C.DispatchKey.CPU))",
]


@pytest.mark.oracle
@pytest.mark.skipif(retrograd.cuda.is_available(), reason="there is a GPU")
@pytest.mark.parametrize("program", PROGRAMS)
def test_an_answer_is_torchs(program: str) -> None:
    torch = pytest.importorskip("torch")
    if torch.version.cuda is not None:
        pytest.skip("torch was built with CUDA")
    ours, theirs = answer(retrograd, program), answer(torch, program)
    if isinstance(theirs, Raised) and theirs.kind == "AssertionError" and "not compiled" in theirs.words:
        assert ours.kind == theirs.kind
        assert ours.words.startswith(theirs.words)
    else:
        assert ours == theirs


def test_capabilities_of_the_processor_are_known() -> None:
    found = retrograd.cpu.get_capabilities()
    assert found["num_logical_cores"] >= 1
    assert isinstance(found["architecture"], str)


def test_a_block_has_its_stream() -> None:
    before, other = retrograd.cpu.current_stream(), retrograd.cpu.Stream()
    with retrograd.cpu.stream(other):
        assert retrograd.cpu.current_stream() is other
    assert retrograd.cpu.current_stream() is before


def test_autocast_is_switched_for_good() -> None:
    x = retrograd.ones(2, 2)
    retrograd.set_autocast_enabled("cpu", True)
    try:
        assert (x @ x).dtype is retrograd.bfloat16
        retrograd.set_autocast_dtype("cpu", retrograd.float16)
        assert (x @ x).dtype is retrograd.float16
        assert retrograd.get_autocast_dtype("cpu") is retrograd.float16
        with retrograd._C._ExcludeDispatchKeyGuard(retrograd._C.DispatchKeySet(retrograd._C.DispatchKey.AutocastCPU)):
            assert (x @ x).dtype is retrograd.float32
    finally:
        retrograd.set_autocast_dtype("cpu", retrograd.bfloat16)
        retrograd.set_autocast_cpu_enabled(False)
    assert (x @ x).dtype is retrograd.float32
    assert not retrograd.is_autocast_enabled("cpu")
