"""What modes and wrapper classes answer, what becomes of it, and what is said about it: as in torch."""

from __future__ import annotations

import copy
import importlib
import re
from collections.abc import Callable
from typing import Any

import pytest

import retrograd
from tests.oracle import before_the_hint, first_line, outcome, said, whole

pytestmark = pytest.mark.oracle
Library = Any


def _wrapper(torch: Library) -> Any:
    """Make a class of tensors that hold another one and do with it what was asked."""
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")
    tree_map = importlib.import_module(f"{torch.__name__}.utils._pytree").tree_map

    class Wrapped(torch.Tensor):  # type: ignore[misc]
        inner: Any

        @staticmethod
        def __new__(cls: Any, inner: Any, requires_grad: bool = False) -> Any:
            made = torch.Tensor._make_wrapper_subclass(
                cls, inner.size(), strides=inner.stride(), dtype=inner.dtype, requires_grad=requires_grad
            )
            made.inner = inner
            return made

        def __init__(self, inner: Any, requires_grad: bool = False) -> None: ...

        def __repr__(self) -> str:  # type: ignore[override]
            return f"Wrapped({self.inner})"

        def __tensor_flatten__(self) -> Any:
            return ["inner"], None

        @classmethod
        def __tensor_unflatten__(cls, inner: Any, context: Any, size: Any, stride: Any) -> Any:
            return cls(inner["inner"])

        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            def inside(one: Any) -> Any:
                return one.inner if isinstance(one, Wrapped) else one

            out = func(*tree_map(inside, args), **tree_map(inside, kwargs or {}))
            out = tree_map(lambda one: Wrapped(one) if isinstance(one, torch.Tensor) else one, out)
            return dispatch.return_and_correct_aliasing(func, args, kwargs or {}, out)

    return Wrapped


def _answering(torch: Library, answer: Callable[..., Any]) -> Any:
    dispatch = importlib.import_module(f"{torch.__name__}.utils._python_dispatch")

    class Answering(dispatch.TorchDispatchMode):  # type: ignore[misc]
        def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return answer(func, args)

        def __repr__(self) -> str:
            return "Answering()"

    return Answering()


# ---- wrapper classes ----
def copies_hold_copies(torch: Library) -> Any:
    one = _wrapper(torch)(torch.arange(3.0), requires_grad=True)
    other = copy.deepcopy(one)
    return type(other).__name__, other, other.inner is one.inner, other.requires_grad, other.is_leaf


def copies_of_modules(torch: Library) -> Any:
    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(_wrapper(torch)(torch.ones(2, 2)))
    weight = copy.deepcopy(layer).weight
    return type(weight).__name__, isinstance(weight, torch.nn.Parameter), weight.requires_grad


