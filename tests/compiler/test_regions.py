"""Functions that print, count, branch on numbers and catch errors: parts of them are compiled, and all happens as in eager."""

from __future__ import annotations

import contextlib
import copy
import gc
import io
import threading
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.nn import functional as F  # noqa: N812
from tests.compiler.effect_programs import source
from tests.compiler.sources import define

PROGRAMS, PARTS = 15, 4


def shown(value: Any) -> Any:
    """Return what can be compared of a value, to four places."""
    if isinstance(value, torch.Tensor):
        grad = shown(value.grad) if value.is_leaf else None
        return value.shape, value.requires_grad, grad, [round(one, 4) for one in value.detach().flatten().tolist()]
    if isinstance(value, (list, tuple)):
        return [type(value).__name__, *map(shown, value)]
    if isinstance(value, dict):
        return {name: shown(one) for name, one in value.items()}
    return round(value, 4) if isinstance(value, float) else repr(value)


def outcome(function: Callable[..., Any], *args: Any) -> tuple[Any, str]:
    """Return what a call gives or raises, and what it prints."""
    text = io.StringIO()
    with contextlib.redirect_stdout(text), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            result = shown(function(*args))
        except Exception as error:
            result = type(error).__name__, str(error).partition("\n")[0]
    return result, text.getvalue()


def parts_of(function: Any) -> list[Any]:
    """Return what `explain` says of the compiled parts of a function."""
    return [one for one in torch.compiler.explain(function).regions if one.records]


# ---- random programs ----
def run_random(seed: int, compiles: bool) -> tuple[list[Any], Any]:
    scope: dict[str, Any] = {"__name__": "program", "torch": torch}
    define(source(seed), f"<program with effects {seed}>", scope)
    program, state = scope["make"]()
    function = torch.compile(program) if compiles else program
    found = []
    for call in range(4):
        torch.manual_seed(call)
        given = [torch.randn(3, 3, requires_grad=call == 3), torch.randn(3, 3), torch.randn(3, 3)]
        log: list[Any] = [1.0] * (call % 2)
        told = outcome(function, *given, call - 1, 0.5 * (call % 2), log)
        modules = [(one.calls, shown(one.weight)) for one in (scope["quiet"], scope["loud"])]
        found.append((told, shown(log), scope["COUNT"], state(), modules, shown(given)))
    return found, function


@pytest.mark.parametrize("part", range(PARTS))
def test_random_programs_with_effects(part: int) -> None:
    split = 0
    for seed in range(part * PROGRAMS, (part + 1) * PROGRAMS):
        expected, _ = run_random(seed, compiles=False)
        made, function = run_random(seed, compiles=True)
        assert made == expected, f"program {seed}:\n{source(seed)}"
        split += bool(function._compiled.split)
    assert split > PROGRAMS / 2


