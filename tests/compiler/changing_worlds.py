"""Two worlds of the same globals, modules, closures and optimizers, one compiled: whatever is changed in both, they stay the same.

`python -m tests.compiler.changing_worlds 1000` tries a thousand histories; `--first 500` begins at another one.
"""

from __future__ import annotations

import argparse
import contextlib
import itertools
import math
import random
import warnings
from collections.abc import Callable
from typing import Any

import retrograd as torch
from tests.compiler.sources import define

SOURCE = """
from types import SimpleNamespace

import retrograd as torch
from retrograd import nn
import retrograd.nn.functional as F

FACTOR = 1.5
FLAG = True
TABLE = {"shift": 0.25, "names": ["a", "b"]}
SHIFTS = [0.5, -0.25]
WEIGHTS = torch.tensor([1.0, -2.0, 0.5])
STATE = torch.zeros(3)
LOG = []


def square(x):
    return x * x


def cube(x):
    return x * x * x


USED = square


class Double(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return 2 * x * g


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(3, 3)
        self.norm = nn.BatchNorm1d(3)
        self.drop = nn.Dropout(0.25)
        self.scale = 2.0
        self.act = F.relu
        self.options = SimpleNamespace(sign=1)
        self.blocks = nn.ModuleList([nn.Linear(3, 3), nn.Tanh()])
        self.register_buffer("calls", torch.zeros(1))

    def forward(self, x, bias=None, *, twice=False):
        y = self.inner(x) * self.scale * self.options.sign
        for block in self.blocks:
            y = block(y)
        if self.training and y.dim() == 2:
            y = self.norm(y.to(self.norm.weight.dtype))
            self.calls += 1
        y = self.drop(self.act(y)) + WEIGHTS * FACTOR
        if bias is not None:
            y = y + bias
        return y * 2 if twice else y


model = Layer()


def make(power):
    seen = torch.ones(3)

    def change(value):
        nonlocal power
        power = value

    def inner(x):
        return x * power + seen

    return inner, change, seen


inner, change, SEEN = make(2.0)
optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)


def through_a_model(x, other, twice):
    return model(x, other, twice=twice)


def reading(x, other, twice):
    y = USED(x) + inner(x) * FACTOR
    for shift in SHIFTS:
        y = y + shift
    if FLAG and "b" in TABLE["names"]:
        y = y - TABLE["shift"]
    if other is not None:
        y = y * other
    return {"y": y, "names": TABLE["names"], "n": len(SHIFTS)}


def branching(x, other, twice):
    y = x * WEIGHTS
    if y.sum() > 0:
        y = y.exp()
    elif y.max() > 1:
        y = y.sin()
    if other is not None and (other > 0).all():
        y = y + other
    return y, y.detach()


def writing(x, other, twice):
    STATE.mul_(0.5)
    STATE.add_(x.detach().sum(0) if x.dim() == 2 else x.detach())
    if other is not None:
        with torch.no_grad():
            other.add_(1)
    return x * STATE


def looking(x, other, twice):
    return x.view(-1), x[..., 1:], x if twice else x.t() if x.dim() == 2 else x


def drawing(x, other, twice):
    return F.dropout(x, 0.5) + torch.rand(3) + (torch.randn_like(x) if twice else 0)


def telling(x, other, twice):
    y = Double.apply(x) * FACTOR
    LOG.append(round(float(y.detach().sum()), 2))
    z = torch.tanh(y) + len(LOG) % 2
    if twice:
        LOG.append("twice")
    return z.cumsum(-1) * z.sigmoid()


def training(x, other, twice):
    optimizer.zero_grad(set_to_none=twice)
    out = model(x.detach(), other if other is None else other.detach())
    loss = out.float().square().mean()
    loss.backward()
    if twice:
        torch.nn.utils.clip_grad_norm_(model.parameters(), 0.5)
    optimizer.step()
    return loss.detach()


def gradients(x, other, twice):
    x = x.detach().clone().requires_grad_()
    y = (x * WEIGHTS).sin().sum() * FACTOR
    (g,) = torch.autograd.grad(y, x, create_graph=twice)
    return g.square().sum() if twice else g


def transforming(x, other, twice):
    def f(v):
        return (v * WEIGHTS * FACTOR).tanh().sum()

    return torch.func.vmap(torch.func.grad(f))(x) if x.dim() == 2 else torch.func.hessian(f)(x)
"""

FUNCTIONS = [
    "through_a_model",
    "reading",
    "branching",
    "writing",
    "looking",
    "drawing",
    "telling",
    "training",
    "gradients",
    "transforming",
]
Change = Callable[[dict[str, Any], int], Any]
CHANGES: dict[str, Change] = {}
_worlds = itertools.count()


def change(function: Change) -> Change:
    CHANGES[function.__name__] = function
    return function


