"""KeyboardInterrupt, wherever it comes, leaves no mode switched."""

from __future__ import annotations

import signal
import subprocess
import sys
from contextlib import ExitStack

import pytest

import retrograd as torch
from retrograd._modes import PLAIN, current_mode, read_mode

INTERRUPTS = 2000


@pytest.mark.skipif(not hasattr(signal, "setitimer"), reason="timers of Unix")
@pytest.mark.skipif(sys.version_info >= (3, 14), reason="there `with` can be interrupted between a call and its block")
def test_modes_after_interrupts() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tests.autograd.interrupts", str(INTERRUPTS)],
        capture_output=True,
        text=True,
        timeout=300,
    )
    counts = dict(reversed(line.split(" ", 1)) for line in done.stdout.splitlines())
    assert done.returncode == 0, done.stderr[-1000:]
    assert int(counts.pop("nothing")) >= INTERRUPTS
    assert not counts


# ---- blocks put back what is theirs ----
def test_what_is_switched_for_good_in_a_block_stays() -> None:
    with torch.no_grad():
        torch.autograd.set_detect_anomaly(True)
    assert torch.is_grad_enabled()
    assert torch.is_anomaly_enabled()
    torch.autograd.set_detect_anomaly(False)
    with torch.no_grad(), torch.no_grad():
        torch.set_grad_enabled(True)
        assert torch.is_grad_enabled()
    assert read_mode() is PLAIN


def test_blocks_that_end_in_another_order() -> None:
    first, second = torch.no_grad(), torch.autocast("cpu")
    hooks = torch.autograd.graph.saved_tensors_hooks(lambda x: x, lambda x: x)
    first.__enter__()
    hooks.__enter__()
    second.__enter__()
    first.__exit__(None, None, None)
    assert torch.is_grad_enabled()
    assert torch.is_autocast_enabled("cpu")
    assert len(current_mode().saved_hooks) == 1
    hooks.__exit__(None, None, None)
    assert torch.is_autocast_enabled("cpu")
    assert not current_mode().saved_hooks
    second.__exit__(None, None, None)
    assert read_mode() is PLAIN


def test_one_object_entered_twice_and_a_stack_of_blocks() -> None:
    block = torch.autocast("cpu")
    with block, torch.no_grad(), block:
        assert torch.is_autocast_enabled("cpu")
    assert read_mode() is PLAIN
    with ExitStack() as stack:
        for one in (torch.no_grad(), torch.device("cpu"), torch.inference_mode(), torch.set_grad_enabled(True)):
            stack.enter_context(one)
        assert torch.is_inference_mode_enabled()
    assert read_mode() is PLAIN


def test_errors_leave_blocks() -> None:
    for block in (torch.no_grad(), torch.device("cpu"), torch.autograd.forward_ad.dual_level()):
        with pytest.raises(ValueError, match="inside"), block:
            raise ValueError("inside")
    assert read_mode() is PLAIN
    assert torch.autograd.forward_ad._current_level == -1
