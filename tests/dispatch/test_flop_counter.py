"""utils.flop_counter: counts by module and operation, compared with torch's."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
from retrograd.utils.flop_counter import FlopCounterMode, flop_registry, register_flop_formula
from retrograd.utils.module_tracker import ModuleTracker
from tests.dispatch.flop_programs import FUNCTIONS, MODULES, OTHER_BACKWARD, TRANSFORMS
from tests.dispatch.programs import drawn

aten: Any = retrograd.ops.aten


def perceptron(t: Any) -> Any:
    return t.nn.Sequential(t.nn.Linear(4, 8), t.nn.ReLU(), t.nn.Linear(8, 3))


def images(t: Any) -> Any:
    layers = t.nn.Conv2d(3, 6, 3, padding=1), t.nn.BatchNorm2d(6), t.nn.ReLU(), t.nn.MaxPool2d(2)
    return t.nn.Sequential(*layers, t.nn.Conv2d(6, 8, 3, groups=2), t.nn.Flatten(), t.nn.Linear(32, 2))


def attention(t: Any) -> Any:
    return t.nn.TransformerEncoderLayer(8, 2, 16, batch_first=True, dropout=0.0)


MODELS: dict[str, tuple[Callable[[Any], Any], tuple[int, ...]]] = {
    "perceptron": (perceptron, (5, 4)),
    "images": (images, (2, 3, 8, 8)),
    "attention": (attention, (2, 5, 8)),
    "transposed": (lambda t: t.nn.ConvTranspose2d(3, 4, 3, stride=2), (2, 3, 8, 8)),
    "signals": (lambda t: t.nn.Conv1d(3, 4, 3), (2, 3, 9)),
}


def counts(library: Any, name: str, how: str) -> Any:
    counter = importlib.import_module(f"{library.__name__}.utils.flop_counter")
    make, shape = MODELS[name]
    model, x = make(library), drawn(library, *shape)
    mode = counter.FlopCounterMode(display=False)
    if how == "backward alone":
        loss = model(x).sum()
        with mode:
            loss.backward()
    else:
        with mode:
            out = model(x)
            if how == "both":
                out.sum().backward()
    found = mode.get_flop_counts()
    by_name = {module: {str(op): count for op, count in ops.items()} for module, ops in found.items()}
    return mode.get_total_flops(), by_name


@pytest.mark.oracle
@pytest.mark.parametrize("how", ["forward", "both", "backward alone"])
@pytest.mark.parametrize("name", MODELS)
def test_counts_are_torchs(name: str, how: str) -> None:
    torch = pytest.importorskip("torch")
    if (name, how) == ("attention", "backward alone"):
        assert counts(retrograd, name, how)[0] > 0  # torch's backward has the products of several heads as one
        return
    assert counts(retrograd, name, how) == counts(torch, name, how)


def test_a_table_is_written_and_printed(capsys: pytest.CaptureFixture[str]) -> None:
    model = perceptron(retrograd)
    with FlopCounterMode(depth=1) as mode:
        model(retrograd.ones(5, 4))
    assert capsys.readouterr().out == mode.get_table() + "\n"
    assert mode.get_table().splitlines() == [
        "Module             FLOP  % Total",
        "--------------  -------  -------",
        "Global          560.000  100.00%",
        " - aten.addmm   560.000  100.00%",
        " Sequential     560.000  100.00%",
        "  - aten.addmm  560.000  100.00%",
    ]


def test_formulas_can_be_added() -> None:
    with FlopCounterMode(display=False, custom_mapping={aten.cos: lambda x, out_shape=None: 11 * x[0]}) as mode:
        retrograd.ones(3).cos()
    assert mode.get_total_flops() == 33
    try:
        register_flop_formula(aten.sin)(lambda x, out_shape=None: 7)
        with FlopCounterMode(display=False) as mode:
            retrograd.ones(3).sin()
        assert mode.get_total_flops() == 7
        with pytest.raises(RuntimeError, match=r"duplicate registrations for aten\.sin"):
            register_flop_formula(aten.sin)(lambda x, out_shape=None: 7)
    finally:
        del flop_registry[aten.sin]
    with pytest.raises(ValueError, match="expected each target to be OpOverloadPacket"):
        register_flop_formula(aten.sin.default)(lambda x, out_shape=None: 7)


def test_the_modules_that_run_are_known_by_their_names() -> None:
    model = perceptron(retrograd)
    seen: list[set[str]] = []
    model[2].register_forward_pre_hook(lambda *args: seen.append(set(tracker.parents)))
    with ModuleTracker() as tracker:
        model(retrograd.ones(5, 4))
    assert seen == [{"Global", "Sequential", "Sequential.2"}]
    assert tracker.parents == {"Global"}


def total(library: Any, run: Callable[[], Any], backward: bool) -> int:
    """Return the count of a function of no arguments, with that of the backward of its results."""
    counter = importlib.import_module(f"{library.__name__}.utils.flop_counter")
    with counter.FlopCounterMode(display=False) as mode:
        out = run()
        if backward:
            leaves = library.utils._pytree.tree_leaves(out)
            results = [one for one in leaves if isinstance(one, library.Tensor) and one.requires_grad]
            sum(one.sum() for one in results).backward()
    return int(mode.get_total_flops())


def maker(library: Any, requires_grad: bool) -> Callable[..., Any]:
    def make(*shape: int) -> Any:
        made = drawn(library, *shape).detach().double().mul(7).sin()
        return made.requires_grad_(requires_grad)

    return make


@pytest.mark.oracle
@pytest.mark.filterwarnings("ignore:.*chain_matmul")
@pytest.mark.parametrize("backward", [False, True])
def test_totals_of_functions_are_torchs(backward: bool) -> None:
    torch = pytest.importorskip("torch")
    asked = [name for name in FUNCTIONS if not (backward and name in OTHER_BACKWARD)]
    found = {
        library.__name__: {
            name: total(library, lambda: FUNCTIONS[name](library, maker(library, True)), backward)  # noqa: B023
            for name in asked
        }
        for library in (retrograd, torch)
    }
    assert found["retrograd"] == found["torch"]


WRONG = {
    "layer": lambda library: library.nn.Linear(2, 2)((1, 2)),
    "weight": lambda library: library.nn.functional.linear(library.ones(2), (1, 2)),
    "by name": lambda library: library.nn.functional.linear(input=3, weight=library.ones(2, 2)),
    "convolution": lambda library: library.nn.functional.conv2d((1, 2), library.ones(1, 1, 2, 2)),
    "norm": lambda library: library.nn.functional.layer_norm("a", (2,)),
}


@pytest.mark.oracle
@pytest.mark.parametrize("what", WRONG)
def test_what_is_no_tensor_is_refused_in_torchs_words(what: str) -> None:
    said = []
    for library in (retrograd, pytest.importorskip("torch")):
        with pytest.raises(TypeError) as caught:
            total(library, lambda: WRONG[what](library), False)  # noqa: B023
        said.append(str(caught.value).splitlines()[0])
    assert said[0] == said[1]


@pytest.mark.oracle
def test_totals_inside_of_transforms_are_torchs() -> None:
    torch = pytest.importorskip("torch")
    found = {
        library.__name__: {
            name: total(library, lambda: run(library, maker(library, False)), False)  # noqa: B023
            for name, run in TRANSFORMS.items()
        }
        for library in (retrograd, torch)
    }
    assert found["retrograd"] == found["torch"]


@pytest.mark.oracle
@pytest.mark.parametrize("backward", [False, True])
def test_totals_of_modules_are_torchs(backward: bool) -> None:
    torch = pytest.importorskip("torch")
    found: dict[str, dict[str, int]] = {"retrograd": {}, "torch": {}}
    for library in (retrograd, torch):
        for name, (make, shape) in MODULES.items():
            module, x = make(library.nn).double(), maker(library, True)(*shape)
            found[library.__name__][name] = total(library, lambda: module(x), backward)  # noqa: B023
    assert found["retrograd"] == found["torch"]
