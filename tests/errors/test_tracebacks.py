"""Tracebacks of errors have the lines of the program, not those of the library. See Note [Tracebacks]."""

from __future__ import annotations

import io
import logging
import subprocess
import sys
import traceback
import types
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd import _tracebacks, debug, nn
from retrograd._places import is_own
from retrograd.overrides import TorchFunctionMode
from retrograd.utils.data import DataLoader

PACKAGE = str(Path(torch.__file__).parent)


def raised(call: Callable[[], Any]) -> Exception:
    with pytest.raises(Exception) as caught:  # noqa: PT011 - what is raised is not the question
        call()
    return caught.value


def names(error: BaseException) -> list[str]:
    """Return the functions in a traceback, in the order of calls, without those of this file that run a test."""
    found = [frame.f_code.co_name for frame, _ in traceback.walk_tb(error.__traceback__)]
    return found[1:] if found[:1] == ["raised"] else found


def own(error: BaseException) -> int:
    return sum(is_own(frame.f_code.co_filename) for frame, _ in traceback.walk_tb(error.__traceback__))


x = torch.ones(2, 3)
CALLS: dict[str, Callable[[], Any]] = {
    "operator": lambda: x + torch.ones(4),
    "reflected operator": lambda: 1 - torch.ones(2, dtype=torch.bool),
    "power": lambda: torch.ones(2, dtype=torch.int64) ** -1,
    "product": lambda: x @ x,
    "method": lambda: x.sum(dim=7),
    "function": lambda: torch.cat([x, torch.ones(1)]),
    "refused arguments": lambda: torch.cat(3),
    "refused keyword": lambda: x.sum(dims=1),
    "in place": lambda: torch.ones(3, requires_grad=True).add_(1),
    "view": lambda: x.view(7),
    "index": lambda: x[9],
    "write": lambda: x.__setitem__(9, 1),
    "creation": lambda: torch.zeros("a"),
    "data": lambda: torch.tensor([[1], [2, 3]]),
    "random": lambda: torch.rand("a"),
    "number": lambda: x.item(),
    "size": lambda: x.size(5),
    "cast": lambda: x.to("nowhere"),
    "functional": lambda: nn.functional.cross_entropy(x, x.long()),
    "linalg": lambda: torch.linalg.inv(x),
    "layer": lambda: nn.Linear(5, 2)(x),
    "layers": lambda: nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))(x),
    "constructor": lambda: nn.Linear("a", 2),
    "state": lambda: nn.Linear(3, 2).load_state_dict({}),
    "backward": lambda: x.backward(),
    "autograd.backward": lambda: torch.autograd.backward(x),
    "autograd.grad": lambda: torch.autograd.grad(x.sum(), x),
    "vmap": lambda: torch.vmap(lambda t: t.item())(x),
    "func.grad": lambda: torch.func.grad(lambda t: t * 2)(x),
    "jacrev": lambda: torch.func.jacrev(lambda t: t.view(7))(x),
    "jvp": lambda: torch.func.jvp(lambda t: t, (x,), (torch.ones(5),)),
    "jacobian": lambda: torch.autograd.functional.jacobian(lambda t: t.view(7), x),
    "gradcheck": lambda: torch.autograd.gradcheck(lambda t: t, x),
    "checkpoint": lambda: torch.utils.checkpoint.checkpoint(lambda t: t.view(7), x, use_reentrant=False),
    "no_grad": lambda: torch.no_grad()(lambda: x.view(7))(),
    "optimizer": lambda: torch.optim.Adam([]),
    "rate": lambda: torch.optim.lr_scheduler.StepLR(3, 1),
    "distribution": lambda: torch.distributions.Normal(0.0, -1.0),
    "sample": lambda: torch.distributions.Normal(0.0, 1.0).log_prob("a"),
    "batches": lambda: list(DataLoader([torch.ones(2), torch.ones(3)], batch_size=2)),
    "initial values": lambda: nn.init.xavier_uniform_(torch.ones(3)),
    "padding": lambda: nn.utils.rnn.pad_sequence([torch.ones(2), torch.ones(2, 2)]),
    "collective": lambda: torch.distributed.all_reduce(3),
    "message": lambda: torch.distributed.send(x, 1),
    "group": lambda: torch.distributed.init_process_group("nowhere"),
    "objects": lambda: torch.distributed.all_gather_object([], 1),
    "store": lambda: torch.distributed.HashStore().wait(["nothing"], timedelta(milliseconds=1)),
    "missing name": lambda: torch.zeroes,
    "missing name of nn": lambda: nn.Liner,
    "missing name of autograd": lambda: torch.autograd.gradd,
    "missing name of func": lambda: torch.func.jacrv,
    "missing name of jit": lambda: torch.jit.scrpt,
    "missing name of cuda": lambda: torch.cuda.is_availble,
    "file": lambda: torch.load("/nowhere/at/all"),
}


