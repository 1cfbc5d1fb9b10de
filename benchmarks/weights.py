"""How many megabytes an installation takes: each dependency of retrograd as it lies on disk, and torch beside them.

python benchmarks/weights.py
"""

from __future__ import annotations

import re
import tomllib
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

ROOT = Path(__file__).parent.parent
# What a program would lack without it.
USES = {
    "numpy": "arrays, BLAS, LAPACK",
    "scipy": "special functions, factorisations, FFT",
    "llvmlite": "native kernels; without it NumPy does it all",
    "ml_dtypes": "bfloat16 and float8",
    "opt_einsum": "the order of products in `einsum`",
    "threadpoolctl": "`set_num_threads`",
}


def dependencies() -> list[str]:
    """Return the packages that retrograd cannot be installed without."""
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["dependencies"]
    return [re.match(r"[\w.-]+", one)[0] for one in declared]  # type: ignore[index]


def megabytes(package: str) -> float:
    """Return the size of a package's files, without bytecode, which Python makes again."""
    files = [file.locate() for file in distribution(package).files or [] if file.suffix != ".pyc"]
    return sum(Path(str(path)).stat().st_size for path in files if Path(str(path)).is_file()) / 1e6


def own_megabytes() -> float:
    """Return the size of what the wheel holds."""
    files = [path for folder in ("retrograd", "torch-stubs") for path in (ROOT / "src" / folder).rglob("*")]
    return sum(path.stat().st_size for path in files if path.is_file() and path.suffix != ".pyc") / 1e6


def main() -> None:
    weights = {name: megabytes(name) for name in dependencies()}
    weights = dict(sorted(weights.items(), key=lambda one: -one[1]))
    own = own_megabytes()
    print("| package | MB | for |\n|---|---|---|")
    for name, size in weights.items():
        print(f"| {name} {distribution(name).version} | {size:.1f} | {USES.get(name, '')} |")
    print(f"| retrograd | {own:.1f} | |")
    print(f"| together | {own + sum(weights.values()):.0f} | |")
    with suppress(PackageNotFoundError):
        print(f"| for comparison: torch {distribution('torch').version} alone | {megabytes('torch'):.0f} | |")


if __name__ == "__main__":
    main()
