"""`retrograd run`: a program cannot tell it from `python`, except that `import torch` gives retrograd."""

import multiprocessing
import os
import re
import subprocess
import sys
import textwrap
import zipfile
from pathlib import Path

import pytest

PYTHON = [sys.executable]
RETROGRAD = [sys.executable, "-m", "retrograd"]
RETROGRAD_RUN = [*RETROGRAD, "run"]


@pytest.fixture
def folder(tmp_path):
    """Where the test's programs lie, and where they run."""
    return tmp_path


@pytest.fixture
def call(folder):
    """Run a command line in `folder`; a torch that may not be imported lies in its path."""
    forbidden = folder / "forbidden"
    (forbidden / "torch").mkdir(parents=True)
    (forbidden / "torch" / "__init__.py").write_text("raise AssertionError('the installed torch was imported')")
    (forbidden / "torch" / "only_theirs.py").write_text("")
    path = os.pathsep.join(filter(None, [str(forbidden), os.environ.get("PYTHONPATH")]))

    def call(*command, cwd=folder):
        return subprocess.run(
            [str(part) for part in command],
            cwd=cwd,
            env=os.environ | {"PYTHONPATH": path},
            capture_output=True,
            text=True,
            timeout=240,
        )

    return call


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(textwrap.dedent(text))
    return path


def exit_and_output(finished):
    return finished.returncode, finished.stdout, finished.stderr


SURROUNDINGS = """
    import sys
    print(sys.argv)
    print(sys.path[0])
    print(__name__, __file__, __package__)
    print(getattr(__spec__, "name", None), type(__loader__).__name__, type(__builtins__).__name__)
    print(sys.modules["__main__"].__dict__ is globals())
"""


@pytest.mark.parametrize("arguments", [[], ["a", "b c"], ["-m", "x"], ["-h"], ["--", "--version"]], ids=str)
def test_script_sees_what_python_shows(call, folder, arguments):
    write(folder / "sub" / "program.py", SURROUNDINGS)
    ours = call(*RETROGRAD_RUN, "sub/program.py", *arguments)
    assert exit_and_output(ours) == exit_and_output(call(*PYTHON, "sub/program.py", *arguments))
    assert ours.returncode == 0


@pytest.mark.parametrize("name", ["module", "package", "package.module"])
def test_module_sees_what_python_shows(call, folder, name):
    for path in ["module.py", "package/__main__.py", "package/module.py"]:
        write(folder / path, SURROUNDINGS)
    ours = call(*RETROGRAD_RUN, "-m", name, "-m", "--flag")
    assert exit_and_output(ours) == exit_and_output(call(*PYTHON, "-m", name, "-m", "--flag"))
    assert ours.returncode == 0


@pytest.mark.parametrize("code", ["import sys; print(sys.argv, sys.path[0], __name__, __spec__)", "1 / 0", "x ="])
def test_code_on_the_command_line(call, code):
    assert exit_and_output(call(*RETROGRAD_RUN, "-c", code, "-m", "x")) == exit_and_output(
        call(*PYTHON, "-c", code, "-m", "x")
    )


def test_program_from_stdin(folder):
    source = "import sys, torch; print(sys.argv, repr(sys.path[0]), __name__, torch.nn.__package__)"
    ran = subprocess.run(
        [*RETROGRAD_RUN, "-", "a"], input=source, cwd=folder, capture_output=True, text=True, timeout=240, check=True
    )
    assert ran.stdout == "['-', 'a'] '' __main__ retrograd.nn\n"


def test_module_of_torch_runs_by_name(call):
    ran = call(*RETROGRAD_RUN, "-m", "torch.utils.collect_env")
    assert (ran.returncode, ran.stderr) == (0, "")
    assert ran.stdout.startswith("PyTorch version: 2.13.0\nretrograd version: ")


def test_folder_and_zip_file_run_their_main(call, folder):
    main = write(folder / "app" / "__main__.py", SURROUNDINGS)
    with zipfile.ZipFile(folder / "app.zip", "w") as archive:
        archive.write(main, "__main__.py")
    for path in ["app", "app.zip"]:
        ours = call(*RETROGRAD_RUN, path, "argument")
        assert exit_and_output(ours) == exit_and_output(call(*PYTHON, path, "argument"))
        assert ours.returncode == 0


def test_script_imports_its_neighbours_through_a_symbolic_link(call, folder):
    write(folder / "real" / "neighbour.py", "name = 'found'")
    program = write(folder / "real" / "program.py", "import neighbour; print(neighbour.name)")
    link = folder / "link.py"
    link.symlink_to(program)
    assert call(*RETROGRAD_RUN, link).stdout == "found\n"


