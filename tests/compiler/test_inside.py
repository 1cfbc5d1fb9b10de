"""Compiled functions inside vmap, forward mode and what is made of them: programs run below the levels, and give what eager gives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest

import retrograd as torch
from retrograd import nn
from retrograd.autograd import forward_ad
from retrograd.func import (
    functional_call,
    grad,
    grad_and_value,
    hessian,
    jacfwd,
    jacrev,
    jvp,
    linearize,
    vjp,
    vmap,
)

F = nn.functional
WEIGHT = torch.tensor([[0.3, -0.2, 0.5, 0.1], [0.7, 0.4, -0.6, 0.2], [-0.1, 0.9, 0.3, -0.8]])
PARAMETER = torch.tensor([0.5, -1.0, 2.0, 0.25], requires_grad=True)
FACTOR = 2.0


def compiled_of(call: Any) -> Any:
    return call._compiled


def every(inner: Any) -> Iterator[Any]:
    """Go through a compiled function and what it is below levels."""
    yield inner
    for one in inner.below.values():
        yield from every(one)


# ---- functions of a vector of four numbers ----
def smooth(x: Any) -> Any:
    return (x.sin() * x.pow(2)).sum()


def layers(x: Any) -> Any:
    return F.softmax(torch.tanh(WEIGHT @ x), 0) * FACTOR


def looped(x: Any) -> Any:
    h = x
    for k in range(3):
        h = h * x.cos() + k
    return h


def with_constants(x: Any) -> Any:
    return x * torch.arange(4.0), torch.ones(2), (WEIGHT * 2).sum(0)


def structured(x: Any) -> Any:
    y = x.exp()
    return {"a": [y, y.sum()], "b": (x - y, (y,)), "c": y}


def fresh_memory(x: Any) -> Any:
    y = x.clone()
    y.mul_(2)
    y[1:] += x[:-1].exp()
    return y


def sorted_numbers(x: Any) -> Any:
    values, places = x.sort()
    return values * 2, places, x > 0, x.argmax()


def differentiated(x: Any) -> Any:
    return grad(lambda v: (v.sin() * v).sum())(x) * x.cos()


def mapped(x: Any) -> Any:
    return vmap(lambda row: row.tanh().dot(x))(WEIGHT)


def along_a_direction(x: Any) -> Any:
    return jvp(lambda v: v.exp() * v, (x,), (x.sin(),))[1]


def of_a_parameter(x: Any) -> Any:
    return (PARAMETER * x).tanh() * PARAMETER


def cut(x: Any) -> Any:
    return x.detach() * x


def same_tensor(x: Any) -> Any:
    return x


def a_view(x: Any) -> Any:
    return x[1:], x.reshape(2, 2).T


def views_of_one(x: Any) -> Any:
    y = x * 3
    return y[1:], y


def branches(x: Any) -> Any:
    return x * 2 if x.sum() > 0 else x - 1


def reads_a_number(x: Any) -> Any:
    return x * x.sum().item()


def raises(x: Any) -> Any:
    return x @ torch.ones(3)


def halves(x: Any) -> Any:
    return (x.bfloat16() * 2).tanh().float() + x


def complexes(x: Any) -> Any:
    return torch.fft.fft(x * x).abs()


FUNCTIONS = [
    smooth, layers, looped, with_constants, structured, fresh_memory, sorted_numbers, differentiated, mapped, along_a_direction,
    of_a_parameter, cut, same_tensor, a_view, views_of_one, branches, reads_a_number, raises, halves, complexes,
]  # fmt: skip


# ---- transforms: from a function to what is called with three vectors ----
def first_number(f: Any) -> Callable[..., Any]:
    """Return the sum of what a function returns first, for transforms that want one number."""

    def number(x: Any) -> Any:
        out = f(x)
        while not isinstance(out, torch.Tensor):
            out = next(iter(out.values() if isinstance(out, dict) else out))
        return out.sum()

    return number


def tangents_of(f: Any) -> Callable[..., Any]:
    return lambda x: jvp(f, (x[0],), (x[1],))


def second_tangents(f: Any) -> Callable[..., Any]:
    return lambda x: jvp(lambda v: jvp(f, (v,), (x[1],)), (x[0],), (x[2],))


def rows_of_vjp(f: Any) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        out, pull_back = vjp(first_number(f), x[0])
        return out, vmap(pull_back)(torch.tensor([1.0, -2.0]))

    return call


def one_shared(f: Any) -> Callable[..., Any]:
    return lambda x: vmap(lambda a, b: f(a * b), in_dims=(None, 0))(x[0], x)


def backward_outside(f: Any) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        x = x.clone().requires_grad_()
        out = vmap(first_number(f))(x)
        first = torch.autograd.grad(out.square().sum(), [x, PARAMETER], create_graph=True, allow_unused=True)
        second = torch.autograd.grad(first[0].sum(), x, allow_unused=True)
        return out, first, second

    return call


def gradients_inside(f: Any) -> Callable[..., Any]:
    """Take gradients by the engine inside of a vmap."""

    def call(x: Any) -> Any:
        def sample(v: Any) -> Any:
            out = first_number(f)(v)
            return torch.autograd.grad(out, [PARAMETER], allow_unused=True, retain_graph=True)

        return vmap(lambda v: tuple(one for one in sample(v) if one is not None) or v)(x)

    return call


def chunks(f: Any) -> Callable[..., Any]:
    return vmap(f, chunk_size=2)


def by_columns(f: Any) -> Callable[..., Any]:
    return lambda x: vmap(f, in_dims=1)(x.T)


def nested(f: Any) -> Callable[..., Any]:
    return lambda x: vmap(vmap(f))(torch.stack([x, x + 1]))


def pairs(f: Any) -> Callable[..., Any]:
    return lambda x: vmap(lambda a: vmap(lambda b: f(a - 2 * b))(x))(x)


def by_hand(f: Any) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        with forward_ad.dual_level():
            out = first_number(f)(forward_ad.make_dual(x[0], x[1]))
            return tuple(forward_ad.unpack_dual(out))

    return call


def linear(f: Any) -> Callable[..., Any]:
    def call(x: Any) -> Any:
        out, push = linearize(first_number(f), x[0])
        return out, push(x[1]), push(x[2])

    return call


TRANSFORMS: dict[str, Callable[[Any], Callable[..., Any]]] = {
    "vmap": vmap,
    "vmap of columns": by_columns,
    "vmap in chunks": chunks,
    "vmap of vmap": nested,
    "vmaps of two tensors": pairs,
    "vmap with a shared tensor": one_shared,
    "vmap without gradients": lambda f: torch.no_grad()(vmap(f)),
    "vmap, backward outside": backward_outside,
    "vmap, gradients inside": gradients_inside,
    "jvp": tangents_of,
    "jvp of jvp": second_tangents,
    "dual levels": by_hand,
    "linearize": linear,
    "vmap of grad": lambda f: vmap(grad(first_number(f))),
    "vmap of grad_and_value": lambda f: vmap(grad_and_value(first_number(f))),
    "grad of vmap": lambda f: grad(lambda x: vmap(first_number(f))(x).exp().sum()),
    "grad of jvp": lambda f: lambda x: grad(lambda v: jvp(first_number(f), (v,), (x[1],))[1])(x[0]),
    "jvp of grad": lambda f: tangents_of(grad(first_number(f))),
    "vmap of jvp": lambda f: lambda x: vmap(lambda a, b: jvp(f, (a,), (b,)))(x, x.flip(0)),
    "jvp of vmap": lambda f: lambda x: jvp(vmap(f), (x,), (x.cos(),)),
    "jvp of a part": lambda f: lambda x: vmap(lambda b: jvp(f, (x[0],), (b,)))(x),
    "jacfwd": lambda f: lambda x: jacfwd(first_number(f))(x[0]),
    "jacrev": lambda f: lambda x: jacrev(first_number(f))(x[0]),
    "rows of vjp": rows_of_vjp,
    "hessian": lambda f: lambda x: hessian(first_number(f))(x[0]),
    "jacrev of jacfwd": lambda f: lambda x: jacrev(jacfwd(first_number(f)))(x[0]),
    "jacrev of jacrev": lambda f: lambda x: jacrev(jacrev(first_number(f)))(x[0]),
    "jvp of linearize": lambda f: tangents_of(lambda v: linearize(first_number(f), v)[1](v.cos())),
    "vmap of hessian": lambda f: vmap(hessian(first_number(f))),
    "grad of vmap of grad": lambda f: grad(lambda x: vmap(grad(first_number(f)))(x).square().sum()),
}


def outcome(call: Callable[..., Any], *args: Any) -> Any:
    try:
        return call(*args)
    except Exception as error:
        return type(error), str(error).partition("\n")[0]


def compare(one: Any, other: Any, strides: bool = False, within: float = 1e-5) -> None:
    """Compare what two calls gave: numbers, whether they require gradients, and strides; or their errors."""
    if isinstance(other, tuple) and other and isinstance(other[0], type):
        assert one == other
        return
    torch.testing.assert_close(one, other, check_stride=strides, rtol=within, atol=within)
    flat, also = (torch.utils._pytree.tree_leaves(tree) for tree in (one, other))
    assert [t is None or t.requires_grad for t in flat] == [t is None or t.requires_grad for t in also]


@pytest.mark.parametrize("transform", TRANSFORMS)
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda one: one.__name__)
def test_a_transform_of_a_compiled_function(function: Any, transform: str) -> None:
    torch.manual_seed(0)
    compiled = torch.compile(function)
    made = TRANSFORMS[transform]
    for turn in range(4):
        x = torch.randn(3, 4) + (2 if function is branches and turn % 2 else 0)
        found, expected = outcome(made(compiled), x), outcome(made(function), x)
        compare(found, expected, made in (vmap, by_columns, tangents_of), 0.2 if function is halves else 1e-5)
    for one in every(compiled_of(compiled)):
        assert not any("differs" in reason and "strides" not in reason for reason in one.reasons), one.reasons


OTHERS = ("dual levels", "jacrev", "rows of vjp", "vmap, gradients inside")  # that ask for something else
SMOOTH = [
    smooth,
    layers,
    looped,
    with_constants,
    structured,
    fresh_memory,
    differentiated,
    mapped,
    along_a_direction,
    halves,
]


@pytest.mark.parametrize("transform", [name for name in TRANSFORMS if name not in OTHERS])
def test_which_transforms_run_programs(transform: str) -> None:
    """A program runs below the levels, and nothing runs in eager once there is one."""
    torch.manual_seed(0)
    compiled = torch.compile(smooth)
    call = TRANSFORMS[transform](compiled)
    for _ in range(3):
        call(torch.randn(3, 4))
    found = [run for one in every(compiled_of(compiled)) for run in one.records]
    reasons = [reason for one in every(compiled_of(compiled)) for reason in one.reasons]
    assert found
    assert not reasons


@pytest.mark.parametrize("function", SMOOTH, ids=lambda one: one.__name__)
def test_functions_that_run_below_a_vmap(function: Any) -> None:
    compiled = torch.compile(function, fullgraph=True)
    runs = []
    for _ in range(3):
        vmap(compiled)(torch.randn(3, 4))
        runs.append([run for one in every(compiled_of(compiled)) for run in one.records])
    assert runs[0] == runs[2]
    assert runs[0]


# ---- what is read of Python, sizes, and who calls ----
def test_what_is_read_is_guarded() -> None:
    compiled = torch.compile(layers)
    try:
        for factor in (2.0, 3.0, 2.0, -1.0):
            globals()["FACTOR"] = factor
            for made in (vmap, tangents_of, lambda f: vmap(hessian(first_number(f)))):
                x = torch.randn(3, 4)
                compare(made(compiled)(x), made(layers)(x))
    finally:
        globals()["FACTOR"] = 2.0


def test_sizes_levels_and_arguments_that_change() -> None:
    def f(x: Any, scale: float, *, more: Any = None) -> Any:
        return (x * scale).cumsum(0) + (0 if more is None else more["a"])

    def ways(call: Any, x: Any, a: Any, scale: float) -> Any:
        yield vmap(lambda v: call(v, scale))(x)
        yield vmap(lambda v: call(v, scale, more={"a": a}))(x)
        yield vmap(lambda v: call(a, scale, more={"a": v}))(x)
        yield call(x, scale)

    compiled = torch.compile(f)
    for size in (3, 2, 5, 3, 1):
        for scale in (1.0, 2.5):
            x, a = torch.randn(size, 4), torch.randn(4)
            for one, other in zip(ways(compiled, x, a, scale), ways(f, x, a, scale), strict=True):
                compare(one, other)


@pytest.mark.parametrize("randomness", ["error", "same", "different"])
def test_random_numbers(randomness: str) -> None:
    def f(x: Any) -> Any:
        return F.dropout(x, 0.5) + torch.rand(4) * x

    compiled = torch.compile(f)
    for seed in range(4):
        x = torch.randn(3, 4)
        sides = []
        for call in (f, compiled):
            torch.manual_seed(seed)
            sides.append((outcome(vmap(call, randomness=randomness), x), torch.rand(2)))
        compare(sides[1][0], sides[0][0])
        compare(sides[1][1], sides[0][1])


def test_gradients_of_samples() -> None:
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 5), nn.Tanh(), nn.Linear(5, 3))
    params = {name: one.detach() for name, one in net.named_parameters()}

    def loss(params: Any, x: Any, y: Any) -> Any:
        return F.cross_entropy(functional_call(net, params, (x[None],)), y[None])

    compiled = torch.compile(loss)
    for _ in range(4):
        x, y = torch.randn(6, 4), torch.randint(0, 3, (6,))
        sides = [vmap(grad(call), in_dims=(None, 0, 0))(params, x, y) for call in (compiled, loss)]
        compare(*sides)
        assert sides[0]["0.weight"].shape == (6, 5, 4)
        sides = [
            grad(lambda *a, call=call: vmap(call, (None, 0, 0))(*a).sum())(params, x, y) for call in (compiled, loss)
        ]
        compare(*sides)
    assert not any(one.reasons for one in every(compiled_of(compiled)))


def test_parameters_that_are_captured() -> None:
    """Nobody knows whether gradients of each sample are wanted of them: so the function runs in eager, unless there are none."""
    torch.manual_seed(0)
    net = nn.Linear(4, 2)
    compiled = torch.compile(net)
    for _ in range(3):
        x = torch.randn(3, 4)
        sides = []
        for call in (compiled, net):
            net.zero_grad()
            out = vmap(call)(x)
            out.square().sum().backward()
            samples = vmap(lambda v, call=call: torch.autograd.grad(call(v).sum(), net.weight)[0])(x)
            sides.append((out.detach(), net.weight.grad.clone(), samples))
        compare(*sides)
    inner = compiled._compiled_forward._compiled
    assert any("gets gradients" in reason for reason in inner.reasons)
    with torch.no_grad():
        for _ in range(3):
            compare(vmap(compiled)(x), vmap(net)(x))
    assert any(one.records for one in every(inner))


def test_statistics_and_writes_go_to_eager() -> None:
    torch.manual_seed(0)
    norm, count = nn.BatchNorm1d(4, affine=False), torch.zeros(4)

    def writes(x: Any, total: Any) -> Any:
        total.add_(x)
        return total * 2

    def counts(x: Any) -> Any:
        count.add_(1)
        return x * count

    compiled, also = torch.compile(writes), torch.compile(counts)
    for _ in range(3):
        x = torch.randn(3, 4)
        sides = []
        for call in (compiled, writes):
            totals = torch.ones(3, 4)
            sides.append((vmap(call)(x, totals), totals, totals._version))
            sides.append(outcome(vmap(call, in_dims=(0, None)), x, torch.ones(4)))
        compare(sides[0][:2], sides[2][:2])
        assert sides[0][2] == sides[2][2]
        assert sides[1] == sides[3]
        before = count.clone()
        for call in (also, counts):
            compare(vmap(call)(x), x * (before + 1))
            assert count.tolist() == (before + 1).tolist()
            count.copy_(before)
    evaluated = torch.compile(norm.eval())
    for _ in range(3):
        x = torch.randn(3, 5, 4)
        compare(vmap(evaluated)(x), vmap(norm)(x))


SETTINGS = [1.5, "mean"]


def test_what_was_given_is_given_back() -> None:
    def f(x: Any, many: list[Any], names: dict[str, float]) -> Any:
        return many, names, SETTINGS, x * many[0] * names["a"]

    compiled = torch.compile(f)
    for made in (lambda v: [v * 2, 3.0], lambda v: [2.0, 3.0]):
        for _ in range(3):
            seen = []

            def sample(v: Any, made: Any = made, seen: list[Any] = seen) -> Any:
                many, names = made(v), {"a": 2.0}
                back, also, settings, out = compiled(v, many, names)
                seen.append((back is many, also is names, settings is SETTINGS))
                return out

            x = torch.randn(3, 4)
            compare(vmap(sample)(x), vmap(lambda v, made=made: v * made(v)[0] * 2)(x))
            assert seen == [(True, True, True)]


def test_tensors_of_transforms_that_have_ended() -> None:
    kept = []
    compiled = torch.compile(smooth)
    vmap(lambda v: kept.append(v) or v)(torch.randn(3, 4))
    for _ in range(2):
        one, other = (
            outcome(vmap(lambda v, call=call: call(v + kept[0])), torch.randn(3, 4)) for call in (compiled, smooth)
        )
        assert type(one) is type(other)
        if isinstance(other, tuple):
            assert one == other


def test_full_graphs_say_why_not() -> None:
    compiled = torch.compile(a_view, fullgraph=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"inside a transform|memory of an argument"):
            vmap(compiled)(torch.randn(3, 4))


def test_errors_are_those_of_eager() -> None:
    compiled = torch.compile(raises, fullgraph=True)
    for _ in range(2):
        with pytest.raises(RuntimeError, match=r"size mismatch|inconsistent tensor size|shape"):
            vmap(compiled)(torch.randn(3, 4))


def test_no_samples() -> None:
    compiled = torch.compile(layers)
    for _ in range(3):
        one, other = (outcome(vmap(call), torch.zeros(0, 4)) for call in (compiled, layers))
        compare(one, other)


def test_programs_inside_and_outside_are_forgotten_together() -> None:
    compiled = torch.compile(smooth)
    for _ in range(2):
        vmap(compiled)(torch.randn(3, 4)), compiled(torch.randn(4))
    assert len(list(every(compiled_of(compiled)))) == 2
    torch.compiler.reset()
    assert len(list(every(compiled_of(compiled)))) == 1
    torch.testing.assert_close(vmap(compiled)(torch.ones(3, 4)), vmap(smooth)(torch.ones(3, 4)))
