"""Results of compiled functions: views, tensors outside of the graph and gradients are what they are in eager, in every call."""

from __future__ import annotations

import contextlib
import warnings
from typing import Any

import pytest

import retrograd as torch
from retrograd.compiler import _runner, _verifying


def transposed(x: Any) -> Any:
    return (x.t(),)


def view_of_a_result(x: Any) -> Any:
    return ((x * 2).t(),)


def several_views(x: Any) -> Any:
    return (x * 2).unbind(0)


def all_kinds(x: Any) -> Any:
    y = x * 2
    return y.t(), x.exp()[1], x.view(12), y


def written_and_shown(x: Any) -> Any:
    y = x * 2
    y.mul_(3)
    return y, y.detach(), y[0]


def without_gradients(x: Any) -> Any:
    with torch.no_grad():
        return x[0], x.t()


def without_and_then_with(x: Any) -> Any:
    with torch.no_grad():
        y = x.t()
    return (y[0],)


def outside_of_the_graph(x: Any) -> Any:
    return x.detach(), x.exp()


def view_of_what_was_written(x: Any) -> Any:
    y = x * x
    y[0] = 1
    return y[1:], y.sum()


def its_gradient(x: Any) -> Any:
    x.exp().sum().backward()
    return (x.grad,)


FUNCTIONS = [
    transposed, view_of_a_result, several_views, all_kinds, written_and_shown, without_gradients, without_and_then_with,
    outside_of_the_graph, view_of_what_was_written, its_gradient,
]  # fmt: skip


def facts(x: Any, results: Any) -> Any:
    bases = [one if one._base is None else one._base for one in results]
    return [
        (one.shape, one.stride(), one.requires_grad, one.is_leaf, one._is_view(), base is x, one is x.grad)
        for one, base in zip(results, bases, strict=True)
    ], [[one is other for other in bases] for one in bases]


@pytest.mark.parametrize("function", FUNCTIONS)
def test_results_show_what_they_show_in_eager(function: Any) -> None:
    compiled = torch.compile(function, fullgraph=function is not without_and_then_with)
    for number in range(3):
        sides = []
        for run in (function, compiled):
            torch.manual_seed(number)
            x = torch.randn(4, 3, requires_grad=True)
            results = run(x)
            total = sum((one * (at + 1.5)).sum() for at, one in enumerate(results))
            grads = torch.autograd.grad(total, x, allow_unused=True) if total.requires_grad else ()
            described, numbers = facts(x, results), [one.detach().clone() for one in results]
            shown = [one.detach() for one in (x, *results)]
            shown[1].mul_(2)  # seen through whatever shares its memory
            sides.append((described, numbers, grads, shown))
        assert sides[0][0] == sides[1][0]
        for one, other in zip(sides[1][1:], sides[0][1:], strict=True):
            torch.testing.assert_close(one, other)


def test_a_view_made_by_several_must_not_be_written() -> None:
    compiled = torch.compile(several_views, fullgraph=True)
    for _ in range(3):
        with pytest.raises(RuntimeError, match="returns multiple views"):
            compiled(torch.ones(2, 2, requires_grad=True))[0].mul_(2)


# ---- a wrong program is noticed ----
def writes(x: Any, y: Any) -> Any:
    x.add_(y)
    return x * y


def makes_gradients(w: Any) -> Any:
    w.exp().sum().backward()


def computes(x: Any) -> Any:
    return x.exp()