ENDINGS = {
    "falls off the end": "print('done')",
    "exit without status": "import sys; sys.exit()",
    "exit with a number": "import sys; sys.exit(3)",
    "exit with a text": "import sys; sys.exit('no luck')",
    "exception": "def f():\n    raise ValueError('wrong')\nf()",
    "chained exception": "try:\n    1 / 0\nexcept Exception as e:\n    raise ValueError('wrong') from e",
    "keyboard interrupt": "raise KeyboardInterrupt",
    "syntax error": "print('never')\nx = = 1",
    "failing import": "import broken",
    "excepthook of its own": (
        "import sys, traceback as t\n"
        "sys.excepthook = lambda kind, error, tb: print(kind, len(t.extract_tb(error.__traceback__)))\n"
        "raise ValueError('wrong')"
    ),
    "work at exit": "import atexit, sys\natexit.register(print, 'last words')\nsys.exit(4)",
}


@pytest.mark.parametrize("source", ENDINGS.values(), ids=ENDINGS)
def test_script_ends_as_under_python(call, folder, source):
    """Same status, same output, same traceback to the letter: so none of the runner's own frames."""
    write(folder / "broken.py", "x = = 1")
    write(folder / "program.py", source)
    assert exit_and_output(call(*RETROGRAD_RUN, "program.py")) == exit_and_output(call(*PYTHON, "program.py"))


def test_traceback_of_a_module_begins_in_the_module(call, folder):
    path = write(folder / "module.py", "raise ValueError('wrong')")
    ours = call(*RETROGRAD_RUN, "-m", "module")
    header, first_frame, *_ = ours.stderr.splitlines()
    assert header == "Traceback (most recent call last):"
    assert first_frame == f'  File "{path}", line 1, in <module>'
    assert ours.stderr.endswith("ValueError: wrong\n")
    assert ours.returncode == 1


def test_missing_script_is_reported_as_by_python(call, folder):
    ours, theirs = call(*RETROGRAD_RUN, "missing.py"), call(*PYTHON, "missing.py")
    assert ours.returncode == theirs.returncode == 2
    assert ours.stderr.partition(": ")[2] == theirs.stderr.partition(": ")[2]


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("missing", "No module named missing"),
        ("missing.part", "No module named missing.part"),
        (
            "package",
            "No module named package.__main__; 'package' is a package and cannot be directly executed",
        ),
    ],
)
def test_missing_module_is_named(call, folder, name, message):
    write(folder / "package" / "__init__.py", "")
    ours = call(*RETROGRAD_RUN, "-m", name)
    assert exit_and_output(ours) == (1, "", f"retrograd run: {message}\n")


def test_import_error_inside_a_parent_package_is_not_hidden(call, folder):
    write(folder / "package" / "__init__.py", "import missing")
    write(folder / "package" / "__main__.py", "")
    ours = call(*RETROGRAD_RUN, "-m", "package.__main__")
    assert ours.stderr.endswith("ModuleNotFoundError: No module named 'missing'\n")
    assert ours.returncode == 1


