"""`pytest -p retrograd.pytest_torch`: test files that import torch run on retrograd."""

import os
import subprocess
import sys
import textwrap

import pytest

PLUGIN = "retrograd.pytest_torch"
USES_TORCH = """
    import torch
    from torch import nn

    def test_gradient():
        x = torch.ones(2, requires_grad=True)
        nn.Identity()(x).sum().backward()
        assert x.grad.tolist() == [1, 1]
        assert torch.nn.__package__ == "retrograd.nn"
        assert torch.__version__ == "2.13.0"
"""


@pytest.fixture
def project(tmp_path):
    """A folder with test files and a torch of its own that may not be imported; call it to run pytest there."""

    def run(*arguments, files, by=()):
        files = {"forbidden/torch/__init__.py": "raise AssertionError('the installed torch was imported')", **files}
        for name, text in files.items():
            path = tmp_path / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(textwrap.dedent(text))
        own = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST_")}
        search = os.pathsep.join(filter(None, ["forbidden", str(tmp_path), os.environ.get("PYTHONPATH")]))
        return subprocess.run(
            [sys.executable, "-m", *by, "pytest", "-p", "no:cacheprovider", "--rootdir=.", *arguments],
            cwd=tmp_path,
            env=own | {"PYTHONPATH": search, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},  # others take long to load
            capture_output=True,
            text=True,
            timeout=240,
        )

    return run


def test_tests_run_on_retrograd(project):
    ran = project("-p", PLUGIN, files={"test_it.py": USES_TORCH, "conftest.py": "import torch.nn.functional"})
    assert ran.returncode == 0, ran.stdout + ran.stderr
    assert "torch: retrograd, as torch 2.13.0" in ran.stdout


def test_a_conftest_may_name_the_plugin(project):
    ran = project(files={"test_it.py": USES_TORCH, "conftest.py": f"pytest_plugins = [{PLUGIN!r}]"})
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_without_the_plugin_torch_is_torch(project):
    ran = project(files={"test_it.py": USES_TORCH})
    assert "the installed torch was imported" in ran.stdout


def test_workers_of_xdist_run_on_retrograd_from_their_conftest_on(project):
    pytest.importorskip("xdist")
    ran = project("-p", PLUGIN, "-p", "xdist", "-n2", files={"test_it.py": USES_TORCH, "conftest.py": "import torch"})
    assert ran.returncode == 0, ran.stdout + ran.stderr


def test_torch_imported_before_is_a_usage_error(project):
    early = "import sys, types; sys.modules['torch'] = types.ModuleType('torch')"
    ran = project("-p", "early", "-p", PLUGIN, files={"test_it.py": USES_TORCH, "early.py": early})
    assert ran.returncode == pytest.ExitCode.USAGE_ERROR
    assert ran.stderr.startswith(f"ERROR: {PLUGIN}: torch was imported before this plugin"), ran.stderr


def test_plugin_under_retrograd_run(project):
    """`retrograd run -m pytest` has put retrograd in torch's place already."""
    ran = project("-p", PLUGIN, files={"test_it.py": USES_TORCH}, by=("retrograd", "run", "-m"))
    assert ran.returncode == 0, ran.stdout + ran.stderr