def copies_where_clone_gives_something_else(torch: Library) -> Any:
    class Plain(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.ones(3)

    return copy.deepcopy(torch.Tensor._make_wrapper_subclass(Plain, (3,)))


def writes_into_plain_tensors(torch: Library) -> Any:
    Wrapped, seen = _wrapper(torch), []  # noqa: N806 - a class
    for method in ("copy_", "add_", "mul_"):
        target = torch.ones(3)
        result = getattr(target, method)(Wrapped(torch.arange(3.0)))
        seen.append((type(result).__name__, result is target, target))
    return seen


def writes_into_wrappers(torch: Library) -> Any:
    target = _wrapper(torch)(torch.zeros(3))
    return target.copy_(torch.arange(3.0)) is target, target.add_(target) is target, target


def classes_that_see_operations_see_no_functions(torch: Library) -> Any:
    Wrapped = _wrapper(torch)  # noqa: N806 - a class

    class Sub(torch.Tensor): ...  # type: ignore[misc]

    class SubWithDispatch(Sub):
        __torch_dispatch__ = Wrapped.__torch_dispatch__

    class Own(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return super().__torch_function__(func, types, args, kwargs)

        __torch_dispatch__ = Wrapped.__torch_dispatch__

    disabled = torch._C._disabled_torch_function_impl
    return [kind.__torch_function__ is disabled for kind in (Wrapped, Sub, SubWithDispatch, Own)]


def nobody_answers(torch: Library) -> Any:
    class Silent(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    Silent.__module__, Silent.__qualname__ = "here", "Silent"
    one = torch.Tensor._make_wrapper_subclass(Silent, (2,))
    with _answering(torch, lambda func, args: NotImplemented):
        return one.sum()


def pickles_of_wrappers(torch: Library) -> Any:
    one = _wrapper(torch)(torch.arange(3.0), requires_grad=True)
    # classes inside of functions cannot be pickled: only what would be called and with what
    function, (made_by, kind, looks, state) = one.__reduce_ex__(2)
    again = function(made_by, kind, looks, state)
    return made_by.__name__, looks[1:], again, again.requires_grad


def modules_of_wrappers_in_another_dtype(torch: Library) -> Any:
    layer = torch.nn.Linear(2, 2)
    layer.weight = torch.nn.Parameter(_wrapper(torch)(torch.ones(2, 2)))
    weight = layer.weight
    layer.double()
    return layer.weight is weight, type(layer.weight).__name__, layer.weight.dtype, layer.weight.inner.dtype


def wrappers_without_dispatch(torch: Library) -> Any:
    class Plain(torch.Tensor): ...  # type: ignore[misc]

    return torch.Tensor._make_wrapper_subclass(Plain, (2,))


def elements_of_wrappers_that_are_not_one(torch: Library) -> Any:
    one = _wrapper(torch)(torch.ones(3))
    reads = (float, int, bool, complex, lambda x: x.item(), lambda x: [1][x])
    return [outcome(read, one, words=before_the_hint) for read in reads]


def parameters_of_wrappers_in_words(torch: Library) -> Any:
    class Shown(torch.Tensor):  # type: ignore[misc]
        @classmethod
        def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return torch.Tensor._make_wrapper_subclass(cls, args[0].shape)

        def __repr__(self) -> str:  # type: ignore[override]
            return super().__repr__(tensor_contents="...")

    return torch.nn.Parameter(torch.Tensor._make_wrapper_subclass(Shown, (2, 3)))


# ---- functions that are taken over ----
def functions_that_nobody_answers(torch: Library) -> Any:
    class Silent:
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

    Silent.__module__, Silent.__qualname__ = "here", "Silent"
    calls = (lambda: torch.mul(Silent(), 3), lambda: torch.nn.functional.softmax(Silent(), 0))
    return [outcome(call, words=whole, kinds=TypeError) for call in calls]


def operators_of_two_classes(torch: Library) -> Any:
    class One(torch.Tensor): ...  # type: ignore[misc]

    class Other(torch.Tensor): ...  # type: ignore[misc]

    return One([1.0]) + Other([1.0])


def named_results_of_classes(torch: Library) -> Any:
    class One(torch.Tensor): ...  # type: ignore[misc]

    found = One([1.0, 2.0]).max(0)
    return type(found).__name__, type(found.values).__name__, type(found.indices).__name__


def modes_that_only_pass_on(torch: Library) -> Any:
    with torch.overrides.BaseTorchFunctionMode():
        return torch.ones(2) + 1


def silent_function_modes(torch: Library) -> Any:
    class Silent(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return NotImplemented

        def __repr__(self) -> str:
            return "Silent()"

    with Silent():
        return torch.ones(2)


# ---- what modes answer ----
def _answered(answer: Callable[..., Any], call: Callable[[Any], Any]) -> Callable[[Library], Any]:
    def program(torch: Library) -> Any:
        x = torch.ones(3)
        with _answering(torch, answer):
            return call(x)

    return program


ANSWERS = {
    "nothing": _answered(lambda func, args: NotImplemented, lambda x: x.sum()),
    "a word": _answered(lambda func, args: "abc", lambda x: x.sum()),
    "a word for a write": _answered(lambda func, args: "abc", lambda x: x.add_(1)),
    "a word for a number": _answered(lambda func, args: "abc", lambda x: x[:1].item()),
    "None": _answered(lambda func, args: None, lambda x: x.sum()),
    "None for two": _answered(lambda func, args: None, lambda x: x.max(0)),
    "one for two": _answered(lambda func, args: (args[0],), lambda x: x.max(0)),
    "another tensor for a write": _answered(lambda func, args: args[0] + 1, lambda x: x.add_(1) is x),
}


def numbers_are_read_by_one_operation(torch: Library) -> Any:
    seen = []

    def answer(func: Any, args: Any) -> Any:
        seen.append(str(func))
        return func(*args)

    x = torch.ones(())
    with _answering(torch, answer):
        float(x), int(x), bool(x), complex(x), x.item()
    return seen


# ---- operations of programs ----
def _square(torch: Library, name: str) -> Any:
    def square(x, scale=2.0):  # type: ignore[no-untyped-def]
        return x * x * scale

    square.__annotations__ = {"x": torch.Tensor, "scale": float, "return": torch.Tensor}
    made = torch.library.custom_op(f"answers::{name}", mutates_args=())(square)
    made.register_autograd(lambda ctx, g: (g, None))
    return made


def nodes_of_operations(torch: Library) -> Any:
    out = _square(torch, "named")(torch.ones(3, requires_grad=True))
    return out.grad_fn.name(), out


def gradients_of_a_wrong_shape(torch: Library) -> Any:
    square = _square(torch, "wrong")
    square.register_autograd(lambda ctx, g: (torch.ones(5), None))
    square(torch.ones(3, requires_grad=True)).sum().backward()


def what_a_context_needs(torch: Library) -> Any:
    square, seen = _square(torch, "needs"), []
    square.register_autograd(lambda ctx, g: (seen.append(ctx.needs_input_grad), (g, None))[1])
    square(torch.ones(3, requires_grad=True), 3.0).sum().backward()
    return [tuple(one)[:1] for one in seen]


def defaults_in_schemas(torch: Library) -> Any:
    _square(torch, "printed")
    library = torch.library.Library("answers_defined", "DEF")
    library.define(
        "f(Tensor x, float a=2, Scalar b=2.0, Scalar c=3, float[] d=[1.0, 0.1], *, float? e=1e-5) -> (Tensor, Tensor)"
    )
    library.define("g(Tensor x, str s='abc', float big=1e20, float negative=-1.5) -> Tensor")
    found = [torch.ops.answers.printed.default, torch.ops.answers_defined.f.default]
    made = [str(one._schema) for one in found]
    library._destroy()
    return made


def derivatives_with_lists_and_keywords(torch: Library) -> Any:
    def scaled(xs, y, *, by):  # type: ignore[no-untyped-def]
        return [x * by for x in xs] + [y * by]

    scaled.__annotations__ = {"xs": list[torch.Tensor], "y": torch.Tensor, "by": float, "return": list[torch.Tensor]}
    made = torch.library.custom_op("answers::scaled", mutates_args=())(scaled)

    def setup_context(ctx: Any, inputs: Any, keyword_only_inputs: Any, output: Any) -> None:
        ctx.by = keyword_only_inputs["by"]

    made.register_autograd(
        lambda ctx, grads: ([g * ctx.by for g in grads[:-1]], grads[-1] * ctx.by), setup_context=setup_context
    )
    xs, y = [torch.ones(2, requires_grad=True) for _ in range(2)], torch.ones(2, requires_grad=True)
    for weight, one in enumerate(made(xs, y, by=3.0), 1):
        (weight * one).sum().backward(retain_graph=True)
    return [x.grad for x in xs], y.grad


def tags_of_operations(torch: Library) -> Any:
    aten = torch.ops.aten
    some = (aten.add.Tensor, aten.t_.default, aten.native_dropout.default, aten.sum.default, aten.view.default)
    return [one.tags for one in some], torch.Tag.pointwise in aten.mul.Tensor.tags


def _writing(torch: Library, name: str, returned: Any) -> Any:
    def write(x):  # type: ignore[no-untyped-def]
        x.add_(1)
        return None if returned is None else x.clone()

    write.__annotations__ = {"x": torch.Tensor, "return": returned}
    return torch.library.custom_op(f"answers::{name}", mutates_args={"x"})(write)


def checks_of_what_only_writes(torch: Library) -> Any:
    return torch.library.opcheck(_writing(torch, "writes", None), (torch.ones(3),))


def checks_without_a_rule_for_shapes(torch: Library) -> Any:
    return torch.library.opcheck(_writing(torch, "also", torch.Tensor), (torch.ones(3),), raise_exception=False)


def checks_of_a_wrong_rule_for_shapes(torch: Library) -> Any:
    square = _square(torch, "misfit")
    square.register_fake(lambda x, scale=2.0: x.new_empty(x.shape[0] + 1))
    found = torch.library.opcheck(square, (torch.ones(3),), test_utils="test_faketensor", raise_exception=False)
    return {name: (type(one).__name__, str(one)) for name, one in found.items()}


# ---- dtypes and devices ----
def prelu_in_autocast(torch: Library) -> Any:
    seen = []
    for dtype in (torch.float32, torch.bfloat16, torch.float16):
        layer = torch.nn.PReLU()
        with torch.autocast("cpu", torch.bfloat16):
            out = layer(torch.ones(2, 3, dtype=dtype))
        out.float().sum().backward()
        seen.append((out.dtype, layer.weight.grad.dtype))
    return seen


def losses_of_two_devices(torch: Library) -> Any:
    here, there = torch.ones(3, 4), torch.ones(3, 4, device="meta")
    return [
        outcome(getattr(torch.nn.functional, name), *pair, words=first_line, kinds=RuntimeError)
        for name in ("mse_loss", "smooth_l1_loss", "huber_loss", "soft_margin_loss", "l1_loss")
        for pair in ((here, there), (there, here))
    ]


PROGRAMS = [
    copies_hold_copies,
    copies_of_modules,
    copies_where_clone_gives_something_else,
    writes_into_plain_tensors,
    writes_into_wrappers,
    pickles_of_wrappers,
    modules_of_wrappers_in_another_dtype,
    wrappers_without_dispatch,
    elements_of_wrappers_that_are_not_one,
    parameters_of_wrappers_in_words,
    functions_that_nobody_answers,
    operators_of_two_classes,
    named_results_of_classes,
    modes_that_only_pass_on,
    silent_function_modes,
    classes_that_see_operations_see_no_functions,
    nobody_answers,
    numbers_are_read_by_one_operation,
    nodes_of_operations,
    gradients_of_a_wrong_shape,
    what_a_context_needs,
    defaults_in_schemas,
    derivatives_with_lists_and_keywords,
    tags_of_operations,
    checks_of_what_only_writes,
    checks_without_a_rule_for_shapes,
    checks_of_a_wrong_rule_for_shapes,
    prelu_in_autocast,
    losses_of_two_devices,
]


def _told(program: Callable[[Library], Any], torch: Library) -> str:
    return re.sub(r"0x[0-9a-f]+", "0x", said(program, torch, words=before_the_hint)).replace("retrograd", "torch")


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda one: one.__name__)
def test_programs(program: Callable[[Library], Any]) -> None:
    import torch

    assert _told(program, retrograd) == _told(program, torch)


@pytest.mark.parametrize("name", ANSWERS)
def test_answers_of_modes(name: str) -> None:
    import torch

    assert _told(ANSWERS[name], retrograd) == _told(ANSWERS[name], torch)


def test_an_index_without_numbers_writes_nowhere() -> None:
    places = retrograd.zeros(3, dtype=retrograd.int64, device="meta")
    with pytest.raises(RuntimeError, match="is not on the expected device"):
        retrograd.ones(3, 4).index_add(0, places, retrograd.ones(3, 4))