def _set(name: str, values: Callable[[], list[Any]]) -> None:
    def set_global(world: dict[str, Any], n: int) -> None:
        found = values()
        world[name] = found[n % len(found)]

    CHANGES[f"another {name}"] = set_global


_set("FACTOR", lambda: [1.5, -0.5, 0.0, -0.0, 2, True, 1e-3, math.inf])
_set("FLAG", lambda: [True, False, 0, 1, "", "x", None, 2.5])
_set("SHIFTS", lambda: [[0.5, -0.25], [], [1], (2.0, 1.0, 0.5)])
_set("WEIGHTS", lambda: [torch.tensor([1.0, -2.0, 0.5]), torch.arange(3.0), torch.arange(3), torch.tensor(2.0),
                         torch.ones(3, requires_grad=True), torch.ones(3, dtype=torch.float64)])  # fmt: skip
_set("TABLE", lambda: [{"shift": 0.25, "names": ["a"]}, {"names": ["b"], "shift": 1, "more": 0}])


@change
def another_function(world: dict[str, Any], n: int) -> None:
    world["USED"] = [world["square"], world["cube"], torch.sin, torch.nn.functional.relu, lambda x: x - 1][n % 5]


@change
def items(world: dict[str, Any], n: int) -> None:
    world["TABLE"]["shift"] = [0.25, -1.0, 0, 0.0, -0.0][n % 5]
    world["TABLE"]["names"].append("b") if n % 2 else world["TABLE"]["names"].clear()


@change
def lists(world: dict[str, Any], n: int) -> None:
    if type(world["SHIFTS"]) is list:
        world["SHIFTS"].append(float(n)) if n % 2 else world["SHIFTS"].clear()


@change
def a_closure(world: dict[str, Any], n: int) -> None:
    world["change"]([2.0, 3.0, -1, 0.0, torch.full((3,), 0.5)][n % 5])


@change
def a_captured_tensor(world: dict[str, Any], n: int) -> None:
    world["SEEN"].add_(n)


@change
def an_attribute(world: dict[str, Any], n: int) -> None:
    world["model"].scale = [2.0, 3.0, 2, torch.tensor(1.5), False][n % 5]


@change
def an_attribute_inside(world: dict[str, Any], n: int) -> None:
    world["model"].options.sign = [1, -1, 1.0, 0][n % 4]


@change
def an_activation(world: dict[str, Any], n: int) -> None:
    world["model"].act = [torch.relu, torch.tanh, world["square"]][n % 3]


@change
def the_training_flag(world: dict[str, Any], n: int) -> None:
    world["model"].train(bool(n % 2))


@change
def a_training_flag_inside(world: dict[str, Any], n: int) -> None:
    world["model"].drop.training = bool(n % 2)


@change
def a_rate_of_dropout(world: dict[str, Any], n: int) -> None:
    world["model"].drop.p = [0.25, 0.5, 0.0, 1.0][n % 4]


@change
def numbers_in_place(world: dict[str, Any], n: int) -> None:
    with torch.no_grad():
        for one in world["model"].inner.parameters():
            one.add_(0.01 * n)
        world["STATE"].sub_(n)


@change
def a_parameter(world: dict[str, Any], n: int) -> None:
    world["model"].inner.bias = None if n % 2 else torch.nn.Parameter(torch.full((3,), 0.1 * n))


@change
def data(world: dict[str, Any], n: int) -> None:
    if isinstance(world["model"].inner, torch.nn.Linear):
        world["model"].inner.weight.data = torch.full((3, 3), 0.1 * n) if n % 2 else torch.eye(3).t() * n


@change
def a_module(world: dict[str, Any], n: int) -> None:
    torch.manual_seed(n)
    world["model"].inner = [torch.nn.Linear(3, 3), torch.nn.Linear(3, 3, bias=False), torch.nn.Identity()][n % 3]


@change
def blocks(world: dict[str, Any], n: int) -> None:
    if n % 3:
        world["model"].blocks.append([torch.nn.Sigmoid(), torch.nn.LayerNorm(3)][n % 2])
    elif len(world["model"].blocks):
        del world["model"].blocks[-1]


@change
def hooks_on(world: dict[str, Any], n: int) -> None:
    inner, log = world["model"].inner, world["LOG"]
    hooks = [
        lambda: inner.register_forward_hook(lambda module, args, out: out + 1),
        lambda: inner.register_forward_pre_hook(lambda module, args: (args[0] * 2,)),
        lambda: inner.register_forward_hook(lambda module, args, out: log.append("called")),
        lambda: inner.register_full_backward_hook(lambda module, grads, outs: log.append("backward")),
        lambda: world["WEIGHTS"].register_hook(lambda g: g * 2) if world["WEIGHTS"].requires_grad else None,
    ]
    world["HANDLES"] = [*world.get("HANDLES", []), hooks[n % 5]()]