@pytest.mark.parametrize("what", CALLS)
def test_no_line_of_the_library(what: str) -> None:
    error = raised(CALLS[what])
    assert own(error) == 0, "".join(traceback.format_exception(error))
    assert names(error)[0] == "<lambda>"


@pytest.mark.parametrize("what", CALLS)
def test_the_switch_shows_all(what: str) -> None:
    with debug.full_tracebacks():
        assert own(raised(CALLS[what])) > 0
    assert own(raised(CALLS[what])) == 0


def test_the_switch_is_a_function_too() -> None:
    try:
        debug.full_tracebacks()
        assert own(raised(CALLS["layers"])) > 3
        debug.full_tracebacks(False)
        assert own(raised(CALLS["layers"])) == 0
    finally:
        debug.full_tracebacks(False)
    with pytest.raises(TypeError, match="enabled must be a bool"):
        debug.full_tracebacks("full")  # type: ignore[arg-type]


def test_forward_of_a_module_is_kept() -> None:
    class Inner(nn.Module):
        def forward(self, given: Any) -> Any:
            return given.view(7)

    class Outer(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Sequential(Inner())

        def forward(self, given: Any) -> Any:
            return self.inner(given)

    error = raised(lambda: Outer()(x))
    assert names(error) == ["<lambda>", "forward", "forward"]


def test_custom_backward_is_kept_and_the_forward_place_told() -> None:
    class Twice(torch.autograd.Function):
        @staticmethod
        def forward(ctx: Any, given: Any) -> Any:
            return given * 2

        @staticmethod
        def backward(ctx: Any, grad: Any) -> Any:
            return helper(grad)

    def helper(grad: Any) -> Any:
        return grad.view(7)

    given = torch.ones(3, requires_grad=True)
    result = Twice.apply(given)  # the place of the call
    error = raised(lambda: result.sum().backward())
    assert names(error) == ["<lambda>", "backward", "helper"]
    (note,) = error.__notes__
    assert "In the backward of TwiceBackward, which was recorded here:" in note
    assert "result = Twice.apply(given)  # the place of the call" in note


def test_hooks_are_kept() -> None:
    def hook(grad: Any) -> Any:
        raise KeyError("mine")

    given = torch.ones(3, requires_grad=True)
    result = given * 2
    result.register_hook(hook)
    error = raised(lambda: result.sum().backward())
    assert (type(error), names(error)) == (KeyError, ["<lambda>", "hook"])
    module = nn.Linear(3, 2)

    def forward_hook(*given: Any) -> Any:
        raise KeyError("mine")

    module.register_forward_hook(forward_hook)
    assert names(raised(lambda: module(x))) == ["<lambda>", "forward_hook"]


def test_transforms_keep_the_function() -> None:
    def loss(given: Any) -> Any:
        return inside(given).sum()

    def inside(given: Any) -> Any:
        return given @ torch.ones(9)

    error = raised(lambda: torch.vmap(torch.func.grad(loss))(x))
    assert names(error) == ["<lambda>", "loss", "inside"]


class Broken:
    """A dataset whose samples cannot be read."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, index: int) -> Any:
        return {}["missing"]


def test_datasets_are_kept() -> None:
    assert names(raised(lambda: next(iter(DataLoader(Broken())))))[-1] == "__getitem__"  # type: ignore[arg-type]
    error = raised(lambda: next(iter(DataLoader(Broken(), num_workers=1))))  # type: ignore[arg-type]
    assert own(error) == 0
    text = str(error)
    assert "Caught KeyError in DataLoader worker process 0" in text
    assert 'return {}["missing"]' in text
    assert "fetch" not in text.replace("__getitem__", "")


def test_an_error_from_inside_keeps_its_line(monkeypatch: pytest.MonkeyPatch) -> None:
    from retrograd.tensor._functions import index

    monkeypatch.setattr(index, "_take_apart", lambda *given: given.missing)
    error = raised(lambda: x[[0, 1], ..., None])
    assert isinstance(error, AttributeError)
    assert (names(error)[-1], own(error)) == ("<lambda>", 0)  # raised in this file, which is not the library
    monkeypatch.setattr(index, "_take_apart", 3)
    error = raised(lambda: x[[0, 1], ..., None])
    assert isinstance(error, TypeError)
    assert (names(error)[-1], own(error)) == ("getitem", 1)


def test_what_led_to_an_error() -> None:
    def handled() -> None:
        try:
            {}["mine"]
        except KeyError:
            x.view(7)

    text = "".join(traceback.format_exception(raised(handled)))
    assert "KeyError: 'mine'" in text  # the user's own error stays in the chain
    assert PACKAGE not in text
    for call in CALLS.values():
        error: BaseException | None = raised(call)
        text = "".join(traceback.format_exception(error))
        assert "During handling" not in text, text  # nor does the library show how it came to an error


def test_what_takes_calls_over_is_kept() -> None:
    class Seeing(TorchFunctionMode):
        def __torch_function__(self, function: Any, kinds: Any, args: Any = (), kwargs: Any = None) -> Any:
            return function(*args, **(kwargs or {}))

    def work() -> None:
        with Seeing():
            x.view(7)

    assert names(raised(work)) == ["work", "__torch_function__"]


def test_every_way_of_printing(caplog: pytest.LogCaptureFixture) -> None:
    try:
        CALLS["layers"]()
    except RuntimeError:
        printed = io.StringIO()
        traceback.print_exc(file=printed)
        logging.getLogger(__name__).exception("caught")
    for text in (printed.getvalue(), caplog.text):
        assert PACKAGE not in text
        assert "<retrograd" not in text
        assert "mat1 and mat2 shapes cannot be multiplied" in text


def test_nothing_is_guarded_twice() -> None:
    code = _tracebacks.guarded(lambda: None).__code__
    for cls in (torch.fx.GraphModule, torch.fx.Graph, torch.export.UnflattenedModule, nn.Sequential, torch.optim.SGD):
        made = cls.__init__
        assert made.__code__ is code
        assert made.__wrapped__.__code__ is not code


def test_a_misspelled_attribute_of_a_module() -> None:
    """Python itself says what may have been meant, when it ends a program with the error."""
    program = "from retrograd import nn\nnn.Linear(2, 2).wieght"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert "'Linear' object has no attribute 'wieght'. Did you mean: 'weight'?" in done.stderr


PROGRAM = """
import retrograd as torch
from retrograd import nn

class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 4), nn.Linear(5, 2))

    def forward(self, x):
        return self.layers(x)

