"""Functions that look for modes are made of other code at the first mode: debuggers must be able to read their frames."""

from __future__ import annotations

import subprocess
import sys

import pytest

PROGRAM = """
import inspect, sys
import retrograd as torch
from retrograd.overrides import TorchFunctionMode
from retrograd.utils._python_dispatch import TorchDispatchMode
class Functions(TorchFunctionMode):
    def __torch_function__(self, function, types, args=(), kwargs=None): return function(*args, **(kwargs or {}))
class Operations(TorchDispatchMode):
    def __torch_dispatch__(self, function, types, args=(), kwargs=None): return function(*args, **(kwargs or {}))
with MODE():
    torch.ones(2) + 1
x = torch.ones(2, 3)
for call in (
    lambda: torch.ones(-1), lambda: x.add_("a"), lambda: x.view(5), lambda: x.exp_(3, 4), lambda: torch.full((2,), "a"),
    lambda: torch.arange("a"), lambda: x.copy_(torch.ones(7)), lambda: x.fill_("a"), lambda: x[7], lambda: x.to("nowhere"),
):
    try:
        call()
    except Exception:
        trace = sys.exc_info()[2]
        while trace is not None:
            dict(trace.tb_frame.f_locals)
            trace = trace.tb_next
    else:
        raise AssertionError(inspect.getsource(call))
print("read")
"""


@pytest.mark.parametrize("mode", ["Functions", "Operations"])
def test_local_variables_can_be_read(mode: str) -> None:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM.replace("MODE", mode)], capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stdout) == (0, "read\n"), done.stderr[-2000:]