FIRST = [  # what a program imports first decides how it is found
    "import torch, retrograd; assert torch is retrograd",
    "import torch.autograd, retrograd; assert torch.autograd is retrograd.autograd",
    "import sys, torch.autograd; m = sys.modules; assert m['torch.autograd'] is m['retrograd.autograd']",
    "import torch.autograd as a, retrograd.autograd as b; assert a is b",
    "from torch import autograd as a; import retrograd.autograd as b; assert a is b",
    "import torch.nn.functional, sys; assert sys.modules['torch.nn.functional'] is torch.nn.functional",
    "import importlib.util; assert importlib.util.find_spec('torch.autograd') is not None",
    "import torch.nn as nn, torch.nn.functional as F, retrograd; assert nn.functional is F is retrograd.nn.functional",
    "from torch.optim.lr_scheduler import StepLR; import torch; assert torch.optim.lr_scheduler.StepLR is StepLR",
    "from torch.nn.modules.utils import _pair; assert _pair(3) == (3, 3)",
]
FACTS = [
    "import sys, torch, retrograd; assert sys.modules['torch'] is retrograd",
    "import torch.autograd; assert torch.autograd.__spec__.name == torch.autograd.__name__ == 'torch.autograd'",
    "import torch; assert torch.__name__ == torch.__spec__.name == 'torch' and repr(torch.nn).startswith(\"<module 'torch.nn' from \")",
    "import torch, sys; assert torch.optim.SGD.__module__ in sys.modules and sys.modules['torch.optim'] is torch.optim",
    "import torch.nn as n, inspect; assert inspect.getsource(n.Linear).startswith('class Linear(')",
    "import torch.nn as n, inspect; assert inspect.getmodule(n.Linear).__name__ == 'torch.nn.modules.linear'",
    "import torch.nn as n, typing; assert typing.get_type_hints(n.Linear)['training'] is bool",
    "import torch.nn as n, typing; assert typing.get_type_hints(n.Linear.__init__)['in_features'] is int",
    "import torch.optim as o, typing; assert typing.get_type_hints(o.SGD.__init__)['params'] == o.optimizer.ParamsT",
    "import importlib, torch.nn.utils.prune as p; q = importlib.reload(p); assert q is p and p.__name__ == 'torch.nn.utils.prune'",
    "import torch.nn.utils.prune as p, sys; assert sys.modules['retrograd.nn.utils.prune'] is p",
    "import importlib.util; assert importlib.util.find_spec('torch') is not None",
    "import importlib.util; assert importlib.util.find_spec('torch.only_theirs') is None",
    "import importlib.metadata as m; assert m.version('torch') == '2.13.0'",
    "import importlib.metadata as m; assert m.distribution('torch').metadata['Name'] == 'torch'",
    "import importlib.metadata as m; assert 'torch' in m.packages_distributions()['torch']",
    "from torch import nn, Tensor; import retrograd; assert nn is retrograd.nn and Tensor is retrograd.Tensor",
    "from torch.utils.data import DataLoader; import torch; assert torch.utils.data.DataLoader is DataLoader",
    "import torch; assert torch.__version__ == '2.13.0'",
    "import torch; assert type(torch.ones(1)).__module__ == 'torch' and torch.Size.__module__ == torch.dtype.__module__ == 'torch'",
    "import torch; assert repr(torch.nn.Linear) == \"<class 'torch.nn.modules.linear.Linear'>\"",
    "import torch, pickle; m = pickle.loads(pickle.dumps(torch.nn.Linear(1, 1))); assert type(m) is torch.nn.Linear",
    "import torch; assert isinstance(torch.__version__, str)",
    "import torch; assert torch.__version__ >= '2.2' and torch.__version__ < (3,)",
]
FORKING = """
import os, traceback
for source in {sources}:
    if not (child := os.fork()):
        try:
            exec(source, {{"__name__": "__main__"}})
        except BaseException:
            traceback.print_exc()
        os._exit(0)
    os.waitpid(child, 0)
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="forks a process for each program")
def test_torch_is_retrograd_however_it_is_imported_first(call, folder):
    write(folder / "program.py", FORKING.format(sources=FIRST))
    assert exit_and_output(call(*RETROGRAD_RUN, "program.py")) == (0, "", "")


def test_torch_is_retrograd(call, folder):
    write(folder / "program.py", "\n".join(FACTS))
    assert exit_and_output(call(*RETROGRAD_RUN, "program.py")) == (0, "", "")


@pytest.mark.parametrize(
    "source",
    [
        b'import sys\nprint("caf\xe9")\n',
        b'x = 1\n"""\n\ncaf\xe9"""\n',
        b'# coding: ascii\nprint("caf\xe9")\n',
        b"# coding: nonsense\nprint(1)\n",
        b'\xef\xbb\xbfprint("caf\xe9")\n',
        b'# -*- coding: latin-1 -*-\nprint(len("caf\xe9"))\n',
    ],
)
def test_an_encoding_is_read_as_python_reads_it(call, folder, source):
    (folder / "program.py").write_bytes(source)
    assert exit_and_output(call(*RETROGRAD_RUN, "program.py")) == exit_and_output(call(*PYTHON, "program.py"))


@pytest.mark.parametrize(
    ("home", "name"), [("torch.nn", "Nothing"), ("torch", "optimm"), ("torch.optim.sgd", "Nothing")]
)
def test_a_name_that_cannot_be_imported_is_told_by_torchs_name(call, folder, home, name):
    write(folder / "program.py", f"from {home} import {name}")
    last_line = call(*RETROGRAD_RUN, "program.py").stderr.splitlines()[-1]
    assert last_line.startswith(f"ImportError: cannot import name {name!r} from {home!r} (")


def test_names_are_ours_again_after_the_block(call, folder):
    write(
        folder / "program.py",
        """
        import retrograd
        with retrograd.as_torch():
            import torch.nn.functional
            assert torch.nn.__name__ == "torch.nn" and torch.nn.Linear.__module__ == "torch.nn.modules.linear"
        import sys
        assert retrograd.__name__ == retrograd.__spec__.name == "retrograd"
        assert retrograd.nn.__name__ == retrograd.nn.__spec__.name == "retrograd.nn"
        assert not [name for name in sys.modules if name.split(".")[0] == "torch"]
        with retrograd.as_torch():
            assert sys.modules["torch.nn"] is retrograd.nn and retrograd.nn.__name__ == "torch.nn"
        """,
    )
    assert exit_and_output(call(*PYTHON, "-W", "error", "program.py")) == (0, "", "")


@pytest.mark.parametrize("name", ["torch.only_theirs", "torch.autograd.missing", "torch._core", "torch.cli"])
def test_submodule_without_counterpart_is_named(call, folder, name):
    write(folder / "program.py", f"import {name}")
    ours = call(*RETROGRAD_RUN, "program.py")
    last_line = ours.stderr.splitlines()[-1]
    assert re.match(rf"ModuleNotFoundError: No module named {name!r} \(\w+ does not have it", last_line)
    assert ours.returncode == 1


def test_libraries_that_a_script_imports_get_retrograd_too(call, folder):
    """Whatever form their import has, and however late it comes."""
    write(folder / "library" / "__init__.py", "from .layers import Twice\nfrom .late import ones")
    write(
        folder / "library" / "layers.py",
        """
        import torch.nn as nn
        from torch import Tensor

        class Twice(nn.Module):
            def forward(self, x: Tensor) -> Tensor:
                return 2 * x
        """,
    )
    write(
        folder / "library" / "late.py",
        """
        def ones():
            import importlib
            return importlib.import_module("torch").ones(2)
        """,
    )
    write(folder / "program.py", "import library; print(library.Twice()(library.ones()).tolist())")
    assert exit_and_output(call(*RETROGRAD_RUN, "program.py")) == (0, "[2.0, 2.0]\n", "")


@pytest.mark.parametrize("method", sorted({"spawn", "forkserver"} & set(multiprocessing.get_all_start_methods())))
@pytest.mark.parametrize(
    ("command", "first"),
    [
        (RETROGRAD_RUN, "import multiprocessing"),
        (PYTHON, "import multiprocessing.spawn, retrograd; retrograd.as_torch()"),
    ],
    ids=["by the command", "by as_torch"],
)
def test_processes_of_multiprocessing_get_retrograd_too(call, folder, method, command, first):
    program = write(
        folder / "program.py",
        f"""
        {first}
        import torch  # in the child as well, which imports the program

        def name_of_torch(_):
            return torch.__package__, str(torch.__version__)

        if __name__ == "__main__":
            with multiprocessing.get_context({method!r}).Pool(1) as pool:
                print(*pool.map(name_of_torch, [0]))
        """,
    )
    assert exit_and_output(call(*command, program)) == (0, "('retrograd', '2.13.0')\n", "")


def test_empty_script_says_nothing(call, folder):
    assert exit_and_output(call(*RETROGRAD_RUN, write(folder / "program.py", ""))) == (0, "", "")


def test_context_manager_gives_the_name_back(call, folder):
    write(
        folder / "program.py",
        """
        import sys, types
        import retrograd
        from retrograd._as_torch import as_torch

        own_version, theirs = retrograd.__version__, types.ModuleType("torch")
        sys.modules["torch"] = theirs
        with as_torch():
            import torch
            import torch.autograd
            assert torch is retrograd
            with as_torch():
                pass
            import torch.autograd  # the inner block ended, the outer one has not
            assert sys.modules["torch"] is retrograd
        assert sys.modules["torch"] is theirs
        assert "torch.autograd" not in sys.modules
        assert retrograd.__version__ == own_version

        as_torch()
        import torch
        assert torch is retrograd
        """,
    )
    assert exit_and_output(call(*PYTHON, "program.py")) == (0, "", "")


def test_command_line_mistakes_show_the_usage(call):
    for command in [[], ["run"], ["run", "-m"], ["run", "--unknown"]]:
        ours = call(*RETROGRAD, *command)
        assert ours.returncode == 2
        assert ours.stderr.startswith("usage: retrograd")


def test_installed_command_is_the_module(call, folder):
    installed = Path(sys.executable).with_name("retrograd")
    if not installed.exists():
        pytest.skip("the package is on the path, but not installed")
    write(folder / "program.py", SURROUNDINGS)
    ours = call(installed, "run", "program.py", "argument")
    assert exit_and_output(ours) == exit_and_output(call(*PYTHON, "program.py", "argument"))