@pytest.mark.parametrize(
    ("function", "made", "reason"),
    [
        (writes, lambda: (torch.ones(3), torch.ones(3)), "the numbers of a"),
        (makes_gradients, lambda: (torch.ones(3, requires_grad=True),), "the gradient of a tensor that was there"),
        (computes, lambda: (torch.ones(3),), "the numbers of a result"),
    ],
)
def test_a_wrong_program_is_thrown_away(monkeypatch: pytest.MonkeyPatch, function: Any, made: Any, reason: str) -> None:
    grouped = _runner.grouped

    def spoiled(program: Any) -> Any:
        steps = grouped(program)
        original = steps.function

        def function_of(what: str) -> Any:
            run = original(what)

            def wrong(*arrays: Any) -> Any:
                found = run(*arrays)
                for one in (*found, *(arrays if function is writes else ())):
                    one += 0.5
                return found

            return wrong

        steps.function = function_of
        return steps

    monkeypatch.setattr(_runner, "grouped", spoiled)
    compiled = torch.compile(function)
    for _ in range(3):
        args, others = made(), made()
        expected, found = function(*others), compiled(*args)
        for one, other in zip(args, others, strict=True):
            torch.testing.assert_close((one, one.grad), (other, other.grad))
            assert one._version == other._version
        torch.testing.assert_close(found, expected)
    assert reason in compiled._compiled.reasons[0]
    assert not compiled._compiled.records


def test_a_trial_calls_no_hooks() -> None:
    seen: list[Any] = []
    x = torch.ones(3, requires_grad=True)
    x.register_hook(seen.append)
    compiled = torch.compile(computes)
    results = [compiled(x) for _ in range(2)]
    assert not seen
    results[1].sum().backward()
    assert len(seen) == 1


def test_hooks_of_tensors_in_the_middle_run_once_in_each_backward() -> None:
    seen: list[float] = []

    def f(x: Any) -> Any:
        y = x * 2
        y.register_hook(lambda g: seen.append(g.sum().item()))
        z = y.exp() * y
        return (z.sin() + z).sum()

    compiled = torch.compile(f)
    for call in range(4):
        x = torch.tensor([0.5, -1.0], requires_grad=True)
        compiled(x).backward()
        assert len(seen) == call + 1


@pytest.mark.parametrize("is_leaf", [True, False])
def test_hooks_of_captured_tensors_run_once_where_the_function_runs_again(is_leaf: bool) -> None:
    def outcome(wrap: Any) -> Any:
        x = torch.tensor([0.5, -1.0], requires_grad=True)
        weight = x if is_leaf else x * 2
        calls: list[int] = []

        def scaled(g: Any) -> Any:
            calls.append(1)
            return g * 10

        weight.register_hook(scaled)
        function = wrap(lambda y: (y * weight, (y + weight).sin(), weight.exp() * weight))
        found = []
        for call in range(7):  # gradients of one result only
            x.grad = None
            function(torch.full((2,), float(call)))[call % 3].sum().backward(retain_graph=True)
            found.append((x.grad, len(calls)))
        for _ in range(3):
            results = function(torch.ones(2))
            (first,) = torch.autograd.grad((results[0] * results[2]).sum(), weight, create_graph=True)
            (second,) = torch.autograd.grad(first.sum(), weight, retain_graph=True)
            found.append((first.detach(), second, len(calls)))
        return found

    torch.testing.assert_close(outcome(torch.compile), outcome(lambda function: function))


@pytest.mark.parametrize("compiles", [False, True])
def test_an_argument_that_was_overwritten_is_no_output_of_the_compiled_function(compiles: bool) -> None:
    def f(x: Any, y: Any) -> Any:
        return (x * y).sum()

    function = torch.compile(f) if compiles else f
    for _ in range(3):
        x, y = torch.ones(2, requires_grad=True), torch.ones(2)
        result = function(x, y)
        y.add_(1)
        with pytest.raises(RuntimeError, match=r"inplace operation: \[torch.FloatTensor \[2\]\] is at version 1"):
            result.backward()


def test_rounding_is_that_of_the_narrowest_numbers() -> None:
    def mixed(x: Any, y: Any) -> Any:
        return x.double() * y

    compiled = torch.compile(mixed)
    compiled(torch.ones(3), torch.ones(3, dtype=torch.float64))
    assert _verifying.rounding(compiled._compiled.records[0].record.recorded) == 1e-3


