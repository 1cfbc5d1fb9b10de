"""explain: the path of a gradient, or where it was cut."""

from __future__ import annotations

import linecache
from pathlib import Path
from typing import Any

import pytest

import retrograd as torch
from retrograd._graph.cuts import recent_cuts
from retrograd.autograd import explain


def leaf() -> torch.Tensor:
    return torch.tensor([3.0, 4.0], requires_grad=True)


def test_the_path_with_its_norms() -> None:
    x = leaf()
    h = x * 2
    y = h.sum()
    story = explain(y, x)
    assert story.connected
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "input"]
    assert [step.norm for step in story.path] == pytest.approx([1.0, 2**0.5, 2 * 2**0.5])
    assert story.path[1].place.startswith(__file__)
    assert "|grad| = 2.828" in repr(story)
    y.backward()  # explaining frees nothing
    assert x.grad.tolist() == [2.0, 2.0]


def test_after_backward_there_are_no_norms() -> None:
    x = leaf()
    y = (x * x).sum()
    y.backward()
    story = explain(y, x)
    assert story.connected
    assert "A backward has freed the graph" in story.reason
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "input"]


def test_from_a_node_inside_the_graph() -> None:
    x = leaf()
    h = x.exp()
    assert explain(h.sum(), h).connected
    assert explain(h.max(0)[0], h).connected


def test_a_gradient_that_is_zero() -> None:
    x = leaf()
    assert "zero when it arrives" in repr(explain((x * 0).sum(), x))


ON_THE_WAY = "On the way from input to output, values left the graph here"


@pytest.mark.parametrize(
    ("factor", "words"), [(0.0, "it is zero when it arrives:"), (float("nan"), "it is NaN when it arrives:")]
)
def test_a_remark_is_part_of_the_sentence(factor: float, words: str) -> None:
    x = leaf()
    story = explain((x * factor).sum(), x)
    assert story.reason == f"A gradient flows from output to input, but {words}"


def test_an_intermediate_input_is_called_input() -> None:
    h = leaf() * 3
    story = explain((h * 2).sum(), h)
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "input"]
    assert story.path[-1].place == story.path[1].place.rpartition(":")[0] + f":{story_line(h)}"


def story_line(tensor: Any) -> int:
    return tensor.grad_fn.code.co_firstlineno + 1


def test_one_of_several_outputs() -> None:
    first, second = (leaf() * 2).unbind()
    story = explain(second * 3, second)
    assert [step.norm for step in story.path] == [1.0, 3.0]
    assert not explain(second * 3, first).connected


# ---- long paths ----
def test_a_loop_is_written_once() -> None:
    x = leaf()
    y = x
    for _ in range(1000):
        y = y * 1.001
        y = y + 1
    story = explain(y.sum(), x)
    assert len(story.path) == 2002
    assert len(repr(story).splitlines()) < 12
    assert "  ... the same 2 lines 997 more times ..." in repr(story)
    assert repr(story).splitlines()[-1].startswith("  input  ")


def test_a_path_without_a_pattern_is_cut_in_the_middle() -> None:
    x = leaf()
    y = x
    names = {}
    exec("\n".join(f"def f{i}(y):\n{chr(10) * i}    return y * 1" for i in range(60)), names)
    for i in range(60):
        y = names[f"f{i}"](y)
    lines = repr(explain(y, x)).splitlines()
    assert len(lines) == 42
    assert lines[21] == "  ... 21 more lines ..."


def test_a_short_loop_is_written_in_full() -> None:
    x = leaf()
    y = x
    for _ in range(3):
        y = y * 2
    assert len(repr(explain(y, x)).splitlines()) == 5