def test():
    Net()(torch.ones(2, 3))
"""


def test_a_script_and_the_variable(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "program.py"
    file.write_text(PROGRAM + "test()\n")

    def lines(**environment: str) -> list[str]:
        for name, value in environment.items():
            monkeypatch.setenv(name, value)
        done = subprocess.run([sys.executable, str(file)], capture_output=True, text=True, check=False)
        return [line for line in done.stderr.splitlines() if line.startswith("  File ")]

    monkeypatch.delenv("RETROGRAD_TRACEBACK", raising=False)
    shown = lines()
    assert [line.rpartition("in ")[2] for line in shown] == ["<module>", "test", "forward"]
    assert len(lines(RETROGRAD_TRACEBACK="full")) > len(shown) + 3


def test_under_pytest(tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PYTEST_DISABLE_PLUGIN_AUTOLOAD", "1")  # others take long to load
    file = tmp_path / "test_program.py"
    file.write_text(PROGRAM)
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", str(file)]
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=tmp_path)
    assert "mat1 and mat2 shapes cannot be multiplied" in done.stdout
    assert "return self.layers(x)" in done.stdout
    assert PACKAGE not in done.stdout


# ---- notebooks ----
def shell(cells: dict[str, str]) -> Any:
    """Return a module that stands for IPython with some cells."""
    compiler = types.SimpleNamespace(format_code_name=lambda file: ("Cell", cells[file]) if file in cells else None)
    return types.SimpleNamespace(get_ipython=lambda: types.SimpleNamespace(compile=compiler))


def test_lines_of_notebooks(monkeypatch: pytest.MonkeyPatch) -> None:
    import linecache

    file = "/tmp/ipykernel_1/123.py"
    program = "w = torch.ones(3, requires_grad=True)\nh = (w * 2).detach()\nh.sum().backward()\n"
    monkeypatch.setitem(sys.modules, "IPython", shell({file: "In[3]"}))
    monkeypatch.setitem(linecache.cache, file, (len(program), None, program.splitlines(keepends=True), file))
    error = raised(lambda: exec(compile(program, file, "exec"), {"torch": torch}))
    assert "Cell In[3], line 2\n      h = (w * 2).detach()" in str(error)
    assert "ipykernel" not in str(error)


def test_a_real_notebook() -> None:
    pytest.importorskip("ipykernel")
    nbclient, nbformat = pytest.importorskip("nbclient"), pytest.importorskip("nbformat")
    notebook = nbformat.v4.new_notebook()
    first = "import retrograd as torch\nx = torch.ones(3, requires_grad=True)\ny = x.exp()\ny += 1"
    second = "y.sum().backward()"
    notebook.cells = [nbformat.v4.new_code_cell(text) for text in (first, second)]
    with pytest.raises(nbclient.exceptions.CellExecutionError) as caught:
        nbclient.NotebookClient(notebook, timeout=120, kernel_name="python3").execute()
    text = caught.value.traceback
    assert "Cell In[1], line 4\n    y += 1" in text
    assert "ipykernel_" not in text
    assert PACKAGE not in text
