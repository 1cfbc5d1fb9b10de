"""Code that needs no linker runs wherever it is put; everything else is left to LLVM."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys

import pytest

from retrograd._native import flat, machine

pytestmark = pytest.mark.skipif(
    not machine.is_available() or not flat.is_possible(), reason="needs llvmlite, and Linux on x86-64"
)

ADD = """
@table = private constant [4 x double] [double 1.0, double 2.5, double 3.0, double 4.0]
define double @NAME(double %x, i64 %k) {
  %place = getelementptr [4 x double], ptr @table, i64 0, i64 %k
  %y = load double, ptr %place
  %z = fadd double %x, %y
  %w = fmul double %z, 3.0
  ret double %w
}
"""
CALL = """
declare double @sin(double)
define double @NAME(double %x) {
  %y = call double @sin(double %x)
  ret double %y
}
"""


def compiled(text, name):
    llvm = machine._llvm()
    return llvm.target.emit_object(llvm.optimised(text.replace("NAME", name)))


def test_constants_are_found_wherever_the_code_lies():
    piece = flat.flattened(compiled(ADD, "added"), "added")
    assert piece is not None
    for _ in range(2):
        function = ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double, ctypes.c_int64)(flat.load(piece))
        assert [function(1.0, k) for k in range(4)] == [6.0, 10.5, 12.0, 15.0]


def test_code_that_calls_the_c_library_needs_a_linker():
    file = compiled(CALL, "called")
    assert flat.flattened(file, "called") is None
    address = machine._llvm().link(file, "called")
    assert ctypes.CFUNCTYPE(ctypes.c_double, ctypes.c_double)(address)(0.0) == 0.0


def test_other_files_are_left_to_llvm():
    assert flat.flattened(b"MZ" + bytes(100), "f") is None
    assert flat.flattened(compiled(ADD, "added"), "another") is None


def test_kernels_from_the_cache_do_not_load_llvm(tmp_path):
    code = """
import sys
import retrograd as torch
x = torch.linspace(-3, 3, 20_000)
image = x.reshape(10, 25, 8, 10).requires_grad_()
torch.nn.functional.max_pool2d(image, 2).sum().backward()  # stores zeros, for which LLVM knows a function of the C library
print((torch.nn.functional.silu(x).sum() + image.grad.sum()).item(), "llvmlite" in sys.modules)
"""
    environment = {**os.environ, "RETROGRAD_CACHE": str(tmp_path / "kernels")}
    found = [
        subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
        for _ in range(2)
    ]
    (first, cold), (second, warm) = (one.stdout.split() for one in found)
    assert first == second
    assert (cold, warm) == ("True", "False")