# ---- gradients that do not arrive ----
class Stops(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x * 1

    @staticmethod
    def backward(ctx, g):
        return None


def test_a_function_that_returns_none() -> None:
    x = leaf()
    story = explain((Stops.apply(x * 2) * 3).sum(), x)
    assert not story.connected
    assert "StopsBackward passes none on, because its backward returns None" in story.reason
    assert [step.operation for step in story.path] == ["SumBackward0", "MulBackward0", "StopsBackward"]


def test_another_path_is_shown_if_the_shortest_ends() -> None:
    x = leaf()
    h = Stops.apply(x * 2) + (x * 2).exp().log()
    story = explain(h.sum(), x)
    assert story.connected
    assert [step.operation for step in story.path] == [
        "SumBackward0",
        "AddBackward0",
        "LogBackward0",
        "ExpBackward0",
        "MulBackward0",
        "input",
    ]


def test_a_reentrant_checkpoint() -> None:
    from retrograd.utils.checkpoint import checkpoint

    layer = torch.nn.Linear(2, 2)
    x = leaf()
    y = checkpoint(layer, x, use_reentrant=True).sum()
    story = explain(y, x)
    assert story.connected
    assert "There is a reentrant checkpoint on the way, which backward() alone can run" in story.reason
    story = explain(y, layer.weight)
    assert not story.connected
    assert "what that uses besides its arguments is not in the graph" in story.reason


def test_a_backward_that_raises_does_not_raise_here() -> None:
    x = leaf()
    h = x * 2
    h.register_hook(lambda g: 1 / 0)
    story = explain(h.sum(), x)
    assert story.connected
    assert "because backward raises ZeroDivisionError: division by zero" in story.reason


# ---- cuts ----
CUTS = {
    "detach()": "y = h.detach()",
    "detach_()": "y = (h * 1).detach_()",
    ".data": "y = h.data * 2",
    "tensor(...)": "y = torch.tensor(h)",
    "Parameter(...)": "y = torch.nn.Parameter(h)",
    ".data = ...": "y = torch.ones(2, requires_grad=True); y.data = h",
    "cast to torch.int64": "y = h.long().float()",
    "cast to torch.bool": "y = h.bool().float()",
    "item()": "y = torch.tensor(h.sum().item())",
    "tolist()": "y = torch.tensor(h.tolist())",
    "float()": "y = torch.ones(2) * float(h.sum())",
    "int()": "y = torch.ones(2) * int(h.sum())",
    "numpy(force=True)": "y = torch.from_numpy(h.numpy(force=True))",
    "gt(), which has no gradient": "y = (h > 0).float()",
    "eq(), which has no gradient": "y = (h == torch.ones(2)).float()",
    "lt(), which has no gradient": "y = (torch.ones(2) < h).float()",
    "isnan(), which has no gradient": "y = h.isnan().float()",
    "argmax(), which has no gradient": "y = h.argmax()",
    "argmin(), which has no gradient": "y = torch.argmin(h, 0)",
    "multinomial(), which has no gradient": "y = torch.multinomial(h, 1).float()",
    "grad() without create_graph=True": "y, = torch.autograd.grad((h**3).sum(), h)",
    "no_grad()": "with torch.no_grad(): y = h * 2",
    "inference_mode()": "with torch.inference_mode(): y = h * 2",
    "set_grad_enabled(False)": "torch.set_grad_enabled(False); y = h * 2; torch.set_grad_enabled(True)",
}


@pytest.fixture
def program(tmp_path: Path) -> Any:
    """Run a program from a file, whose source can be read."""

    def run(text: str, file: str = "program.py", **names: Any) -> Any:
        path = tmp_path / file
        path.write_text(text)
        scope: dict[str, Any] = {"torch": torch, "explain": explain, "leaf": leaf, "__name__": "program"} | names
        linecache.checkcache(str(path))
        exec(compile(text, str(path), "exec"), scope)
        return scope["story"]

    return run


@pytest.fixture
def mode_was_entered() -> None:
    """Let the functions of the package ask for modes, as they do from the first mode on."""
    with torch.overrides.TorchFunctionMode():
        pass


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor", "ignore:Converting a tensor")
@pytest.mark.parametrize("how", CUTS)
@pytest.mark.usefixtures("mode_was_entered")
def test_a_cut_is_named_after_modes(program: Any, how: str) -> None:
    test_a_cut_is_named_with_its_line(program, how)


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor", "ignore:Converting a tensor")
@pytest.mark.parametrize("how", CUTS)
def test_a_cut_is_named_with_its_line(program: Any, how: str) -> None:
    story = program(
        f"x = leaf()\nshown = x.detach()\nh = x * 2\n{CUTS[how]}\nstory = explain((y * torch.ones(2)).sum(), x)"
    )
    assert not story.connected
    assert [c.how for c in story.cuts] == [how]
    assert ON_THE_WAY in story.reason
    assert f"    {CUTS[how]}" in repr(story)


@pytest.mark.filterwarnings("ignore:To copy construct from a tensor", "ignore:Converting a tensor")
@pytest.mark.parametrize("how", CUTS)
def test_what_was_read_for_printing_is_not_blamed(program: Any, how: str) -> None:
    if how == "set_grad_enabled(False)":
        pytest.skip("what follows depends on it")
    story = program(f"x = leaf()\nh = x * 2\n{CUTS[how]}\nz = torch.ones(2)\nstory = explain(z.sum(), x)")
    assert story.cuts == []
    assert story.reason.startswith("No gradient flows from output to input: output requires no grad.")


def test_a_cut_and_a_block(program: Any) -> None:
    story = program(
        "x = leaf()\n"
        "with torch.no_grad():\n    unused = x * 3\n"
        "with torch.no_grad():\n    y = x * 2\n"
        "story = explain((y * x.detach()).sum(), x)"
    )
    assert [cut.how for cut in story.cuts] == ["no_grad()", "detach()"]
    assert "line 4," in story.cuts[0].place


def test_names_that_get_a_new_value(program: Any) -> None:
    story = program("x = leaf()\nz = x.detach()\nz = (x > 0).float()\nstory = explain(z.sum(), x)")
    assert [cut.how for cut in story.cuts] == ["gt(), which has no gradient"]


def test_what_is_changed_in_place_keeps_its_history(program: Any) -> None:
    story = program(
        "x = leaf()\nb = torch.zeros(2)\nb[0] = x.data[0]\nb += x.detach()\nb.add_(x.tolist()[0])\n"
        "l = []\nl.append(x.argmax())\nstory = explain((b * l[0]).sum(), x)"
    )
    assert [cut.how for cut in story.cuts] == [".data", "detach()", "tolist()", "argmax(), which has no gradient"]


def test_loops_and_branches(program: Any) -> None:
    story = program(
        "x = leaf()\na = b = c = x * 1\n"
        "for i in range(3):\n    c = b.detach()\n    b = a.data\n    a = torch.tensor(x.tolist())\n    d = x.detach()\n"
        "if c is not None:\n    c = c + int(x.sum())\nelse:\n    c = x.detach()\n"
        "story = explain(c.sum(), x)"
    )
    assert [cut.how for cut in story.cuts] == ["detach()", ".data", "tolist()", "int()"]


def test_functions_on_the_way(program: Any) -> None:
    story = program(
        "x = leaf()\n"
        "def inner(v): return v.detach()\n"
        "def outer(v): return inner(v) * 2\n"
        "def other(v): return v.detach()\n"
        "class Model(torch.nn.Module):\n    def forward(self, v): return v.data\n"
        "class Other(torch.nn.Module):\n    def forward(self, v): return v.data\n"
        "other(x), Other()(x)\n"
        "model = torch.nn.Sequential(Model())\n"
        "y = outer(model(x) + x)\n"
        "def why(value): return explain(value, x)\n"
        "story = why(y.sum())"
    )
    assert [(cut.how, cut.code.co_name) for cut in story.cuts] == [(".data", "forward"), ("detach()", "inner")]
    assert "line 6," in story.cuts[0].place


def test_operations_in_a_module_that_was_handed_over(program: Any) -> None:
    class Gate(torch.nn.Module):
        def forward(self, v):
            return (v > 0).float()  # the gate

    story = program(
        "x = leaf()\ny = model(x)\ndef why(value): return explain(value, x)\nstory = why(y.sum())", model=Gate()
    )
    assert [cut.how for cut in story.cuts] == ["gt(), which has no gradient"]
    assert "return (v > 0).float()  # the gate" in repr(story)


def test_functions_called_for_their_effect(program: Any) -> None:
    story = program(
        "def show(v): v.detach()\n"
        "def fill(b, v): b.copy_(v.detach())\n"
        "def again(b, v): b.copy_(v.data)\n"
        "x = leaf()\nh = x * 2\nb, c = torch.zeros(2), torch.zeros(2)\n"
        "show(h)\nfill(b, h)\nagain(c, h)\nc = c * 2\n"
        "story = explain((b * c).sum(), x)"
    )
    assert [cut.code.co_name for cut in story.cuts] == ["fill", "again"]


def test_modules_of_self(program: Any) -> None:
    program(
        "class Other:\n    def __init__(self):\n        with torch.no_grad(): pass\nstory = Other()", file="another.py"
    )  # its __init__ is not the one that is called below
    story = program(
        "class Inner(torch.nn.Module):\n    def forward(self, v): return v.detach()\n"
        "class Outer(torch.nn.Module):\n"
        "    def __init__(self):\n        super().__init__()\n        self.inner, self.kept = Inner(), None\n"
        "    def forward(self, v):\n"
        "        self.shown = v.data\n"
        "        self.kept = self.inner(v)\n"
        "        return explain(self.kept.sum(), x)\n"
        "x = leaf()\nstory = Outer()(x)"
    )
    assert [cut.how for cut in story.cuts] == ["detach()"]


@pytest.fixture
def notebook(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Run cells one after another, and return the names that they bind."""

    def run(*cells: str) -> dict[str, Any]:
        scope: dict[str, Any] = {"torch": torch, "explain": explain, "leaf": leaf}
        for number, text in enumerate(cells):
            name = f"<cell {number} of test_explain>"
            monkeypatch.setitem(linecache.cache, name, (len(text), None, text.splitlines(True), name))
            exec(compile(text, name, "exec", dont_inherit=True), scope)
        return scope

    return run


def test_cells_of_a_notebook(notebook: Any) -> None:
    story = notebook("x = leaf()\nshown = x.data", "y = x.detach()", "z = y * 2\nstory = explain(z.sum(), x)")["story"]
    assert [cut.how for cut in story.cuts] == ["detach()"]
    assert ON_THE_WAY in story.reason


def test_a_cell_reads_what_others_have_computed(notebook: Any) -> None:
    story = notebook("x = leaf()", "with torch.no_grad():\n    y = x * 2", "story = explain(y.sum(), x)")["story"]
    assert [cut.how for cut in story.cuts] == ["no_grad()"]
    assert ON_THE_WAY in story.reason


def test_cells_of_which_nothing_is_read_are_no_reason(notebook: Any) -> None:
    with pytest.raises(
        RuntimeError, match=r"nothing that it was computed from requires grad\. Call requires_grad_"
    ) as caught:
        notebook("x = leaf()", "kept = [x.sum().item()]", "y = torch.ones(3)", "y.sum().backward()")
    assert "item()" not in str(caught.value)


def test_a_cut_some_cells_before_may_be_the_reason(notebook: Any) -> None:
    with pytest.raises(RuntimeError, match=r"perhaps at one of these lines:\n  no_grad\(\):"):
        notebook("x = leaf()", "with torch.no_grad():\n    y = x * 2", "z = y + 1", "z.sum().backward()")


def test_without_a_source_every_cut_may_be_the_reason() -> None:
    scope: dict[str, Any] = {"explain": explain, "leaf": leaf}
    exec("x = leaf()\ny = x.detach() * (x > 0)\nstory = explain(y.sum(), x)", scope)
    story = scope["story"]
    assert [cut.how for cut in story.cuts][-2:] == ["detach()", "gt(), which has no gradient"]
    assert repr(story).endswith("  gt(), which has no gradient")
    assert "it is not known whether output was computed from such values" in story.reason


def test_a_leaf_made_of_a_cut_is_known_without_a_source() -> None:
    scope: dict[str, Any] = {"torch": torch, "explain": explain, "leaf": leaf}
    exec("x = leaf()\nshown = x.detach()\nw = torch.nn.Parameter(x * 2)\nstory = explain((w * 2).sum(), x)", scope)
    story = scope["story"]
    assert [cut.how for cut in story.cuts] == ["Parameter(...)"]
    assert ON_THE_WAY in story.reason


def test_a_library_function_that_reads_numbers_is_not_a_block() -> None:
    x = leaf()
    scaler = torch.amp.GradScaler("cpu")
    scaler.scale(x)
    assert not [cut for cut in recent_cuts()[-3:] if cut.how == "no_grad()" and "scaler.scale" in cut.place]


def test_a_cut_whose_graph_is_gone_is_found() -> None:
    x = leaf()
    y = (x * 3).detach()  # nobody holds the product
    story = explain((leaf() * y).sum(), x)
    assert not story.connected
    assert "y = (x * 3).detach()  # nobody holds the product" in repr(story)


def test_cuts_of_other_values_are_not_blamed() -> None:
    other = leaf()
    kept = other * 2
    kept.detach()
    x = leaf()
    mine = x * 3
    mine.detach()
    story = explain((leaf() * 2).sum(), x)
    assert story.cuts == []
    assert "output does not depend on it according to its graph" in story.reason


def test_integers_have_no_gradients() -> None:
    x = leaf()
    story = explain(torch.arange(3), x)
    assert "output is torch.int64, and only floating point and complex tensors have gradients" in story.reason


def test_no_grad_is_named() -> None:
    x = leaf()
    with torch.no_grad():  # gradients are off
        y = (x * 2).sum()
    story = explain(y, x)
    assert not story.connected
    assert "with torch.no_grad():  # gradients are off" in repr(story)


def test_a_decorated_function_is_named_where_it_is_called() -> None:
    @torch.no_grad()
    def silent(v):
        return v * 2

    x = leaf()
    y = silent(x)  # here
    assert "y = silent(x)  # here" in repr(explain(y.sum(), x))


def test_an_input_that_requires_no_grad() -> None:
    x = torch.ones(2)
    story = explain((leaf() * x).sum(), x)
    assert "input requires no grad" in story.reason
    assert "requires_grad_() switches it on, if it is called before output is computed" in story.reason


def test_tensors_that_have_nothing_to_do_with_each_other() -> None:
    assert not explain(leaf().sum(), leaf()).connected


def test_nothing_is_kept_alive() -> None:
    import gc
    import weakref

    x = leaf()
    h = x * 2
    h.detach()
    gone = weakref.ref(h.grad_fn)
    del h
    gc.collect()
    assert gone() is None


def test_refuses_what_is_no_tensor() -> None:
    with pytest.raises(TypeError, match="output must be a Tensor, not int"):
        explain(3, leaf())


def test_a_tensor_that_was_never_used() -> None:
    x, w = leaf(), leaf()
    h = (x * 2).detach()
    z = (x * 3).sum() + h.sum()
    assert str(explain(z, w)) == "No gradient flows from output to input: input was never used in what led to output."
    assert "detach():" in str(explain(h.sum(), x))


def test_a_tensor_that_may_have_been_used_by_another_name() -> None:
    w = leaf()
    held = [w]
    h = (held[0] * 2).detach()
    assert "detach():" in str(explain(h.sum(), w))
    other = w
    g = (other * 2).detach()
    assert "detach():" in str(explain(g.sum(), w))
