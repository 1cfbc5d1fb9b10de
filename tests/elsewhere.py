"""Run the tests as other machines would: `python -m tests.elsewhere`.

Every disguise makes NumPy and OpenBLAS choose the kernels of another CPU and another number of threads; some have no LLVM, compile for
another CPU, or send the smallest arrays through kernels; some change the order of the tests, what hypothesis draws and the last bits of
factorisations. A test that passes in one and fails in another depends on the last bit of a sum, on what ran before it, or on luck.

    python -m tests.elsewhere                          all disguises, one after the other
    python -m tests.elsewhere --part                   the one that differs most, without LLVM, on a part of the tests
    python -m tests.elsewhere --only prescott          one of them
    python -m tests.elsewhere --seed 7                 repeat what a run has drawn
    python -m tests.elsewhere -- -n 2 -x tests/linalg  what stands after -- goes to pytest
"""

from __future__ import annotations

import argparse
import os
import random
import shlex
import subprocess
import sys
from dataclasses import dataclass

from numpy._core._multiarray_umath import __cpu_dispatch__, __cpu_features__  # type: ignore[attr-defined]

AVX512 = ("AVX512", "X86_V4")  # how the features begin that a CPU with AVX2 lacks, in older and newer builds of NumPy


@dataclass(frozen=True)
class Disguise:
    """Another machine. A kernel is a name that OpenBLAS knows."""

    name: str
    kernel: str
    threads: int
    avx2: bool = False  # whether NumPy may use it; AVX-512 never
    shuffled: bool = False  # whether the order of the tests, the examples of hypothesis and last bits are drawn anew
    native: tuple[tuple[str, str], ...] = ()  # variables for kernels

    def environment(self) -> dict[str, str]:
        threads = str(self.threads)
        return {
            "OPENBLAS_CORETYPE": self.kernel,
            "NPY_DISABLE_CPU_FEATURES": " ".join(disabled(self.avx2)),
            "OMP_NUM_THREADS": threads,
            "OPENBLAS_NUM_THREADS": threads,
            **dict(self.native),
        }

    def arguments(self, seed: int) -> list[str]:
        drawn = ("--order-seed", "--hypothesis-seed", "--noise-seed") if self.shuffled else ()
        return [word for option in drawn for word in (option, str(seed))]


DISGUISES = (
    Disguise("haswell", "Haswell", threads=1, avx2=True, native=(("RETROGRAD_NATIVE_CPU", "haswell"),)),
    Disguise("nehalem", "Nehalem", threads=4, native=(("RETROGRAD_NATIVE_FROM", "1"),)),
    Disguise("prescott", "Prescott", threads=1, shuffled=True, native=(("RETROGRAD_NATIVE", "0"),)),
    Disguise(
        "sandybridge",
        "Sandybridge",
        threads=4,
        avx2=True,
        shuffled=True,
        native=(("RETROGRAD_NATIVE_CPU", "sandybridge,+fma,+f16c"),),
    ),
)
PART = "prescott"
PART_OF_TESTS = ("tests/autograd/test_regions.py", "tests/linalg", "tests/native", "tests/optim", "tests/transforms")


def disabled(avx2: bool) -> list[str]:
    """Name the features that NumPy is to do without: it refuses those of its baseline, and warns of those it has no code for."""
    here = [name for name in __cpu_dispatch__ if __cpu_features__[name]]
    return [name for name in here if name.startswith(AVX512)] if avx2 else here


def run(disguise: Disguise, seed: int, given: list[str]) -> bool:
    """Run pytest in a disguise and say whether all is well."""
    changes = disguise.environment()
    command = [sys.executable, "-m", "pytest", *disguise.arguments(seed), *given]
    words = [f"{name}={shlex.quote(value)}" for name, value in changes.items()]
    print(f"== {disguise.name}: {' '.join(words)} {shlex.join(command)}", flush=True)
    return subprocess.run(command, env=os.environ | changes).returncode == 0


def main() -> int:
    parser = argparse.ArgumentParser(description="Run the tests as other machines would.")
    parser.add_argument("--only", choices=[one.name for one in DISGUISES], help="run in one disguise")
    parser.add_argument("--part", action="store_true", help=f"run {' '.join(PART_OF_TESTS)} in the disguise {PART!r}")
    parser.add_argument("--seed", type=int, help="of the order of the tests, of hypothesis and of last bits")
    parser.add_argument("given", nargs="*", default=["-n", "auto", "-q"], help="arguments of pytest")
    options = parser.parse_args()
    seed = random.randrange(10**6) if options.seed is None else options.seed
    only = PART if options.part else options.only
    given = [*options.given, *(PART_OF_TESTS if options.part else ())]
    chosen = [one for one in DISGUISES if only in (None, one.name)]
    failed = [one.name for one in chosen if not run(one, seed, given)]
    print(
        f"== failed: {', '.join(failed)}" if failed else f"== passed: {', '.join(one.name for one in chosen)}",
        flush=True,
    )
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
