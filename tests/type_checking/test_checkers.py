"""mypy and pyright on programs that say `import torch`: no error where there is none, and those that there are."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.type_checking.checking import CHECKERS, EXAMPLES, MISTAKES, PROGRAMS, SOURCE, environment, marked

pytestmark = [pytest.mark.slow, pytest.mark.skipif(sys.platform == "win32", reason="environments are made of links")]


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return environment(tmp_path_factory.mktemp("environment"))


@pytest.mark.parametrize("name", CHECKERS)
def test_programs_have_no_errors(name: str, folder: Path) -> None:
    pytest.importorskip(name)
    assert len(PROGRAMS) >= 20
    assert CHECKERS[name](folder, PROGRAMS) == {}


@pytest.mark.parametrize("name", CHECKERS)
def test_examples_have_no_errors(name: str, folder: Path) -> None:
    pytest.importorskip(name)
    assert CHECKERS[name](folder, EXAMPLES, strict=False) == {}


@pytest.mark.parametrize("name", CHECKERS)
def test_mistakes_are_found_and_nothing_else(name: str, folder: Path) -> None:
    pytest.importorskip(name)
    found = CHECKERS[name](folder, MISTAKES)
    assert {place: text for place, text in found.items() if place not in marked()} == {}
    assert marked() - found.keys() == set()


BESIDE = """
from typing import assert_type

import torch
from torch.package.package_exporter import PackageExporter

assert_type(torch.zeros(3).sum(), torch.Tensor)
with PackageExporter("file") as exporter:
    exporter.save_pickle("folder", "name", torch.zeros(3))
"""


@pytest.mark.oracle
@pytest.mark.parametrize("name", CHECKERS)
def test_modules_that_only_torch_has_are_read_from_it(name: str, tmp_path: Path) -> None:
    pytest.importorskip(name)
    pytest.importorskip("torch")
    assert not (SOURCE / "torch-stubs" / "package").exists()
    program = tmp_path / "program.py"
    program.write_text(BESIDE)
    assert CHECKERS[name](environment(tmp_path / "environment", torch=True), [program]) == {}