# ---- loops as people write them ----
class Net(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.first, self.last = nn.Linear(4, 8), nn.Linear(8, 2)

    def forward(self, x: Any) -> Any:
        return self.last(torch.tanh(self.first(x)))


class Telling(Net):
    """Counts its calls and prints in the middle."""

    def __init__(self) -> None:
        super().__init__()
        self.calls = 0

    def forward(self, x: Any) -> Any:
        self.calls += 1
        hidden = torch.tanh(self.first(x)) * 0.5 + 1
        hidden = hidden / hidden.norm(dim=1, keepdim=True)
        print(f"call {self.calls}: {hidden.mean().item():.3f}")
        return self.last(hidden) * 2 - 1


def batches(count: int = 6) -> list[Any]:
    torch.manual_seed(1)
    return [(torch.randn(5, 4), torch.randint(0, 2, (5,))) for _ in range(count)]


def plain_loop(model: Any, optimizer: Any, data: Any, log: list[Any]) -> float:
    total = 0.0
    for step, (x, y) in enumerate(data):
        optimizer.zero_grad()
        loss = F.cross_entropy(model(x), y)
        loss.backward()
        optimizer.step()
        total += loss.item()
        if step % 2 == 0:
            print(f"{step}: {loss.item():.4f}")
        log.append(total)
    return total / len(data)


def stops_early(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    best, patience = float("inf"), 2
    for epoch in range(4):
        model.train()
        for x, y in data:
            optimizer.zero_grad()
            loss = F.cross_entropy(model(x), y) + 1e-3 * sum((p**2).sum() for p in model.parameters())
            loss.backward()
            torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
            optimizer.step()
        model.eval()
        right = seen = 0
        with torch.no_grad():
            for x, y in data:
                scores = model(x)
                right += (scores.argmax(1) == y).sum().item()
                seen += len(y)
        print("epoch", epoch, right / seen)
        if loss.item() < best - 0.01:
            best = loss.item()
        else:
            patience -= 1
            if not patience:
                break
        log.append((epoch, best))
    else:
        log.append("all")
    return best, right


def catches(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    done = 0
    for x, y in data:
        try:
            scores = model(x)
            loss = F.cross_entropy(scores, y)
            if loss.item() > 0.7:
                raise ValueError(f"too large in step {done}")
            loss.backward()
        except ValueError as error:
            log.append(str(error))
            log.append(scores.mean().item())
            continue
        finally:
            done += 1
        optimizer.step()
        optimizer.zero_grad()
    return done, loss


def accumulates(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    optimizer.zero_grad()
    for step, (x, y) in enumerate(data, 1):
        loss = F.cross_entropy(model(x), y) / 2
        loss.backward()
        if step % 2 == 0:
            optimizer.step()
            optimizer.zero_grad()
            log.append(step)
    print(loss)
    return loss.detach()


def by_index(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    x, y = torch.cat([one for one, _ in data]), torch.cat([one for _, one in data])
    size = 10
    for start in range(0, len(x), size):
        part, wanted = x[start : start + size], y[start : start + size]
        loss = F.cross_entropy(model(part), wanted)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        log.append(round(float(loss), 3))
        print(start, log[-1])
    return model.first.weight


def with_functions_inside(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    scale = 1.0

    def loss_of(x: Any, y: Any) -> Any:
        return F.cross_entropy(model(x), y) * scale

    for x, y in data:
        optimizer.zero_grad()
        loss = loss_of(x, y)
        loss.backward()
        optimizer.step()
        scale = scale * 0.5 + loss.item()
        log.append(scale)
    return [f(x, y).item() for f in (loss_of, loss_of)]


def as_dictionaries(model: Any, optimizer: Any, data: Any, log: list[Any]) -> Any:
    outputs = []
    for x, y in data:
        batch = {"x": x, "y": y}
        scores = model(batch["x"])
        losses = {"entropy": F.cross_entropy(scores, batch["y"]), "size": scores.pow(2).mean() * 0.01}
        total = sum(losses.values())
        optimizer.zero_grad()
        total.backward()
        optimizer.step()
        print({name: round(one.item(), 3) for name, one in losses.items()})
        outputs.append(scores.detach())
    return torch.stack(outputs).mean(0)


LOOPS = (
    plain_loop, stops_early, catches, accumulates, by_index, with_functions_inside, as_dictionaries,
)  # fmt: skip


def run_loop(function: Callable[..., Any], model: type, make: Callable[..., Any]) -> Any:
    torch.manual_seed(0)
    net = model()
    optimizer = make(net.parameters())
    log: list[Any] = []
    told = [outcome(function, net, optimizer, batches(), log) for _ in range(3)]
    return told, shown(log), [shown(one) for one in net.parameters()], getattr(net, "calls", 0)


@pytest.mark.parametrize("model", [Net, Telling], ids=lambda cls: cls.__name__)
@pytest.mark.parametrize("function", LOOPS, ids=lambda function: function.__name__)
def test_a_loop_does_what_it_does_in_eager(function: Callable[..., Any], model: type) -> None:
    def make(parameters: Any) -> Any:
        return torch.optim.SGD(parameters, lr=0.1, momentum=0.9)

    compiled = torch.compile(function)
    assert run_loop(compiled, model, make) == run_loop(function, model, make)
    if function not in (
        as_dictionaries,
        with_functions_inside,
    ):  # whose parts have several results that require gradients, or change
        assert parts_of(compiled)


def test_a_function_that_is_compiled_twice_is_compiled_for_each() -> None:
    def summed(x: Any, numbers: list[float]) -> float:
        total = 0.0
        for number in numbers:
            total += ((x * number).sin() + x.cos()).tanh().sum().item()
        return total

    other, compiled = torch.compile(summed), torch.compile(summed)
    other(torch.ones(3), [1.0, 2.0])
    compiled(torch.ones(3), [1.0, 2.0])
    del other
    gc.collect()
    for _ in range(2):
        assert compiled(torch.ones(5), [1.0, 2.0]) == pytest.approx(summed(torch.ones(5), [1.0, 2.0]))
    (part,) = torch.compiler.explain(compiled).regions
    assert not part.reasons


def test_a_training_step_in_a_loop_is_one_program() -> None:
    compiled = torch.compile(plain_loop)
    run_loop(compiled, Net, lambda parameters: torch.optim.Adam(parameters, lr=0.01))
    (part,) = parts_of(compiled)
    assert all("cross_entropy" in one.code or "log(" in one.code for one in part.records)
    assert part.name.endswith(f":{first_line(plain_loop) + 3}-{first_line(plain_loop) + 6}")


def first_line(function: Any) -> int:
    return int(function.__code__.co_firstlineno)


# ---- what a region must not change ----
def test_a_list_stays_the_same_list() -> None:
    def function(xs: list[Any]) -> Any:
        print(len(xs))
        ys = [torch.tanh(x) * 2 + 1 for x in xs]
        zs = ys
        print(len(ys))
        return ys, zs, xs

    compiled = torch.compile(function)
    given = [torch.ones(3), torch.zeros(2)]
    for _ in range(3):
        with contextlib.redirect_stdout(io.StringIO()):
            ys, zs, xs = compiled(given)
        assert ys is zs
        assert xs is given


def test_a_result_that_is_an_argument_or_stands_in_two_places_is_one_object() -> None:
    def function(xs: list[Any]) -> Any:
        ys = [x * 2 for x in xs]
        return ys, {"ys": ys}, xs

    compiled = torch.compile(function, fullgraph=True)
    given = [torch.ones(3)]
    for _ in range(3):
        ys, held, xs = compiled(given)
        assert held["ys"] is ys
        assert xs is given


def test_variables_that_functions_inside_share() -> None:
    def function(x: Any) -> Any:
        scale = 1.0

        def scaled(v: Any) -> Any:
            return torch.tanh(v * scale) + v

        first = scaled(x)
        scale = 2.0
        second = scaled(x)
        print("done")
        return first, second

    compiled = torch.compile(function)
    x = torch.linspace(-1, 1, 4)
    expected = outcome(function, x)
    assert [outcome(compiled, x) for _ in range(3)] == [expected] * 3


def test_what_is_bound_before_an_error_is_bound_behind_it() -> None:
    def function(x: Any, limit: float) -> Any:
        y = x * 0
        try:
            y = torch.tanh(x) * 2
            z = y.exp() + 1
            if z.sum().item() > limit:
                raise ValueError("large")
            y = y * 10
        except ValueError:
            print("caught")
        return y, z

    compiled = torch.compile(function)
    x = torch.linspace(-1, 1, 4)
    for limit in (0.0, 1e9, 0.0, 1e9):
        assert outcome(compiled, x, limit) == outcome(function, x, limit)


def test_an_error_has_the_line_of_the_program() -> None:
    def function(x: Any) -> Any:
        print("begin")
        y = torch.tanh(x) * 2
        z = y + torch.ones(7)
        print("end")
        return z

    compiled = torch.compile(function)
    for _ in range(2):
        with contextlib.redirect_stdout(io.StringIO()), pytest.raises(RuntimeError, match="must match") as caught:
            compiled(torch.ones(3))
        lines = [one.lineno + 1 for one in caught.traceback if str(one.path) == __file__]
        assert lines[-1] == first_line(function) + 3


def test_defaults_may_change() -> None:
    def function(x: Any, factor: float = 2.0, *, shift: float = 0.0) -> Any:
        print("here")
        return torch.tanh(x * factor).exp() + shift

    compiled = torch.compile(function)
    x = torch.ones(2)
    for defaults, named in (((2.0,), {"shift": 0.0}), ((3.0,), {"shift": 1.0}), ((2.0,), {"shift": 0.0})):
        function.__defaults__, function.__kwdefaults__ = defaults, named
        assert outcome(compiled, x) == outcome(function, x)


@pytest.mark.parametrize("prints", [False, True])
def test_gradients_of_one_result_by_another(prints: bool) -> None:
    def function(x: Any) -> Any:
        if prints:
            print("here")
        t = torch.tanh(x) * 2 + 1
        t = t.exp() * t
        loss = (t**2 + torch.sin(t)).sum() / 2
        return t, {"loss": loss}

    compiled = torch.compile(function, fullgraph=not prints)
    wanted = None
    for run in (function, compiled, compiled, compiled):
        x = torch.linspace(-1, 1, 4).requires_grad_()
        with contextlib.redirect_stdout(io.StringIO()):
            t, held = run(x)
        t.retain_grad()
        (asked,) = torch.autograd.grad(held["loss"], t, create_graph=True)
        asked.sum().backward(retain_graph=True)
        held["loss"].backward()
        found = shown([t.grad, x.grad, asked.detach()])
        wanted = found if wanted is None else wanted
        assert found == wanted
    assert len(parts_of(compiled)) > 1


def test_what_writes_is_differentiated_twice() -> None:
    def penalty(model: Any, call: Any) -> Any:
        found = []
        for seed in range(3):
            torch.manual_seed(seed)
            x = torch.randn(8, 4, dtype=torch.float64, requires_grad=True)  # `shown` rounds: no last bit decides
            y, other = call(x), call(x * 2)
            (slope,) = torch.autograd.grad(y.sum(), x, create_graph=True)
            (slope.pow(2).sum() + y.mean() + other.sum()).backward()
            found.append(shown([x, *model.parameters(), *model.buffers()]))
            model.zero_grad()
        return found

    def make() -> Any:
        torch.manual_seed(0)
        return nn.Sequential(nn.Linear(4, 6), nn.BatchNorm1d(6), nn.Tanh(), nn.Linear(6, 1)).double()

    eager, model = make(), make()
    assert penalty(model, torch.compile(model, fullgraph=True)) == penalty(eager, eager)


def test_threads() -> None:
    compiled = torch.compile(plain_loop)
    expected = run_loop(plain_loop, Net, lambda parameters: torch.optim.SGD(parameters, lr=0.1))[1:]
    failures: list[Any] = []

    def work() -> None:
        torch.manual_seed(0)  # each thread has a stream of its own in no library
        model = Net()
        model.load_state_dict(start)
        log: list[Any] = []
        optimizer = torch.optim.SGD(model.parameters(), lr=0.1)
        for _ in range(3):
            compiled(model, optimizer, data, log)
        if shown(log) != expected[0]:
            failures.append(log)

    torch.manual_seed(0)
    start, data = Net().state_dict(), batches()
    text = io.StringIO()
    with contextlib.redirect_stdout(text):
        threads = [threading.Thread(target=work) for _ in range(3)]
        for one in threads:
            one.start()
        for one in threads:
            one.join()
    assert not failures


def test_variables_that_hold_functions_and_layers_may_be_bound_again() -> None:
    first, second = nn.Linear(2, 2), nn.Linear(2, 2)

    def f(x: Any, turn: int) -> Any:
        activation, layer = torch.sin, first
        print("here")
        if turn > 0:
            x = activation(layer(x)) * 2 + 1
        else:
            layer, activation = second, torch.cos
            x = activation(layer(x)) * 3 + x
        x = x.tanh() * layer.weight.sum() + x
        return activation(x) + layer(x)

    compiled = torch.compile(f)
    x = torch.randn(3, 2)
    for call in range(9):
        assert outcome(compiled, x, call % 3) == outcome(f, x, call % 3)
    assert parts_of(compiled)


def test_a_region_whose_layer_keeps_changing() -> None:
    layers = [nn.Linear(2, 2) for _ in range(6)]

    def f(x: Any, layer: Any) -> Any:
        print("here")
        y = layer(x).tanh() * 2 + 1
        if x.shape[0] == 3:
            layer = layers[0]
            y = layer(y) + layer(x) * 3
        return layer(y).exp() * y

    compiled = torch.compile(f)
    for call in range(18):
        x = torch.randn(2 + call % 2, 2)
        assert outcome(compiled, x, layers[call % 6]) == outcome(f, x, layers[call % 6])


def test_a_function_of_the_standard_library_may_be_split() -> None:
    def f(x: Any) -> Any:
        return copy.copy(x.detach()), x * 2

    compiled = torch.compile(f)
    for _ in range(3):
        assert outcome(compiled, torch.ones(2)) == outcome(f, torch.ones(2))


def test_an_else_behind_a_try_that_always_returns() -> None:
    def f(x: Any, size: int) -> Any:
        try:
            y = x.reshape(size, -1) * 2 + 1
            print("fits")
            return (y.tanh() * y).sum()
        except RuntimeError:
            print("does not fit")
            return (x * 3).exp() + x
        else:
            print("never")
        finally:
            print("done")

    compiled = torch.compile(f)
    for size in (2, 3, 4, 2, 5, 3):
        assert outcome(compiled, torch.ones(6), size) == outcome(f, torch.ones(6), size)


def test_functions_that_look_at_their_frame_are_left_alone() -> None:
    def function(x: Any) -> Any:
        y = torch.tanh(x) * 2 + 1
        print("here")
        return sorted(locals()), y

    compiled = torch.compile(function)
    x = torch.ones(2)
    assert outcome(compiled, x) == outcome(function, x)
    assert not torch.compiler.explain(compiled).regions


def test_fullgraph_says_what_stands_in_the_way() -> None:
    def function(x: Any) -> Any:
        print("here")
        return x * 2

    with pytest.raises(RuntimeError, match="print"):
        torch.compile(function, fullgraph=True)(torch.ones(2))


# ---- variables that functions inside share ----
def closures_over_a_loop(x: Any) -> Any:
    functions = []
    for k in range(3):
        functions.append(lambda y: y * k)  # noqa: B023 - all see the last one
        print(k)
    return [function(x) + 1 for function in functions]


def generators_over_a_loop(x: Any) -> Any:
    pending, k = [], 0
    while k < 3:
        pending.append(x * k + i for i in range(2))
        k += 1
        print(k)
    return [torch.stack(list(one)) for one in pending]


def closure_over_a_variable_that_changes(x: Any) -> Any:
    k = 1.0
    scaled = lambda y: (y * k).tanh() + k  # noqa: E731
    first = scaled(x) + 1
    print("first")
    k = 2.0
    return first, scaled(x) + 1


def counter_inside(x: Any) -> Any:
    count = 0

    def counted(y: Any) -> Any:
        nonlocal count
        count += 1
        return y * count

    first = counted(x) + count
    print(count)
    second = counted(first) * count + count
    return first, second, count


@pytest.mark.parametrize(
    "function",
    [closures_over_a_loop, generators_over_a_loop, closure_over_a_variable_that_changes, counter_inside],
    ids=lambda function: function.__name__,
)
def test_functions_inside_see_variables_as_they_are_when_they_run(function: Callable[..., Any]) -> None:
    compiled = torch.compile(function)
    for x in (torch.ones(2), torch.arange(2.0), torch.ones(2)):
        assert outcome(compiled, x) == outcome(function, x)