# ---- the record as text ----
def test_the_newest_record_is_shown_as_python() -> None:
    compiled = torch.compile(computes)
    assert compiled.code == ""
    compiled(torch.ones(3, requires_grad=True))
    scope: dict[str, Any] = {}
    exec(compiled.code, {"exp": torch.exp, "multiply": torch.mul}, scope)
    assert "def backward(" in compiled.code
    out, *saved = scope["forward"](torch.ones(3))
    torch.testing.assert_close(out, torch.ones(3).exp())
    torch.testing.assert_close(scope["backward"](*saved, torch.full((3,), 2.0))[0], 2 * torch.ones(3).exp())
    assert compiled.code == torch.compiler.explain(compiled).code
    torch.compiler.reset()
    assert compiled.code == ""


def test_the_code_of_a_module() -> None:
    class Coded(torch.nn.Linear):
        code = "of its own"

    for module, expected in ((Coded(2, 2), "of its own"), (torch.nn.Linear(2, 2), "def forward(")):
        compiled = torch.compile(module)
        compiled(torch.ones(1, 2))
        assert compiled.code.startswith(expected)


# ---- around and inside ----
def sine(x: Any) -> Any:
    return (x.sin() * x).sum()


def forward_mode(x: Any, t: Any) -> Any:
    return torch.func.jvp(sine, (x,), (t,))


def by_functional(x: Any, t: Any) -> Any:
    return torch.autograd.functional.hvp(sine, (x,), (t,))


@pytest.mark.parametrize("function", [forward_mode, by_functional])
def test_forward_mode_is_compiled(function: Any) -> None:
    compiled = torch.compile(function, fullgraph=True)
    for number in range(3):
        x, t = torch.randn(2, 3).add(number).unbind()
        x, t = x.clone(), t.clone()
        torch.testing.assert_close(compiled(x, t), function(x, t))


def test_forward_mode_goes_through_a_compiled_function() -> None:
    compiled = torch.compile(sine)
    for number in range(3):
        x, t = torch.full((3,), number + 0.5), torch.ones(3)
        torch.testing.assert_close(torch.func.jvp(compiled, (x,), (t,)), torch.func.jvp(sine, (x,), (t,)))
        compiled(x)


def calls_of_global_hooks(library: Any, backend: str) -> Any:
    """Return which modules a hook for all sees in three calls, and the warnings."""
    model = library.compile(library.nn.Sequential(library.nn.Linear(2, 2), library.nn.ReLU()), backend=backend)
    if library is torch:  # torch forgets the hooks of modules inside that come after the first call
        model(library.ones(1, 2))
    seen: list[str] = []
    handle = library.nn.modules.module.register_module_forward_hook(lambda one, *_: seen.append(type(one).__name__))
    try:
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            for _ in range(3):
                model(library.ones(1, 2))
    finally:
        handle.remove()
    return seen, {str(one.message) for one in told}


@pytest.mark.oracle
def test_hooks_of_all_modules_are_called_as_in_torch() -> None:
    oracle = pytest.importorskip("torch")
    assert calls_of_global_hooks(torch, "inductor") == calls_of_global_hooks(oracle, "eager")


def test_a_gradient_of_one_result_after_inputs_of_another_have_changed() -> None:
    """What a GAN does: the discriminator takes a step between its own backward and that of the generator."""

    def trained(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        maker = torch.nn.Linear(3, 3)
        judge = torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Linear(3, 1))
        optimizer = torch.optim.SGD(judge.parameters(), lr=0.1)

        def judged(z: Any) -> Any:
            fake = torch.tanh(maker(z))
            return fake, judge(fake.detach()).square().sum()

        run = torch.compile(judged) if compiled else judged
        found: list[Any] = []
        for _ in range(4):
            maker.zero_grad()
            optimizer.zero_grad()
            fake, loss = run(torch.randn(2, 3))
            loss.backward()
            found.append([one.grad for one in maker.parameters()])
            optimizer.step()
            judge(fake).sum().backward()
            found += [one.grad.clone() for one in (*maker.parameters(), *judge.parameters())]
        fake, loss = run(torch.randn(2, 3))
        optimizer.step()
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            loss.backward()
        if compiled:
            assert len(run._compiled.records) == 1  # type: ignore[attr-defined]
        return found

    torch.testing.assert_close(trained(True), trained(False))


