"""Classes of programs below Tensor, Parameter and Buffer, with constructors of their own: as in torch."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd


def with_extra(torch: Any) -> Any:
    class Noted(torch.Tensor):  # type: ignore[misc, name-defined]
        @staticmethod
        def __new__(cls: Any, x: Any, note: Any, *args: Any, **kwargs: Any) -> Any:
            return super().__new__(cls, x, *args, **kwargs)

        def __init__(self, x: Any, note: Any) -> None:
            self.note = note

    made = Noted(torch.ones(2), "one")
    return type(made).__name__, made.note, made.tolist()


def on_a_manifold(torch: Any) -> Any:
    class Point(torch.nn.Parameter):  # type: ignore[misc, name-defined]
        def __new__(cls, data: Any = None, manifold: Any = None, requires_grad: bool = True) -> Any:
            made = torch.Tensor._make_subclass(cls, data, requires_grad)
            made.manifold = manifold
            return made

    class Further(Point):
        pass

    made, other = Point(torch.ones(2), manifold=3), Further(torch.ones(1), manifold=4)
    is_parameter = isinstance(other, torch.nn.Parameter)
    return type(made).__name__, made.manifold, made.requires_grad, type(other).__name__, other.manifold, is_parameter


def by_the_parents_constructor(torch: Any) -> Any:
    class Tagged(torch.nn.Parameter):  # type: ignore[misc, name-defined]
        def __new__(cls, data: Any, tag: Any = None, requires_grad: bool = True) -> Any:
            made = super().__new__(cls, data, requires_grad)
            made.tag = tag
            return made

        def __init__(self, *args: Any, **kwargs: Any) -> None:
            self.started = True

    made = Tagged(torch.ones(2), tag="x", requires_grad=False)
    return type(made).__name__, made.tag, made.started, made.requires_grad


def with_init_alone(torch: Any) -> Any:
    class Started(torch.nn.Parameter):  # type: ignore[misc, name-defined]
        def __init__(self, data: Any, extra: int = 5) -> None:
            self.extra = extra

    return Started(torch.ones(2)).extra, Started(torch.ones(2)).requires_grad


def with_a_wrong_argument(torch: Any) -> Any:
    class Started(torch.nn.Parameter):  # type: ignore[misc, name-defined]
        def __init__(self, data: Any, extra: int = 5) -> None:
            self.extra = extra

    with pytest.raises(TypeError) as caught:
        Started(torch.ones(2), extra=3)
    return str(caught.value)


def of_a_buffer(torch: Any) -> Any:
    class Tagged(torch.nn.Buffer):  # type: ignore[misc, name-defined]
        def __new__(cls, data: Any, tag: int = 1, persistent: bool = True) -> Any:
            made = super().__new__(cls, data, persistent=persistent)
            made.tag = tag
            return made

    made = Tagged(torch.ones(1), tag=4)
    return type(made).__name__, made.tag, isinstance(made, torch.nn.Buffer)


def called_by_name(torch: Any) -> Any:
    parameter = torch.nn.Parameter.__new__(torch.nn.Parameter, torch.ones(2), False)
    return parameter.requires_grad, type(parameter).__name__, torch.Tensor.__new__(torch.Tensor, torch.ones(2)).tolist()


CASES = [
    *(with_extra, on_a_manifold, by_the_parents_constructor, with_init_alone, with_a_wrong_argument, of_a_buffer),
    called_by_name,
]


@pytest.mark.oracle
@pytest.mark.parametrize("case", CASES)
def test_a_constructor_does_what_it_does_in_torch(case: Any) -> None:
    torch = pytest.importorskip("torch")
    assert case(retrograd) == case(torch)
