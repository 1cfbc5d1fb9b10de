"""Text to machine code, by LLVM. llvmlite is imported when the first kernel is compiled, which takes 40 ms, and not for cached ones."""

from __future__ import annotations

import ctypes
import os
import sys
import threading
from functools import cache as cache_result
from time import perf_counter_ns, sleep
from typing import Any

import numpy as np
from numpy._core import _multiarray_umath  # type: ignore[attr-defined]

# `cache`, `flat`, hashlib and importlib.util are imported when the first kernel is asked for: `import retrograd` waits for none of them.
lock = threading.RLock()  # LLVM's contexts are not made for several threads at once
_state: _Machine | None = None
_PACKAGE = __name__.partition(".")[0]
_PATIENCE = 400  # turns of 5 ms: a thread that forks while it imports the library itself does not wait for ever


@cache_result
def is_available() -> bool:
    """Tell whether kernels can be compiled here: llvmlite is installed and not switched off by RETROGRAD_NATIVE=0."""
    from importlib.util import find_spec

    if os.environ.get("RETROGRAD_NATIVE") == "0" or find_spec("llvmlite") is None or not _has_instructions():
        return False
    # Kernels read where an array's memory is from the array object itself.
    sample = np.empty(1)
    return ctypes.c_void_p.from_address(id(sample) + object.__basicsize__).value == sample.ctypes.data


def _has_instructions() -> bool:
    """Tell whether an x86 processor, if it is one, has what kernels are made of: fused multiply-adds, conversions of half precision.

    Those of the last decade do. Without them LLVM would call a function for each element.
    """
    known: dict[str, bool] = getattr(_multiarray_umath, "__cpu_features__", {})
    return not known.get("SSE2", False) or (known.get("FMA3", True) and known.get("F16C", True))


@cache_result
def vector_bytes() -> int:
    """Return how wide this processor's vectors are. It is found without loading LLVM."""
    known: dict[str, bool] = getattr(_multiarray_umath, "__cpu_features__", {})
    if (
        not os.environ.get("RETROGRAD_NATIVE_CPU")
        and known.get("AVX512F")
        and known.get("AVX512VL", known.get("AVX512_SKX"))
    ):
        return 64
    return 32 if known.get("AVX2") else 16


@cache_result
def has_pairs() -> bool:
    """Tell whether the processor multiplies pairs of bfloat16 and adds them in float32."""
    if not is_available() or os.environ.get("RETROGRAD_NATIVE_CPU"):
        return False
    return "avx512_bf16" in _processor().split()


class _Machine:
    """LLVM for this processor."""

    def __init__(self) -> None:
        import llvmlite.binding as llvm

        llvm.initialize_native_target()
        llvm.initialize_native_asmprinter()
        self.llvm = llvm
        # Tests name another processor whose instructions this one has, and features behind a comma, to see that results do not lean on
        # this one's.
        self.cpu, _, self.features = os.environ.get("RETROGRAD_NATIVE_CPU", "").partition(",")
        if not self.cpu:
            self.cpu, self.features = llvm.get_host_cpu_name(), llvm.get_host_cpu_features().flatten()
        target = llvm.Target.from_default_triple()
        self.triple = target.triple
        self.target = target.create_target_machine(
            cpu=self.cpu, features=self.features, opt=3, reloc="pic", codemodel="small"
        )
        self.linker: Any = None
        self.libraries: list[Any] = []  # what is linked stays as long as these do

    def optimised(self, text: str, as_it_is: bool = False) -> Any:
        """Parse and optimise a module.

        One that is to stay `as_it_is` says itself what stands in vectors, or has no loop that is worth it: that takes a third of the time.
        """
        llvm = self.llvm
        module = llvm.parse_assembly(f'target triple = "{self.triple}"\n{text}')
        module.verify()
        if as_it_is:
            return module
        options = llvm.create_pipeline_tuning_options(speed_level=3)
        options.loop_vectorization = True
        options.loop_interleaving = True
        options.loop_unrolling = True
        options.slp_vectorization = False
        builder = llvm.create_pass_builder(self.target, options)
        builder.getModulePassManager().run(module, builder)
        return module

    def machine_code(self, text: str, name: str, as_it_is: bool) -> bytes:
        """Compile a module: code in one piece behind the letter F, or an object file behind the letter O."""
        from . import flat

        file = self.target.emit_object(self.optimised(text.replace("KERNEL", name), as_it_is))
        piece = flat.flattened(file, name) if flat.is_possible() else None
        return b"O" + file if piece is None else b"F" + piece

    def link(self, file: bytes, name: str) -> int:
        """Link an object file and return the address of a function."""
        if self.linker is None:
            self.linker = self.llvm.create_lljit_compiler(self.target)
        library = self.llvm.JITLibraryBuilder().add_object_img(file).add_current_process().export_symbol(name)
        linked = library.link(self.linker, name)
        self.libraries.append(linked)
        return linked[name]  # type: ignore[no-any-return]