@change
def hooks_off(world: dict[str, Any], n: int) -> None:
    for handle in world.pop("HANDLES", []):
        if handle is not None:
            handle.remove()


@change
def which_require_gradients(world: dict[str, Any], n: int) -> None:
    if isinstance(world["model"].inner, torch.nn.Linear):
        world["model"].inner.weight.requires_grad_(bool(n % 2))


@change
def a_rate(world: dict[str, Any], n: int) -> None:
    world["optimizer"].param_groups[0]["lr"] = [0.05, 0.1, 0.0, 1][n % 4]


@change
def momentum(world: dict[str, Any], n: int) -> None:
    world["optimizer"].param_groups[0]["momentum"] = [0.9, 0.5, 0.0][n % 3]


@change
def an_optimizer(world: dict[str, Any], n: int) -> None:
    kinds = [torch.optim.SGD, torch.optim.Adam, torch.optim.NAdam, torch.optim.RMSprop]
    world["optimizer"] = kinds[n % 4](world["model"].parameters(), lr=0.05)


@change
def gradients_away(world: dict[str, Any], n: int) -> None:
    world["model"].zero_grad(set_to_none=bool(n % 2))


@change
def loading(world: dict[str, Any], n: int) -> None:
    state = {name: one * 0.5 for name, one in world["model"].state_dict().items() if one.is_floating_point()}
    world["model"].load_state_dict(state, strict=False, assign=bool(n % 2))


@change
def dtypes(world: dict[str, Any], n: int) -> None:
    world["model"].to([torch.float32, torch.float64][n % 2])


@change
def the_default_dtype(world: dict[str, Any], n: int) -> None:
    torch.set_default_dtype([torch.float32, torch.float64][n % 2])


@change
def a_method(world: dict[str, Any], n: int) -> None:
    layer = world["Layer"]
    forward = world.setdefault("FORWARD", layer.forward)
    layer.forward = forward if n % 2 else lambda self, x, bias=None, *, twice=False: x * 3


@change
def nothing(world: dict[str, Any], n: int) -> None:
    pass


def arguments(kind: int, shape: tuple[int, ...], dtype: Any, requires_grad: bool, seed: int) -> tuple[Any, ...]:
    """Return what a function is called with, the tensors of which may be views, lie on each other or be one."""
    stream = random.Random(seed)
    x = torch.tensor([stream.uniform(-1, 1) for _ in range(math.prod(shape))], dtype=dtype).reshape(shape)
    if kind % 7 == 5:
        x = torch.stack([x, x], -1)[..., 0]
    x = x.requires_grad_(requires_grad)
    others = {0: None, 1: torch.ones(3), 2: x, 3: x.detach(), 4: x.detach().view(shape), 6: -torch.ones(3, dtype=dtype)}
    other = others.get(kind % 7)
    if other is x and requires_grad:
        other = x.detach()
    return x, other, bool(kind % 2)


AROUND: list[Callable[[], Any]] = [
    contextlib.nullcontext, contextlib.nullcontext, contextlib.nullcontext, torch.no_grad, torch.inference_mode,
    lambda: torch.autocast("cpu", torch.bfloat16), lambda: torch.set_grad_enabled(True),
]  # fmt: skip


def seen(tree: Any, world: dict[str, Any]) -> Any:
    """Describe a result, so that results of two worlds can be compared."""
    if isinstance(tree, torch.Tensor):
        own = [name for name, one in world.items() if one is tree]
        return (
            own,
            str(tree.dtype),
            tuple(tree.shape),
            tree.requires_grad,
            tree.is_inference(),
            tree._is_view(),
            tree.detach().clone(),
        )
    if isinstance(tree, dict):
        return [[name, seen(one, world)] for name, one in tree.items()]
    if isinstance(tree, (tuple, list)):
        return [type(tree).__name__, *[seen(one, world) for one in tree]]
    return tree


def tensors_of(tree: Any) -> list[Any]:
    if isinstance(tree, torch.Tensor):
        return [tree]
    parts = tree.values() if isinstance(tree, dict) else tree if isinstance(tree, (tuple, list)) else []
    return [one for part in parts for one in tensors_of(part)]


