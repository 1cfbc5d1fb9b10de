"""The positional forms that torch has deprecated and still takes, as published optimizers write them."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd
from retrograd.tensor._recording import old_forms as _old_forms
from tests.oracle import answer

CALLS = [
    *[f"{x}({', '.join(a)})" for x in ("x.clone().add_", "x.add", "x.clone().sub_", "x.sub") for a in (["2", "g"],)],
    *[f"torch.{name}(x, 2, g)" for name in ("add", "sub")],
    "torch.add(x, 2, g, out=torch.empty(3))",
    "torch.add(x, 2, 3)",
    "x.clone().sub_(2, 3)",
    "x.add(torch.tensor(2.), g)",
    *[
        form.format(name)
        for name in ("addcmul", "addcdiv")
        for form in ("x.clone().{}_(.1, g, h)", "x.{}(.1, g, h)", "torch.{}(x, .1, g, h)")
    ],
    *[
        form.format(name, numbers=numbers, function=f".5, {own}{', 2' * (numbers != '.5')}", own=own, rest=rest)
        for name, own, rest in (
            ("addmm", "m", "m, m"),
            ("addmv", "v", "m, v"),
            ("addr", "m", "v, v"),
            ("addbmm", "m", "b, b"),
            ("baddbmm", "b", "b, b"),
        )
        for numbers in (".5", ".5, 2")
        for form in (
            "{own}.{}({numbers}, {rest})",
            "{own}.clone().{}_({numbers}, {rest})",
            "torch.{}({function}, {rest})",
        )
    ],
    "torch.addmv_(.5, v.clone(), 2, m, v)",
    "torch.addmm(torch.tensor(.5), m, m, m)",
    "r.add(2, g)",
    "(r * 1).add_(2, g)",
    "(r * 1).addcmul_(.1, g, h)",
    "x.clone().addcmul_(g, h, .1)",
    "x.clone().addcdiv_(.1, 2, g)",
    "x.clone().add_(g, 2)",
    "x.clone().mul_(2, g)",
    "m.clone().addmm_(m, m, 1, 2)",
    "torch.add(2, g, 3)",
]


def _scope(library: Any) -> dict[str, Any]:
    eye = library.tensor([[1.0, 2.0], [0.5, 1.0]])
    return {
        "x": library.arange(3.0),
        "g": library.full((3,), 0.5),
        "h": library.full((3,), 2.0),
        "r": library.ones(3, requires_grad=True),
        "m": eye,
        "b": eye[None],
        "v": library.tensor([1.0, 3.0]),
    }


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_old_forms_answer_as_torchs(call: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, call, **_scope(retrograd)) == answer(torch, call, **_scope(torch))


@pytest.mark.parametrize(
    ("call", "old", "now"),
    [
        ("x.add_(2, g)", "add_(Number alpha, Tensor other)", "add_(Tensor other, *, Number alpha = 1)"),
        (
            "x.addcdiv_(.1, g, h)",
            "addcdiv_(Number value, Tensor tensor1, Tensor tensor2)",
            "addcdiv_(Tensor tensor1, Tensor tensor2, *, Number value = 1)",
        ),
        (
            "torch.addmm(1, m, 2, m, m)",
            "addmm(Number beta, Tensor input, Number alpha, Tensor mat1, Tensor mat2, *, Tensor out = None)",
            "addmm(Tensor input, Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1, Tensor out = None)",
        ),
        (
            "m.addmm_(1, m, m)",
            "addmm_(Number beta, Tensor mat1, Tensor mat2)",
            "addmm_(Tensor mat1, Tensor mat2, *, Number beta = 1, Number alpha = 1)",
        ),
    ],
)
def test_the_first_old_form_warns(call: str, old: str, now: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_old_forms, "_warned", False)
    scope = {"torch": retrograd, **_scope(retrograd)}
    with pytest.warns(UserWarning, match="is deprecated") as told:
        eval(call, scope)
    text = f"This overload of {old.split('(')[0]} is deprecated:\n\t{old}\nConsider using one of the following "
    assert str(told[0].message) == f"{text}signatures instead:\n\t{now}"
    eval(call, scope)  # warnings are errors here: torch says it once in a process


def test_a_subclass_sees_the_old_form_as_given(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_old_forms, "_warned", True)
    seen = []

    class Watched(retrograd.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            seen.append((func.__name__, args[1:]))
            return super().__torch_function__(func, types, args, kwargs or {})

    x = retrograd.ones(3).as_subclass(Watched)
    g = retrograd.ones(3)
    assert retrograd.addcmul(x, 2, g, g).tolist() == [3.0] * 3
    assert seen[0] == ("addcmul", (2, g, g))