_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_char_p, ctypes.c_int64, ctypes.c_int64)
_loaded: dict[str, int] = {}


class Made:
    """How many kernels this process has compiled or read from the cache so far, and how long that took; recordings ask."""

    compiled = read = nanoseconds = 0


def _llvm() -> _Machine:
    global _state
    if _state is None:
        _state = _Machine()
    return _state


@cache_result
def _identity() -> str:
    """Return what compiled code depends on beside its text: LLVM, how it is called, this processor. LLVM is not loaded for it."""
    import hashlib
    from importlib.util import find_spec
    from pathlib import Path

    from . import flat

    own = hashlib.sha256(b"".join(Path(file).read_bytes() for file in (__file__, flat.__file__))).hexdigest()
    found = find_spec("llvmlite")
    package = ((found and found.submodule_search_locations) or [""])[0]
    files = sorted(os.scandir(os.path.join(package, "binding")), key=lambda entry: entry.name)
    version = [
        (entry.name, entry.stat().st_size, entry.stat().st_mtime_ns) for entry in files if "llvmlite" in entry.name
    ]
    processor = _processor() or f"{_llvm().cpu} {_llvm().features}"
    # which asks the processor itself: an emulator may have less than the system says
    known = [name for name, has in getattr(_multiarray_umath, "__cpu_features__", {}).items() if has]
    return f"{own} {version} {sys.platform} {processor} {known} {os.environ.get('RETROGRAD_NATIVE_CPU')}"


@cache_result
def _processor() -> str:
    """Return what the system says about the processor; nothing where it does not tell."""
    try:
        with open("/proc/cpuinfo") as file:
            first = file.read(8192).split("\n\n")[0].splitlines()
    except OSError:
        return ""
    words = ("model", "vendor", "flags", "Features", "features", "facilities", "CPU", "isa")
    return " ".join(line for line in first if line.startswith(words))


def address(text: str, as_it_is: bool = False) -> int:
    """Return the address of the function of a module's text, in which its name stands as KERNEL; see `_Machine.optimised`."""
    import hashlib

    from . import cache, flat

    with lock:
        started = perf_counter_ns()
        digest = hashlib.sha256(f"{_identity()}\n{'as it is' * as_it_is}\n{text}".encode()).hexdigest()
        found = _loaded.get(digest)
        if found is None:
            name = f"kernel_{digest[:32]}"
            code = cache.read(digest)
            if code is None or code[:1] not in ((b"F", b"O") if flat.is_possible() else (b"O",)):
                code = _llvm().machine_code(text, name, as_it_is)
                cache.write(digest, code)
                Made.compiled += 1
            else:
                Made.read += 1
            found = flat.load(code[1:]) if code[:1] == b"F" else _llvm().link(code[1:], name)
            _loaded[digest] = found
            Made.nanoseconds += perf_counter_ns() - started
        return found


@cache_result
def _callable(address: int) -> Any:
    found = _SIGNATURE(address)
    found.address = address  # type: ignore[attr-defined]
    return found


def compiled(text: str, as_it_is: bool = False) -> Any:
    """Return the C function of a module's text, in which its name stands as KERNEL; see `_Machine.optimised`."""
    return _callable(address(text, as_it_is))


def assembly(text: str) -> str:
    """Return what a module's text comes to on this processor, to be read."""
    with lock:
        return _llvm().target.emit_assembly(_llvm().optimised(text))  # type: ignore[no-any-return]


def _hold() -> None:
    """Wait until no thread compiles or imports a part of the library: in the child nobody would go on, and others wait for it."""
    lock.acquire()
    for _ in range(_PATIENCE):
        if not any(_is_coming(name) for name in list(sys.modules)):
            break
        lock.release()  # what is imported may need it
        sleep(0.005)
        lock.acquire()


def _is_coming(name: str) -> bool:
    """Tell whether a module is being imported."""
    if not name.startswith((_PACKAGE, "llvmlite")):
        return False
    return getattr(getattr(sys.modules.get(name), "__spec__", None), "_initializing", False)


def _release() -> None:
    lock.release()


if hasattr(os, "register_at_fork"):
    # A child that is forked while another thread compiles finds the lock free and LLVM at rest, and no module half imported.
    os.register_at_fork(before=_hold, after_in_parent=_release, after_in_child=_release)
