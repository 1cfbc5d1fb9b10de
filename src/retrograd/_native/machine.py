"""Text to machine code, by LLVM. llvmlite is imported when the first kernel is made: that takes 40 ms."""

from __future__ import annotations

import ctypes
import hashlib
import os
import threading
from functools import cache as cache_result
from importlib.util import find_spec
from typing import Any

import numpy as np

from . import cache

lock = threading.RLock()  # LLVM's contexts are not made for several threads at once
_state: Any = None


@cache_result
def is_available() -> bool:
    """Tell whether kernels can be compiled here: llvmlite is installed and not switched off by RETROGRAD_NATIVE=0."""
    if os.environ.get("RETROGRAD_NATIVE") == "0" or find_spec("llvmlite") is None or not _has_instructions():
        return False
    # Kernels read where an array's memory is from the array object itself.
    sample = np.empty(1)
    return ctypes.c_void_p.from_address(id(sample) + object.__basicsize__).value == sample.ctypes.data


def _has_instructions() -> bool:
    """Tell whether an x86 processor, if it is one, has what kernels are made of: fused multiply-adds, conversions of half precision.

    Those of the last decade do. Without them LLVM would call a function for each element.
    """
    known: dict[str, bool] = getattr(np._core._multiarray_umath, "__cpu_features__", {})
    return not known.get("SSE2", False) or (known.get("FMA3", True) and known.get("F16C", True))


class _Machine:
    """LLVM for this processor."""

    def __init__(self) -> None:
        import llvmlite
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        # Tests name another processor whose instructions this one has, to see that results do not lean on this one's.
        self.cpu = os.environ.get("RETROGRAD_NATIVE_CPU") or llvm.get_host_cpu_name()
        self.features = "" if "RETROGRAD_NATIVE_CPU" in os.environ else llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        self.triple = target.triple
        self.target = target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="jitdefault", jit=True
        )
        self.key = f"{llvmlite.__version__} {llvm.llvm_version_info} {self.triple} {self.cpu} {self.features}"
        self.linker = llvm.create_lljit_compiler(self.target)
        self.libraries: list[Any] = []  # what is loaded stays as long as these do

    def optimised(self, text: str) -> Any:
        """Parse and optimise a module."""
        llvm = self.llvm
        module = llvm.parse_assembly(f'target triple = "{self.triple}"\n{text}')
        module.verify()
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.loop_interleaving = True
        options.loop_unrolling = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(self.target, options)
        builder.getModulePassManager().run(module, builder)
        return module

    def load(self, code: bytes, name: str) -> int:
        """Load an object file and return the address of a function."""
        library = self.llvm.JITLibraryBuilder().add_object_img(code).add_current_process().export_symbol(name)
        loaded = library.link(self.linker, name)
        self.libraries.append(loaded)
        return loaded[name]  # type: ignore[no-any-return]


_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_loaded: dict[str, Any] = {}


def compiled(text: str) -> Any:
    """Return the C function of a module's text, in which its name stands as KERNEL."""
    global _state
    with lock:
        if _state is None:
            _state = _Machine()
        digest = hashlib.sha256(f"{_state.key}\n{text}".encode()).hexdigest()
        found = _loaded.get(digest)
        if found is None:
            name = f"kernel_{digest[:32]}"
            code = cache.read(digest)
            if code is None:
                code = _state.target.emit_object(_state.optimised(text.replace("KERNEL", name)))
                cache.write(digest, code)
            found = _loaded[digest] = _SIGNATURE(_state.load(code, name))
        return found


def assembly(text: str) -> str:
    """Return what a module's text comes to on this processor, to be read."""
    global _state
    with lock:
        if _state is None:
            _state = _Machine()
        return _state.target.emit_assembly(_state.optimised(text))  # type: ignore[no-any-return]


def _hold() -> None:
    lock.acquire()


def _release() -> None:
    lock.release()


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles finds the lock free and LLVM at rest.
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
