"""Sizes one by one, once something in the process takes calls over."""

from __future__ import annotations

import subprocess
import sys

PROGRAM = """
import retrograd as torch
from retrograd import _arguments

class Taking(torch.Tensor):
    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        return "taken"

assert torch.ones(2).as_subclass(Taking).sum() == "taken"  # from now on, public functions have their general form
x = torch.ones(6)
checked = []
_arguments.taken, taken = lambda *call: checked.append(call[0].__name__) or taken(*call), _arguments.taken
shapes = x.reshape(2, 3).permute(1, 0).shape, x.reshape((3, 2)).shape, x.view(1, 6).expand(2, 6).shape
print(*[tuple(shape) for shape in shapes], checked)
"""


def test_sizes_are_not_compared_with_signatures_in_every_call():
    done = subprocess.run([sys.executable, "-c", PROGRAM], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "(3, 2) (3, 2) (2, 6) []\n"