class Kept(torch.autograd.Function):
    """Gives what the user has as a gradient."""

    @staticmethod
    def forward(ctx: Any, x: Any, kept: Any) -> Any:
        ctx.save_for_backward(kept)
        return x * kept

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.saved_tensors[0], None


class Saved(torch.autograd.Function):
    """Gives what it has saved as a gradient, which is its result."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        y = x.exp()
        ctx.save_for_backward(y)
        return y

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return ctx.saved_tensors[0]


def test_what_is_saved_is_not_given_as_a_gradient() -> None:
    """The engine adds to a gradient."""
    compiled = torch.compile(lambda x: Saved.apply(x))
    for _ in range(3):
        x = torch.ones(3, requires_grad=True)
        other = (x * 2).sum()
        y = compiled(x)
        for _ in range(2):
            (grad,) = torch.autograd.grad(y.sum() + other, x, retain_graph=True)
            torch.testing.assert_close(grad, y.detach() + 2)
        torch.testing.assert_close(y.detach(), x.detach().exp())
    assert compiled._compiled.records


def test_gradients_of_some_results_have_memory_of_their_own() -> None:
    """The engine adds others to them: that must not be seen in those of other inputs, nor in what the user has."""

    def several(y: Any, x: Any, kept: Any) -> Any:
        return (y + x) * 3, Kept.apply(x, kept) + y, x * y

    compiled = torch.compile(several)
    for at in (0, 0, 1, 1, 2):
        found = []
        for function in (several, compiled):
            x, kept = torch.ones(2, 2, requires_grad=True), torch.full((2, 2), 3.0)
            y = x * 1
            before = (y * 2).sum() + (x * 2).sum()  # its gradients come later
            out = function(y, x, kept)[at]
            found.append(torch.autograd.grad(out.sum() + before, x))
            assert kept.tolist() == [[3.0, 3.0], [3.0, 3.0]]
        torch.testing.assert_close(*found)


@pytest.mark.parametrize("together", [1, 2, 3])
def test_gradients_of_some_of_many_results_after_inputs_of_others_have_changed(together: int) -> None:
    """An ensemble whose members take their steps one after the other: each has a backward, and those of several are added."""

    def trained(compiled: bool) -> list[Any]:
        torch.manual_seed(0)
        members = [torch.nn.Sequential(torch.nn.Linear(3, 3), torch.nn.Tanh(), torch.nn.Linear(3, 1)) for _ in range(6)]
        optimizers = [torch.optim.SGD(one.parameters(), lr=0.1) for one in members]
        unused = torch.ones(3, requires_grad=True)

        def losses(x: Any) -> Any:
            return [(member(x) * member(x)).mean() for member in members] + [(x * unused).sum()]

        run = torch.compile(losses) if compiled else losses
        found: list[Any] = []
        for _ in range(4):
            every = run(torch.randn(2, 3))
            for at in range(0, 6, together):
                sum(every[at : at + together]).backward()
                for optimizer in optimizers[at : at + together]:
                    optimizer.step()
                    optimizer.zero_grad()
            found += [p.detach().clone() for one in members for p in one.parameters()]
            assert unused.grad is None
        if compiled:  # each choice was compiled when it had been asked for
            (record,) = [one.record for one in run._compiled.records]  # type: ignore[attr-defined]
            assert record.is_compiled_for(frozenset(range(together)))
        return found

    torch.testing.assert_close(trained(True), trained(False))


@pytest.mark.parametrize("retains", [False, True])
def test_what_no_way_leads_to_is_as_if_it_were_not_there(retains: bool) -> None:
    """The gradient of one result calls no hooks of what only others come of, and frees none of its graph."""

    def seen(compiled: bool) -> list[Any]:
        def several(x: Any, y: Any) -> Any:
            return x.sin() * 2, y.cos(), x.detach() + 1

        run = torch.compile(several) if compiled else several
        log: list[Any] = []
        for turn in range(4):
            x, y = (torch.linspace(turn, 1, 3).requires_grad_() for _ in range(2))
            x.register_hook(lambda g: log.append(g.clone()))
            before, beside = x.exp(), y.exp()  # whose graphs save their results
            before.register_hook(lambda g: log.append(g * 2))
            if retains:
                before.retain_grad()
            first, second, _ = run(before, beside)
            first.register_hook(lambda g: log.append(g * 3))
            log.append(torch.autograd.grad(second.sum(), [x, y], allow_unused=True, retain_graph=True)[0])
            second.sum().backward()
            log.extend([x.grad, before.grad if retains else None])
            first.sum().backward()
            log.extend([x.grad, y.grad, before.grad if retains else None])
            with pytest.raises(RuntimeError, match="second time"):
                first.sum().backward()
        return log

    expected, found = seen(False), seen(True)
    assert [one is None for one in found] == [one is None for one in expected]
    kept = [[one.detach() for one in side if one is not None] for side in (found, expected)]
    torch.testing.assert_close(*kept)


@pytest.mark.parametrize("graph", [False, True])
def test_a_gradient_of_one_result_after_another_was_overwritten(graph: bool) -> None:
    """Only the memory of results that have gradients must be as it was, in the first such backward and in later ones."""

    def several(x: Any) -> Any:
        return x.exp(), x.tanh()

    compiled = torch.compile(several)
    for _ in range(3):
        found = []
        for function in (several, compiled):
            x = torch.linspace(-1, 1, 4).requires_grad_()
            first, second = function(x)
            first.mul_(2)
            found.append(torch.autograd.grad(second.sum(), x, retain_graph=True, create_graph=graph))
            with pytest.raises(RuntimeError, match="modified by an inplace operation"):
                torch.autograd.grad(first.sum(), x, create_graph=graph)
        torch.testing.assert_close(*found)


def test_a_graph_of_the_backward_is_not_made_of_other_data() -> None:
    """The function would run again on what the tensor has now, without a change of its version."""

    def several(x: Any) -> Any:
        return x.exp() * x, x.tanh()

    compiled = torch.compile(several)
    for _ in range(3):
        x = torch.linspace(-1, 1, 4).requires_grad_()
        number = torch.tensor(0.5, requires_grad=True)
        for one in (x, number):
            first, _second = compiled(one)
            one.view(-1)  # from now on the number is kept as an array
            (expected,) = torch.autograd.grad(several(one)[0].sum(), one)
            torch.testing.assert_close(torch.autograd.grad(first.sum(), one, create_graph=True)[0].detach(), expected)
        first, second = compiled(x)
        x.data = x.data * 2
        with pytest.raises(RuntimeError, match="got other data"):
            torch.autograd.grad(first.sum(), x, create_graph=True)
        torch.autograd.grad(first.sum() + second.sum(), x)  # needs nothing but what was saved


@pytest.mark.parametrize("kind", ["observes", "doubles", "retains"])
@pytest.mark.parametrize("at", [0, 1])
def test_hooks_of_results_see_the_derivatives_of_their_gradients(kind: str, at: int) -> None:
    """These flow through what was read of the results, as in eager."""

    def several(x: Any) -> Any:
        return x.exp(), (x * x).tanh()

    def chained(
        x: Any,
    ) -> Any:  # the second is Python's: what a trial of the first differentiates leads through its graph
        y = x * x * x
        return y, y.exp()

    def seen(function: Any) -> list[Any]:
        log = []
        for _ in range(4):
            x = torch.tensor([0.5, 1.0], requires_grad=True)
            outs = function(x)
            if kind == "retains":
                outs[at].retain_grad()
            else:
                outs[at].register_hook(lambda g: log.append(g.detach()) or (g if kind == "observes" else 2 * g))
            (g,) = torch.autograd.grad(outs[0].sum() + 2 * outs[1].sum(), x, create_graph=True)
            log.extend(torch.autograd.grad((g * g).sum(), x))
            if kind == "retains":
                log.append(outs[at].grad.detach())
        return log

    for function in (several, chained):
        torch.testing.assert_close(seen(torch.compile(function)), seen(function))


def _items(given: Any) -> tuple[Any, Any]:
    x, shift = given["x"][0], given["shift"]
    return (x @ x).sin() * shift, x.exp() * x


@contextlib.contextmanager
def _seen() -> Any:
    """Fail if what is saved for a backward is saved in the block."""

    def pack(_: Any) -> Any:
        raise AssertionError("a tensor of the forward is saved")

    with torch.autograd.graph.saved_tensors_hooks(pack, lambda kept: kept):
        yield


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("change", ["tensor", "number", "length", "autocast", "under autocast", "hooks"])
def test_a_function_runs_again_as_it_ran_in_the_call(change: str, graph: bool) -> None:
    """On what lists and dictionaries held then, with the numbers that these held, and under the mode of the call."""
    compiled = torch.compile(_items)
    for shift in (1.0, 2.0, 3.0, 4.0):
        found = []
        for function in (_items, compiled):
            x = torch.linspace(-1, 1, 9).reshape(3, 3).requires_grad_()
            given = {"x": [x], "shift": shift}
            around = torch.autocast("cpu", dtype=torch.bfloat16)
            with around if change == "autocast" else contextlib.nullcontext():
                first, second = function(given)
            if change == "tensor":
                given["x"][0] = torch.ones(3, 3, requires_grad=True)
            elif change == "number":
                given["shift"] = 7.0
            elif change == "length":
                given["x"].insert(0, torch.ones(3, 3))
            after = (
                around
                if change == "under autocast"
                else _seen()
                if change == "hooks" and not graph
                else contextlib.nullcontext()
            )
            with after:
                (grad,) = torch.autograd.grad(first.float().sum(), x, create_graph=graph)
            found += [grad, torch.autograd.grad(grad.sum(), x)[0]] if graph else [grad]
            del second
        expected, got = found[: len(found) // 2], found[len(found) // 2 :]
        torch.testing.assert_close(got, expected)


FACTOR = 1.0


def test_a_number_that_was_read_must_be_the_same_where_the_function_runs_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also if it is an input of the program, which no guard asks for."""
    compiled = torch.compile(lambda x: ((x * FACTOR).sin(), x.tanh()))
    for number in (1.0, 2.0, 3.0, 4.0):
        monkeypatch.setitem(globals(), "FACTOR", number)
        x = torch.linspace(-1, 1, 4).requires_grad_()
        first = compiled(x)[0]
        (grad,) = torch.autograd.grad(first.sum(), x, create_graph=True)
        torch.testing.assert_close(grad, (x * number).cos() * number)
    assert any(run.record.found.numbers for run in compiled._compiled.records)
    first = compiled(x)[0]
    monkeypatch.setitem(globals(), "FACTOR", 9.0)
    with pytest.raises(RuntimeError, match="what a compiled function reads"):
        torch.autograd.grad(first.sum(), x, create_graph=True)


