"""Build the wheel and let mypy and pyright check programs where it is installed: python -m tests.type_checking."""

from __future__ import annotations

import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path

from tests.type_checking.checking import CHECKERS, EXAMPLES, MISTAKES, PROGRAMS, ROOT, environment, marked

PARTS = ("retrograd/py.typed", "retrograd/__init__.pyi", "retrograd/tensor/_methods.pyi", "torch-stubs/__init__.pyi")


def unpacked_wheel(folder: Path) -> Path:
    """Build the wheel as a release is built, and unpack it."""
    command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "--quiet", "wheel", "--no-deps"]
    subprocess.run([*command, "--wheel-dir", str(folder), str(ROOT)], check=True)
    (wheel,) = folder.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        missing = [part for part in PARTS if part not in archive.namelist()]
        if missing:
            raise SystemExit(f"{wheel.name} lacks {', '.join(missing)}")
        archive.extractall(folder / "unpacked")
    return folder / "unpacked"


def main() -> int:
    with tempfile.TemporaryDirectory() as name:
        folder = environment(Path(name) / "environment", package=unpacked_wheel(Path(name)))
        failed = False
        for checker, check in CHECKERS.items():
            unexpected = check(folder, PROGRAMS) | check(folder, EXAMPLES, strict=False)
            found = check(folder, MISTAKES)
            unexpected |= {place: text for place, text in found.items() if place not in marked()}
            unseen = marked() - found.keys()
            for (file, line), text in sorted(unexpected.items()):
                print(f"{checker}: {file}:{line}: {text}")
            for file, line in sorted(unseen):
                print(f"{checker}: {file}:{line}: no error is found here")
            print(
                f"{checker}: {len(PROGRAMS)} programs, {len(EXAMPLES)} examples, {len(found)} of {len(marked())} mistakes"
            )
            failed = failed or bool(unexpected or unseen)
    return failed


if __name__ == "__main__":
    raise SystemExit(main())
