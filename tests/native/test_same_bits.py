"""The same bits in every process with the same threads: kernels may be compiled, on disk or there already, the clock may say anything."""

from __future__ import annotations

import ast
import hashlib
import os
import platform
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd import nn
from retrograd._native import machine
from retrograd.nn import functional as F  # noqa: N812 - as everybody calls it
from tools.check_math import kernel

ROOT = Path(retrograd.__file__).parent
# rooms that compute; what they import from elsewhere is not theirs to time
UNTIMED = ("_core", "_graph", "_native", "_ops", "_random", "optim", "tensor")
TIMED = {ROOT / "_native" / "machine.py"}  # which tells recordings how long it has compiled


def _gradients(function: Callable[..., Any], *given: Any) -> list[Any]:
    leaves = [x.detach().requires_grad_() if x.is_floating_point() else x for x in given]
    out = function(*leaves)
    out.backward(retrograd.linspace(-1, 1, out.numel()).reshape(out.shape).to(out.dtype))
    return [out.detach(), *[leaf.grad for leaf in leaves if leaf.requires_grad]]


def _trained(optimizer: Callable[..., Any]) -> list[Any]:
    p = nn.Parameter(retrograd.linspace(-1, 1, 70_001))
    steps = optimizer([p])
    for k in range(3):
        p.grad = retrograd.linspace(1, k, 70_001)
        steps.step()
    return [p.detach()]


def results() -> Iterator[list[Any]]:
    """Compute what every family of kernels does to large arrays, with several chunks and rests."""
    retrograd.manual_seed(0)
    x, image = retrograd.randn(151, 1003), retrograd.randn(3, 8, 67, 71)
    long, index = retrograd.randn(400_007), retrograd.randint(0, 151, (40_000,))
    weight, bias, classes = retrograd.randn(1003), retrograd.randn(1003), retrograd.randint(0, 1003, (151,))
    yield _gradients(lambda x: F.gelu(x).sum(0), x)
    yield _gradients(lambda x: x.softmax(1) @ weight, x)
    yield _gradients(lambda x, w, b: F.layer_norm(x, (1003,), w, b), x, weight, bias)
    yield _gradients(lambda x: F.cross_entropy(x, classes), x)
    yield _gradients(lambda x, w, b: F.batch_norm(x, None, None, w, b, True), image, weight[:8], bias[:8])
    yield _gradients(lambda x, w: F.conv2d(x, w, groups=8), image, weight[:72].reshape(8, 1, 3, 3))
    yield _gradients(lambda x, w: F.conv2d(x, w), image, weight[:576].reshape(8, 8, 3, 3))
    yield _gradients(lambda x: F.max_pool2d(x, 3, 2), image)
    yield _gradients(lambda x: F.embedding(index, x[:, :40]), x)
    yield _gradients(lambda x: x.cumsum(1).logsumexp(0), x)
    yield _gradients(lambda x: x.var() + x.norm() + x.mean() + (x * x).sum(), long)
    yield _gradients(lambda x: x.std(0) * weight + x.amax(0), x)
    yield [F.dropout(long, 0.3), retrograd.rand(100_003), x.to(retrograd.bfloat16).sum(0)]
    for optimizer in (retrograd.optim.Adam, retrograd.optim.AdamW, lambda p: retrograd.optim.SGD(p, 0.1, momentum=0.9)):
        yield _trained(optimizer)


def digest() -> str:
    whole = hashlib.sha256()
    for found in results():
        for x in found:
            whole.update(x.float().numpy().tobytes())
    return whole.hexdigest()


def digest_of_functions() -> str:
    x = np.concatenate([np.linspace(-20, 20, 20_011), np.geomspace(1e-30, 1e30, 20_011)]).astype(np.float32)
    found = [kernel(name)(x) for name in ("exp", "log1p", "sin", "tanh", "erf", "exact_gelu", "lgamma")]
    return hashlib.sha256(b"".join(map(bytes, found))).hexdigest()


CHILD = """
import sys, time
{before}
import retrograd
from tests.native import test_same_bits
retrograd.set_num_threads(2)
print(*[test_same_bits.{what}() for _ in range({times})])
"""
# a clock that jumps to and fro, before anybody has looked at it
JUMPS = """
import random
draw = random.Random(1)
for name in ("time", "perf_counter", "monotonic", "process_time", "thread_time"):
    setattr(time, name, lambda: draw.uniform(0, 1e6))
    setattr(time, name + "_ns", lambda: draw.randrange(10**15))
"""


def _in_a_process(cache: Path, what: str, times: int = 1, before: str = "", processor: str = "") -> list[str]:
    text = CHILD.format(before=before, what=what, times=times)
    environment = os.environ | {"RETROGRAD_CACHE": str(cache), "PYTHONPATH": os.pathsep.join(sys.path)}
    environment |= {"RETROGRAD_NATIVE_CPU": processor} if processor else {}
    done = subprocess.run([sys.executable, "-c", text], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


@pytest.mark.slow
def test_processes_agree(tmp_path: Path) -> None:
    """Kernels that are compiled by another clock, read from disk, and there already compute the same."""
    compiled = _in_a_process(tmp_path, "digest", before=JUMPS)
    assert _in_a_process(tmp_path, "digest", 2) == compiled * 2


@pytest.mark.skipif(
    not machine.is_available() or platform.machine() != "x86_64", reason="kernels for another x86 processor"
)
def test_functions_are_the_same_on_another_processor(tmp_path: Path) -> None:
    """Nothing is added in another order there: one without AVX2, but with what kernels need, computes the same bits."""
    elsewhere = _in_a_process(tmp_path, "digest_of_functions", processor="x86-64,+fma,+f16c")
    assert elsewhere == [digest_of_functions()]


@pytest.mark.parametrize("room", UNTIMED)
def test_nothing_that_computes_reads_a_clock(room: str) -> None:
    """What runs depends on formulas, dtypes and shapes: nothing is measured while it runs."""
    for file in {*(ROOT / room).rglob("*.py")} - TIMED:
        for node in ast.walk(ast.parse(file.read_text())):
            names = [a.name for a in node.names] if isinstance(node, ast.Import) else []
            names += [str(node.module)] if isinstance(node, ast.ImportFrom) and not node.level else []
            assert not {"time", "timeit", "datetime"} & {name.partition(".")[0] for name in names}, file