class Side:
    """One world, and what is called in it."""

    def __init__(self, function: str, compiled: bool, as_module: bool) -> None:
        torch.set_default_dtype(torch.float32)
        torch.manual_seed(0)
        self.world: dict[str, Any] = {"__name__": "a world"}
        define(SOURCE, f"<a world {next(_worlds)}>", self.world)
        torch.manual_seed(0)
        self.compiled = None
        self.call = self.world[function]
        if compiled and as_module:
            self.world["model"].compile()
        elif compiled:
            self.call = self.compiled = torch.compile(self.call)

    def step(self, name: str, n: int, call: tuple[Any, ...]) -> list[Any]:
        """Change something, call the function, and say what came of it."""
        CHANGES[name](self.world, n)
        around, *given = call
        args = arguments(*given)
        torch.manual_seed(given[-1])
        found: list[Any] = []
        try:
            with AROUND[around]():
                result = self.call(*args)
            found.append(seen(result, self.world))
            found.append([at for at, one in enumerate(args) for out in tensors_of(result) if out is one])
            wanted = [one for one in tensors_of(result) if one.requires_grad and one.is_floating_point()]
            if wanted:
                sum(one.float().square().sum() for one in wanted).backward()
        except Exception as error:
            found.append([type(error).__name__, str(error).split("\n")[0]])
        model, world = self.world["model"], self.world
        tensors = [*args[:2], *model.parameters(), *model.buffers(), world["STATE"], world["WEIGHTS"], world["SEEN"]]
        for one in tensors:
            if one is not None:
                found.append(
                    [seen(one, {}), one._version, None if one.grad is None or not one.is_leaf else seen(one.grad, {})]
                )
        states = self.world["optimizer"].state.values()
        found.append([[key, seen(value, {})] for state in states for key, value in state.items()])
        found += [list(self.world["LOG"]), torch.rand(1)]
        return found


def differs(one: Any, other: Any, path: str = "") -> str | None:
    """Say where two descriptions differ by more than rounding."""
    if type(one) is not type(other):
        return f"{path}: {one!r} and {other!r}"
    if isinstance(one, torch.Tensor):
        if one.dtype.is_floating_point:
            close = 4e-2 if one.dtype == torch.bfloat16 else 2e-3
            first, second = one.double(), other.double()
            scale = float(second[second.isfinite()].abs().max()) if bool(second.isfinite().any()) else 1.0
            same = torch.allclose(first, second, rtol=close, atol=close * (1e-1 + scale), equal_nan=True)
        else:
            same = torch.equal(one, other)
        return None if same else f"{path}: {one!r} and {other!r}"
    if isinstance(one, (list, tuple)):
        if len(one) != len(other):
            return f"{path}: {one!r} and {other!r}"
        parts = (differs(a, b, f"{path}.{at}") for at, (a, b) in enumerate(zip(one, other, strict=True)))
        return next((part for part in parts if part is not None), None)
    same = (
        abs(one - other) <= 2e-2 * (1 + abs(other))
        if isinstance(one, float) and math.isfinite(one)
        else repr(one) == repr(other)
    )
    return None if same else f"{path}: {one!r} and {other!r}"


def judged(function: str, as_module: bool, history: list[Any]) -> tuple[str | None, Any]:
    """Run a history in two worlds, one compiled; say in what they differ."""
    before = torch.get_default_dtype()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            sides = [Side(function, compiled, as_module) for compiled in (False, True)]
            for at, (name, n, times, call) in enumerate(history):
                for turn in range(times):
                    expected, found = [side.step(name if not turn else "nothing", n, call) for side in sides]
                    told = differs(found, expected)
                    if told is not None:
                        return f"{function} (as a module: {as_module}), step {at}, call {turn + 1}, {told}", history
            return None, sides[1]
    finally:
        torch.set_default_dtype(before)


def drawn(seed: int) -> tuple[str, bool, list[Any]]:
    """Draw a history: a function, and what is changed before which calls."""
    stream = random.Random(f"worlds {seed}")
    shapes, kinds = [(2, 3), (3,), (4, 3)], [torch.float32, torch.float32, torch.float64]

    def call() -> tuple[Any, ...]:
        return (
            stream.randrange(len(AROUND)), stream.randrange(7), stream.choice(shapes), stream.choice(kinds), stream.random() < 0.5,
            stream.randrange(5),
        )  # fmt: skip

    usual = call()
    history = [
        (
            stream.choice(list(CHANGES)),
            stream.randrange(10),
            stream.randint(1, 4),
            usual if stream.random() < 0.7 else call(),
        )
        for _ in range(stream.randint(2, 7))
    ]
    return stream.choice(FUNCTIONS), stream.random() < 0.15, [("nothing", 0, 3, usual), *history]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("count", type=int, nargs="?", default=100)
    parser.add_argument("--first", type=int, default=0)
    chosen = parser.parse_args()
    wrong = used = 0
    for seed in range(chosen.first, chosen.first + chosen.count):
        told, side = judged(*drawn(seed))
        if told is not None:
            wrong += 1
            print(f"{seed}: {told[:600]}\n    {side}", flush=True)
        elif side.compiled is not None:
            used += bool(side.compiled._compiled.records or side.compiled._compiled.split)
    print(f"{chosen.count} histories, {used} of them with programs, {wrong} differ")


if __name__ == "__main__":
    main()