@pytest.mark.parametrize("graph", [False, True])
@pytest.mark.parametrize("change", ["flag", "memory", "data", "requires_grad"])
def test_gradients_of_some_results_after_a_change_that_eager_does_not_see(change: str, graph: bool) -> None:
    """The function cannot run again, but its backward has saved nothing that was changed."""
    layer, last = torch.nn.Linear(3, 3), torch.nn.Linear(3, 3)
    layer.train()

    def several(x: Any) -> Any:
        y = last(layer(x).tanh() * (2 if layer.training else 3))
        return y.sum(), (y * y).mean()

    compiled = torch.compile(several)
    for number in range(3):
        found = []
        for function in (several, compiled):
            torch.manual_seed(number)
            x = torch.randn(2, 3)
            layer.train()
            for one in (layer, last):
                one.zero_grad()
                one.requires_grad_(True)
            first, second = function(x)
            if change == "flag":
                layer.eval()
            elif change == "memory":
                with torch.no_grad():
                    layer.weight.mul_(1)
            elif change == "data":
                layer.weight.data = layer.weight.data.clone()
            else:
                layer.requires_grad_(False)
            if not graph:
                first.backward()
                found.append(
                    [
                        None if one.grad is None else one.grad.clone()
                        for one in (*layer.parameters(), *last.parameters())
                    ]
                )
            elif change == "requires_grad":
                found.append(torch.autograd.grad(second, last.weight, create_graph=True))
            elif function is compiled and number:  # a graph is made of the function as it is
                with pytest.raises(RuntimeError, match="Hint: these run the function again"):
                    torch.autograd.grad(first, last.weight, create_graph=True)
        if len(found) == 2:
            assert [one is None for one in found[0]] == [one is None for one in found[1]]
            torch.testing.assert_close(
                [one for one in found[1] if one is not None], [one for one in found[0] if one is not None]
            )


