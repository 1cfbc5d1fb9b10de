"""Run mypy and pyright on programs, in an environment that has this package, NumPy, and nothing else."""

from __future__ import annotations

import importlib.util
import json
import os
import re
import subprocess
import sys
import venv
from collections.abc import Callable, Iterable
from pathlib import Path

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent
SOURCE = ROOT / "src"
PROGRAMS = sorted((HERE / "programs").glob("*.py"))
EXAMPLES = sorted((ROOT / "examples").glob("*.py"))
MISTAKES = sorted((HERE / "mistakes").glob("*.py"))
MARK = re.compile(r"# error(: .*)?$")

Errors = set[tuple[str, int]]  # name of the file, line


def environment(folder: Path, *, package: Path | None = None, torch: bool = False) -> Path:
    """Make an environment in an empty folder; the package is the source, or what `package` has unpacked.

    `torch`: an installed torch stands beside it.
    """
    venv.create(folder, with_pip=False, symlinks=os.name != "nt")
    (site,) = (path for path in folder.rglob("site-packages") if path.is_dir())
    for name in ("retrograd", "torch-stubs"):
        (site / name).symlink_to((SOURCE if package is None else package) / name, target_is_directory=True)
    for name in ("numpy", "matplotlib", "tqdm", *(["torch"] if torch else [])):
        found = importlib.util.find_spec(name)
        if found is not None and found.submodule_search_locations:
            (site / name).symlink_to(found.submodule_search_locations[0], target_is_directory=True)
    return folder


def _python(folder: Path) -> Path:
    return folder / ("Scripts" if os.name == "nt" else "bin") / "python"


def _run(command: list[str], folder: Path) -> str:
    alone = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "MYPYPATH")}
    done = subprocess.run(
        [sys.executable, "-m", *command],
        capture_output=True,
        text=True,
        cwd=folder,
        env=alone,
        timeout=600,
        check=False,
    )
    if done.returncode not in (0, 1) or done.stderr.startswith("Traceback"):
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")
    return done.stdout


def mypy(folder: Path, files: Iterable[Path], *, strict: bool = True) -> dict[tuple[str, int], str]:
    """Return what mypy finds, by file and line. Calls of modules return Any, as torch's do, which is no error to pass on."""
    command = ["mypy", "--config-file", os.devnull, "--python-executable", str(_python(folder))]
    command += ["--cache-dir", str(folder / "mypy-cache"), "--no-error-summary", "--output", "json"]
    command += ["--strict", "--no-warn-return-any"] if strict else ["--check-untyped-defs", "--ignore-missing-imports"]
    text = _run([*command, *map(str, files)], folder)
    found = [json.loads(line) for line in text.splitlines()]
    return {(Path(one["file"]).name, one["line"]): one["message"] for one in found if one["severity"] == "error"}


def pyright(folder: Path, files: Iterable[Path], *, strict: bool = True) -> dict[tuple[str, int], str]:
    """Return what pyright finds, by file and line: `standard` is what it does unless told otherwise."""
    settings = folder / "pyrightconfig.json"
    settings.write_text(
        json.dumps({"typeCheckingMode": "standard" if strict else "basic", "extraPaths": [str(ROOT / "examples")]})
    )
    command = ["basedpyright", "--outputjson", "--pythonpath", str(_python(folder)), "--project", str(settings)]
    found = json.loads(_run([*command, *map(str, files)], folder))["generalDiagnostics"]
    return {
        (Path(one["file"]).name, one["range"]["start"]["line"] + 1): one["message"]
        for one in found
        if one["severity"] == "error"
    }


CHECKERS: dict[str, Callable[..., dict[tuple[str, int], str]]] = {"mypy": mypy, "basedpyright": pyright}


def marked() -> Errors:
    """Return the lines of the programs with mistakes that say that they are in error."""
    return {
        (path.name, number)
        for path in MISTAKES
        for number, line in enumerate(path.read_text().splitlines(), 1)
        if MARK.search(line)
    }
