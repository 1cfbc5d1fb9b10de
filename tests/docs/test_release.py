"""What a release is made of: the source distribution is complete, hosted CI runs what everybody runs, the version stands in one place."""

from __future__ import annotations

import re
import subprocess
import tomllib
from pathlib import Path

import pytest

import retrograd

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())
ALWAYS = {"pyproject.toml", "README.md", "LICENSE"}  # what hatchling takes along by itself


def tracked() -> list[str]:
    done = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("this is no checkout")
    return done.stdout.splitlines()


def test_the_source_distribution_has_everything_that_is_tracked():
    included = [path.removeprefix("/") for path in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]]
    assert [path for path in included if not (ROOT / path).exists()] == []
    left_out = [
        path
        for path in tracked()
        if path not in ALWAYS and not any(path == one or path.startswith(f"{one}/") for one in included)
    ]
    assert left_out == []


def test_the_version_is_read_from_the_package():
    assert PROJECT["project"]["dynamic"] == ["version"]
    assert PROJECT["tool"]["hatch"]["version"]["path"] == "src/retrograd/__init__.py"
    assert re.fullmatch(r"\d+\.\d+\.\d+", retrograd.__version__)


def test_hosted_ci_runs_what_everybody_runs():
    workflow = (ROOT / ".github" / "workflows" / "ci.yml").read_text()
    assert "- run: .ci/run\n" in workflow
    versions = re.findall(r"Python :: (3\.\d+)", "\n".join(PROJECT["project"]["classifiers"]))
    assert set(re.findall(r'"(3\.\d+)"', workflow)) == set(versions)


def test_the_workflow_is_well_formed_and_its_commands_exist():
    yaml = pytest.importorskip("yaml", reason="pre-commit brings PyYAML")
    workflow = yaml.safe_load((ROOT / ".github" / "workflows" / "ci.yml").read_text())
    assert workflow[True].keys() == {"push", "pull_request"}  # YAML reads `on` as a truth value
    targets = set(re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    steps = [step for job in workflow["jobs"].values() for step in job["steps"]]
    for step in steps:
        assert "uses" in step or "run" in step
        assert re.fullmatch(r"[\w-]+/[\w-]+@v\d+", step.get("uses", "actions/checkout@v4"))
    commands = [step["run"] for step in steps if "run" in step]
    commands += [line for line in (ROOT / ".ci" / "run").read_text().splitlines() if line.startswith("make ")]
    for command in commands:
        program, *words = command.split()
        assert (ROOT / program).stat().st_mode & 0o100 if program != "make" else words[0] in targets, command
    matrix = workflow["jobs"]["tests"]["strategy"]["matrix"]["python"]
    assert matrix == [str(version) for version in matrix]  # 3.10 without quotes would be 3.1


def test_no_address_of_the_project_is_made_up():
    """There is no public home yet: see docs/release.md. `names` are those under which one would be invented."""
    names = re.compile(
        r"[\w./-]*(?:retrograd\.(?:readthedocs|github|org|dev|io)|(?:github|gitlab)\.com/retrograd|pypi\.org/project/retrograd)\b[\w./-]*"
    )
    files = [
        path
        for path in tracked()
        if path.endswith((".md", ".toml", ".py", ".yml", ".html")) and path != "tests/docs/test_release.py"
    ]
    found = {path: names.findall((ROOT / path).read_text()) for path in files}
    assert {path: some for path, some in found.items() if some} == {}
    assert "urls" not in PROJECT["project"]


def test_no_document_installs_from_an_index():
    """The package is on none: whoever took its name there would be installed."""
    found = {
        path: lines
        for path in tracked()
        if path.endswith(".md")
        and (lines := re.findall(r"pip install (?:\S+ )*['\"]?retrograd(?![\w/.-]).*", (ROOT / path).read_text()))
    }
    assert found == {}


def test_it_is_said_where_to_report():
    told = (ROOT / "SECURITY.md").read_text()
    assert "git remote get-url origin" in told
    assert "(SECURITY.md)" in (ROOT / "README.md").read_text()
    assert "(SECURITY.md)" in (ROOT / "CONTRIBUTING.md").read_text()


def test_the_weight_of_every_dependency_is_told():
    """`python benchmarks/weights.py` prints the table."""
    needed = {re.match(r"[\w.-]+", one)[0] for one in PROJECT["project"]["dependencies"]}
    table = (ROOT / "README.md").read_text().partition("## What it weighs")[2].partition("## ")[0]
    assert set(re.findall(r"^\| (\w+) [\d.]+ \| ", table, re.MULTILINE)) == needed
