"""What programs ask of devices before they use one: answers on a machine without any."""

from __future__ import annotations

import pytest

import retrograd as torch

needs_none = pytest.mark.skipif(torch.cuda.is_available(), reason="there is a CUDA device")


def test_the_usual_lines_work() -> None:
    device = torch.device(
        "cuda" if torch.cuda.is_available() else "mps" if torch.backends.mps.is_available() else "cpu"
    )
    assert torch.ones(2, device=device).sum().item() == 2.0
    torch.cuda.manual_seed_all(3)
    torch.backends.cudnn.deterministic = True
    torch.backends.cudnn.benchmark = False
    torch.backends.cuda.matmul.allow_tf32 = True
    torch.cuda.empty_cache()
    assert torch.version.hip is None


@needs_none
def test_without_a_device() -> None:
    assert torch.cuda.device_count() == 0
    assert torch.cuda.memory_allocated() == 0
    with pytest.raises(AssertionError, match="Torch not compiled with CUDA enabled"):
        torch.cuda.synchronize()


@needs_none
def test_seeding_cuda_leaves_the_cpu_alone() -> None:
    torch.manual_seed(5)
    expected = torch.rand(3).tolist()
    torch.manual_seed(5)
    torch.cuda.manual_seed_all(9)
    assert torch.rand(3).tolist() == expected