def test_infinite_values_are_not_multiplied_by_the_zeros_of_other_results() -> None:
    weight = torch.ones(2, requires_grad=True)
    flags = {"on": True}

    def several(x: Any) -> Any:
        return (x * weight).sum() * (1 if flags["on"] else 2), (weight / x).sum() * 2

    compiled = torch.compile(several)
    compiled(torch.ones(2))
    first, _second = compiled(torch.zeros(2))
    flags["on"] = False
    with pytest.raises(RuntimeError, match="what a compiled function reads"):
        first.backward()


def test_parts_of_a_function_run_again_with_the_objects_of_the_call(capsys: pytest.CaptureFixture[str]) -> None:
    """What stands in their cells by then is that of the last call."""
    members = [torch.nn.Linear(3, 3, dtype=torch.float64) for _ in range(3)]

    def printing(member: Any, x: Any) -> Any:
        y = (member(x) * 2 + 1).sin()
        print(y.shape)
        z = (y * 2 + member(y)).cos()
        return z.sum(), z * y

    compiled = torch.compile(printing)
    for _ in range(3):
        found = []
        x = torch.randn(2, 3, dtype=torch.float64)
        for function in (printing, compiled):
            outs = [function(one, x) for one in members]
            for one, (first, _second) in zip(members, outs, strict=True):
                (grad,) = torch.autograd.grad(first, one.weight, create_graph=True)
                found.append(torch.autograd.grad((grad * grad).sum(), one.weight)[0])
        torch.testing.assert_close(found[3:], found[:3])
    assert capsys.readouterr().out.count("Size") == 18


@pytest.mark.parametrize("graph", [False, True])
def test_what_an_argument_has_from_a_captured_tensor_is_not_counted_twice(graph: bool) -> None:
    """Where the function runs again, gradients of what it reads end there, and the backward around adds those of other ways."""
    layer = torch.nn.Linear(3, 3, dtype=torch.float64)
    scale = layer.bias * 2
    wanted = [layer.weight, layer.bias, scale]

    def several(x: Any) -> Any:
        y = layer(x).tanh() * scale
        return y, (y * layer.bias).exp()

    compiled = torch.compile(several)
    for at in (0, 1, 0, 1):
        found = []
        for function in (several, compiled):
            out = function(function(torch.linspace(-1, 1, 9, dtype=torch.float64).reshape(3, 3))[at])[at]
            grads = torch.autograd.grad(out.square().sum(), wanted, create_graph=graph, retain_graph=True)
            found.append(list(grads))
            if graph:
                found[-1] += torch.autograd.grad(sum((one * one).sum() for one in grads), wanted, retain_graph=True)
        torch.testing.assert_close(*found)
