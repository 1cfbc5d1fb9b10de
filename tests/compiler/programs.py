"""Functions whose purity is known: what the proof must accept, and what it must refuse.

Everything impure comes with a look at the effect: what changes when the function is called once more, and would be missing if its
Python were skipped.
"""

from __future__ import annotations

import collections
import dataclasses
import enum
import functools
import io
import itertools
import linecache
import logging
import math
import operator
import os
import random
import sys
import tempfile
import time
import typing
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn


class Program(NamedTuple):
    function: Any
    args: tuple[Any, ...]
    look: Callable[[], Any] | None  # what another call changes, or None if its result does
    reason: str


PURE: dict[str, Program] = {}
IMPURE: dict[str, Program] = {}
X = torch.tensor([[1.0, -2.0], [3.0, 4.0]])
Y = torch.tensor([[0.5, 0.25], [1.0, 2.0]])


def pure(*args: Any, name: str = "") -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        PURE[name or function.__name__] = Program(function, args or (X,), None, "")
        return function

    return note


def impure(reason: str, look: Callable[[], Any] | None, *args: Any, name: str = "") -> Callable[[Any], Any]:
    def note(function: Any) -> Any:
        IMPURE[name or function.__name__] = Program(function, args or (X,), look, reason)
        return function

    return note


# ---- pure: operators, functions and methods ----
@pure(X, Y)
def operators(x, y):
    return -(x + y) * 2 / 3 - x @ y**2


@pure(X, Y)
def comparisons(x, y):
    return (x > y) & (x != 2) | ~(y <= 1)


@pure()
def functions_of_the_library(x):
    return torch.exp(x).sum(dim=0, keepdim=True) + F.softmax(x, dim=-1) + torch.linalg.norm(x)


@pure()
def methods(x):
    return x.relu().view(-1).unsqueeze(0).t().contiguous().float()


@pure()
def attributes_of_tensors(x):
    return x.T.mT + x.shape[0] + x.ndim + x.dtype.itemsize + x.numel()


@pure()
def indexing(x):
    return x[0, 1:], x[..., None], x[:, [0, 1]], x[x > 0]


@pure()
def named_results(x):
    values, indices = torch.max(x, dim=1)
    return values + torch.sort(x, dim=0).values, indices


@pure()
def in_place_on_own(x):
    y = x.clone()
    y += 1
    y.mul_(2)
    y[0] = 0.0
    return y


@pure()
def in_place_on_an_argument(x):
    x.mul_(1.0)
    return x


@pure()
def lists_and_tuples(x):
    a, (b, *c) = x, [x, x, x]
    return [a, b, *c], (a, *c), {"a": a, **{"b": b}}


@pure()
def appended(x):
    out = []
    for k in range(3):
        out.append(x * k)
    out.extend([x])
    out += [x]
    out[0] = x + 1
    return torch.stack(out)


@pure()
def dictionaries(x):
    d = {"a": x}
    d["b"] = x + 1
    d.update(c=x)
    d.setdefault("d", x)
    return sum(d.values()), sorted(d), d.get("e"), [v for k, v in d.items() if k != "a"]


@pure()
def comprehensions(x):
    k = 3
    rows = [row * k for row in x for k in (1, 2)]
    return rows, {j: j * x for j in range(2)}, sum(r.sum() for r in rows), k


@pure()
def nested_comprehension(x):
    return [[x * i * j for i in range(2)] for j in range(2) if j]


@pure()
def walrus(x):
    if (n := x.shape[0]) > 1:
        return x * n
    return [m := x, m][1]


@pure()
def loops(x):
    n = 0
    while n < 5:
        n += 1
        if n == 2:
            continue
        if n == 4:
            break
        x = x + n
    else:
        x = x * 2
    return x


@pure()
def branch_on_a_value(x):
    if x.sum() > 0:
        return x * 2
    return x - 1 if x.max() < 0 else x


@pure()
def recurrence(x):
    h = None
    for row in x:
        h = row if h is None else torch.tanh(h + row)
    return h


@pure()
def pure_builtins(x):
    n = len(x) + max(1, 2) + min([3, 4]) + abs(-1) + round(2.5) + sum([1, 2]) + int("3") + ord("a")
    return x * n + float(1) + bool(n) + pow(2, 3) + divmod(7, 2)[0]


@pure()
def mathematics(x):
    return x * math.sqrt(x.shape[-1]) + math.pi * math.exp(1.0) + math.prod(x.shape) + math.inf * 0


@pure()
def numbers_of_numpy(x):
    return x * float(np.sqrt(2.0)) + np.pi


@pure()
def zips(x):
    return [a * k for k, (a, b) in enumerate(zip(x, reversed(x), strict=True))], list(map(torch.relu, x))


@pure()
def iterators(x):
    return list(itertools.chain([x], [x])), [a + b for a, b in itertools.product(x, x)]


@pure()
def reductions(x):
    return functools.reduce(operator.add, [x, x, x]) + functools.reduce(lambda a, b: a * b, x)


@pure()
def texts(x):
    mode = f"{'mean'}"
    return F.mse_loss(x, x, reduction=mode), "_".join(["a", "b"]).upper(), "%d" % 3, f"{x.shape[0]:>4}"


@pure()
def assertions(x):
    assert x.dim() == 2, f"not {x}"
    if x.shape[0] > 100:
        raise ValueError(f"too many rows: {x.shape} {print}")
    return x


@pure()
def context_managers(x):
    with torch.no_grad():
        y = x * 2
    with torch.enable_grad(), torch.autocast("cpu", enabled=False):
        return y + x


@pure()
def try_finally(x):
    try:
        y = x + 1
    finally:
        z = 2
    return y * z


@pure()
def conditional_types(x, y=None):
    if y is None:
        y = x
    if isinstance(x, torch.Tensor) and not isinstance(y, (list, tuple)):
        return x + y
    return print(x)


@pure()
def known_branch(x):
    if DEBUG:
        print(x)
    return x


DEBUG = False


@pure()
def tuple_of_options(x):
    return F.pad(x, (1, 1)) if OPTIONS["pad"] else x


OPTIONS = {"pad": True, "other": [1, 2]}


@pure()
def random_numbers(x):
    return F.dropout(x, 0.5) + torch.rand(2) + torch.randn_like(x)


@pure()
def gradients(x):
    w = x.clone().requires_grad_()
    loss = (w * w).sum()
    (g,) = torch.autograd.grad(loss, w, create_graph=True)
    return g


@pure()
def backward_of_own(x):
    w = x.clone().requires_grad_()
    (w * w).sum().backward()
    return w.grad


@pure()
def transforms(x):
    def loss(v):
        return (v * v).sum() * SCALE

    return torch.func.grad(loss)(x), torch.func.vmap(torch.func.grad(loss))(x), torch.func.hessian(loss)(x[0])


@pure()
def vjp(x):
    out, pull = torch.func.vjp(lambda v: v.sin() * SCALE, x)
    return pull(out)


@pure()
def methods_of_what_transforms_give(x):
    def loss(v, scale=1.0):
        return (v.tanh() * scale).sum(), v.detach()

    g, aux = torch.func.grad(loss, has_aux=True)(x, scale=2.0)
    (gg, (value, _)) = torch.func.grad_and_value(loss, has_aux=True)(x)
    out, tangent = torch.func.jvp(lambda v: v.sin(), (x,), (torch.ones_like(x),))
    rows, kept = torch.func.jacrev(lambda v: (v.exp(), {"v": v}), has_aux=True)(x)
    parts = torch.vmap(lambda v: {"sum": v.sum(), "max": v.max()})(x)
    whole = torch.autograd.functional.hessian(lambda v: v.pow(3).sum(), x).diagonal()
    return (
        g.sum() + gg.max() + value.sqrt() + out.T.mean() + tangent.abs(),
        aux.mT,
        rows.sum(),
        kept["v"].cos(),
        parts,
        whole,
    )


@pure()
def a_tree_of_tensors_inside_a_transform(x):
    def loss(params, data=None):
        return sum(v.square().sum() for v in params.values()) + params["w"].mean() * len(data)

    grads = torch.func.grad(loss)({"w": x, "b": x[0]}, data=[1, 2])
    return {name: g.norm() for name, g in grads.items()}


@pure()
def checkpointed_method(x):
    return torch.utils.checkpoint.checkpoint(lambda v, k: v.relu() * k, x, 3, use_reentrant=False).sum()


@pure()
def checkpointed(x):
    return torch.utils.checkpoint.checkpoint(lambda v: v.relu() * SCALE, x, use_reentrant=False)


SCALE = 2.0
WEIGHT = torch.ones(2, 2)


@pure()
def captured_tensor(x):
    return x @ WEIGHT * SCALE


# ---- pure: functions of the user ----
def helper(x, factor=2.0, *, shift=1.0):
    return x * factor + shift


@pure()
def calls(x):
    return helper(x) + helper(x, 3.0) + helper(x, shift=2.0) + helper(*(x,), **{"factor": 1.0})


@pure()
def variadic(x):
    def total(*args, **kwargs):
        return sum(args) + sum(kwargs.values())

    return total(x, x, a=x)


@pure()
def nested(x):
    factor = 2

    def scaled(v):
        return v * factor

    factor = 3
    return scaled(x), (lambda v, k=factor: v * k)(x)


@pure()
def own_nonlocal(x):
    count = 0

    def up(v):
        nonlocal count
        count += 1
        return v + count

    return up(up(x))


@pure()
def recursive(x):
    return power(x, 3)


def power(x, n):
    return x if n == 0 else x * power(x, n - 1)


@pure()
def recursive_on_data(x):
    def halves(v):
        return v if v.shape[0] == 1 else halves(v[: v.shape[0] // 2])

    return halves(x)


def make_closure():
    weight, size = torch.ones(2, 2), 2

    def inside(x):
        return x @ weight * size

    return inside


pure(name="closure")(make_closure())


def loop_closures():
    return [lambda x, k=k: x * k for k in range(3)], [lambda x: x * late for late in range(3)]


pure(name="closure_over_a_default")(loop_closures()[0][1])
pure(name="closure_over_a_loop_variable")(loop_closures()[1][1])
pure(name="lambda_in_a_list")([lambda x: x + 1, lambda x: x + 2][1])
pure(X, name="partial")(functools.partial(helper, factor=3.0))


def doubling(function):
    @functools.wraps(function)
    def wrapper(*args, **kwargs):
        return function(*args, **kwargs) * 2

    return wrapper


@pure()
@doubling
def decorated(x):
    return x + 1


@pure()
@torch.no_grad()
def without_grad(x):
    return x * SCALE


ACTIVATIONS = {"relu": torch.relu, "square": lambda v: v * v}


@pure()
def table_of_functions(x):
    return ACTIVATIONS["relu"](x) + [f(x) for f in ACTIVATIONS.values()][1]


@pure()
def sorted_by(x):
    return sorted([3, 1, 2], key=lambda k: -k)[0] * x


@pure()
def imports_inside(x):
    import math as m

    from retrograd.nn import functional as ff

    return ff.relu(x) * m.tau


@pure()
def cast(x):
    return typing.cast("torch.Tensor", x) + 1


def with_defaults(x, sizes=[1, 2], *, table={"a": 1.0}):  # noqa: B006
    return x * sum(sizes) + table["a"]


pure(name="mutable_defaults_that_are_read")(with_defaults)


# ---- pure: objects ----
@dataclasses.dataclass
class Config:
    width: int = 2
    rate: float = 0.5
    names: list[str] = dataclasses.field(default_factory=lambda: ["a", "b"])

    @property
    def area(self):
        return self.width * self.width

    def scale(self, x):
        return x * self.rate

    @staticmethod
    def twice(x):
        return x * 2

    @classmethod
    def made(cls, x):
        return x * cls.constant

    constant = 3


CONFIG = Config()


@pure()
def dataclass_fields(x):
    return x * CONFIG.width + CONFIG.rate + len(CONFIG.names)


@pure()
def properties(x):
    return x * CONFIG.area


@pure()
def methods_of_objects(x):
    return CONFIG.scale(x) + CONFIG.twice(x) + Config.twice(x) + CONFIG.made(x) + Config.made(x)


pure(X, name="bound_method")(CONFIG.scale)
pure(X, Config(3, 0.25), name="object_as_argument")(lambda x, c: c.scale(x) * c.area)


class Point(NamedTuple):
    x: Any
    y: float


POINT = Point(1.0, 2.0)


@pure()
def named_tuple(x):
    a, b = POINT
    return x * POINT.x + POINT[1] + a + b + len(POINT)


class Mode(enum.Enum):
    FAST = "fast"
    SLOW = 2


MODE = Mode.FAST


@pure()
def enumeration(x):
    return x * 2 if MODE is Mode.FAST and MODE.value == "fast" and MODE != Mode.SLOW else x


class Slotted:
    __slots__ = ("size",)

    def __init__(self):
        self.size = 3


SLOTTED = Slotted()


@pure()
def slots(x):
    return x * SLOTTED.size


class Stack:
    def __init__(self, first):
        self.items = [first]
        self.count = 1

    def push(self, x):
        self.items.append(x)
        self.count += 1
        return self


@pure()
def own_objects(x):
    stack = Stack(x)
    stack.push(x + 1)
    return torch.stack(stack.push(x * 2).items) * stack.count


class Base:
    factor = 2

    def run(self, x):
        return x * self.factor


class Derived(Base):
    factor = 3

    def run(self, x):
        return super().run(x) + 1


DERIVED = Derived()


@pure()
def inheritance(x):
    return DERIVED.run(x) + getattr(DERIVED, "factor") + hasattr(DERIVED, "factor")  # noqa: B009


class Caller:
    def __call__(self, x):
        return x + 1


pure(name="callable_object")(Caller())


@pure()
def nested_containers(x):
    return x * NESTED["a"][0]["b"][1] + NESTED["t"][1][0]


NESTED = {"a": [{"b": (1.0, 2.0)}], "t": (1, [5])}


@pure([X, {"k": (Y, 2.0)}], name="container_as_argument")
def container_as_argument(batch):
    return batch[0] * batch[1]["k"][0] * batch[1]["k"][1]


# ---- pure: modules ----
class Net(nn.Module):
    def __init__(self):
        super().__init__()
        self.first = nn.Linear(2, 4)
        self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
        self.table = nn.ModuleDict({"a": nn.Linear(4, 4)})
        self.head = nn.Sequential(nn.LayerNorm(4), nn.ReLU(), nn.Dropout(0.1), nn.Linear(4, 2))
        self.scale = nn.Parameter(torch.ones(2))
        self.register_buffer("shift", torch.zeros(2))
        self.depth = 3
        self.act = F.relu

    def forward(self, x, extra=None):
        x = self.act(self.first(x))
        for k in range(self.depth):
            x = self.layers[k](x)
        for layer in self.layers:
            x = layer(x)
        x = self.table["a"](x)
        if self.training and extra is not None:
            x = x + extra
        return self.head(x) * self.scale + self.shift


NET = Net()
pure(X, name="module")(NET)
pure(X, name="forward_of_a_module")(NET.forward)
pure(torch.ones(1, 1, 8, 8), name="convolutions")(
    nn.Sequential(nn.Conv2d(1, 2, 3), nn.BatchNorm2d(2), nn.MaxPool2d(2), nn.Flatten(), nn.Linear(18, 2))
)
pure(torch.ones(2, 3, 4), name="transformer_layer")(nn.TransformerEncoderLayer(4, 2, 8, batch_first=True))
pure(torch.ones(2, 3, 4), name="lstm")(nn.LSTM(4, 5, 2))
pure(torch.ones(2, 3, dtype=torch.long), name="embedding")(nn.Embedding(4, 5))


class Scaled(nn.Linear):
    def forward(self, input):
        return super().forward(input) * 2


pure(X, name="subclass_of_a_layer")(Scaled(2, 2))
OPTIMIZER = torch.optim.AdamW(NET.parameters(), lr=1e-4)
SCHEDULER = torch.optim.lr_scheduler.StepLR(OPTIMIZER, 10)  # which puts a function of its own over the optimizer's step


@pure(X, Y)
def training_step(x, y):
    OPTIMIZER.zero_grad(set_to_none=True)
    loss = F.mse_loss(NET(x), y)
    loss.backward()
    torch.nn.utils.clip_grad_norm_(NET.parameters(), 1.0)
    OPTIMIZER.step()
    return loss.detach()


@pure(X, Y)
def loss_as_module(x, y):
    return CRITERION(x, y)


CRITERION = nn.MSELoss()


@pure()
def parameters(x):
    return sum(p.pow(2).sum() for p in NET.parameters()) + sum(
        p.sum() for n, p in NET.named_parameters() if "bias" not in n
    )


@pure(NET, X, name="module_as_argument")
def module_as_argument(model, x):
    return model(x)


@pure()
def functional(x):
    return torch.func.functional_call(NET, dict(NET.named_parameters()), (x,))


@pure()
def functional_method(x):
    return torch.func.functional_call(NET, dict(NET.named_parameters()), args=x).sum().sqrt()


class Cube(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        ctx.factor = 3
        return x**3

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * ctx.factor * x * x


@pure()
def custom_function(x):
    return Cube.apply(x)


@pure()
def item(x):
    return x * x.sum().item()


# ---- impure: output, input, time, chance ----
OUT = io.StringIO()


class Printer:
    def __call__(self, x):
        print("x", file=OUT)
        return x


@impure("builtins.print", lambda: OUT.getvalue())
def prints(x):
    print(x.shape, file=OUT)
    return x


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_branch(x):
    if x.sum() > 0:
        print("positive", file=OUT)
    return x


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_lambda(x):
    (lambda: print("a", file=OUT))()
    return x


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_map(x):
    return list(map(lambda v: print(v, file=OUT), x))


@impure("builtins.print", lambda: OUT.getvalue())
def prints_as_a_key(x):
    return sorted([2, 1], key=lambda k: print(k, file=OUT) or k)[0] * x


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_transform(x):
    def loss(v):
        print("loss", file=OUT)
        return v.sum()

    return torch.func.grad(loss)(x)


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_transform_of_a_transform(x):
    def loss(v):
        print("loss", file=OUT)
        return v.sum()

    return torch.vmap(torch.func.grad(loss))(x).sum()


class Recording:
    def __init__(self):
        self.seen = []

    def __call__(self, v):
        self.seen.append(1)
        return v.sum()


SEEING = Recording()
impure("seen", lambda: len(SEEING.seen), name="grad_of_an_object_that_counts")(torch.func.grad(SEEING))
impure("seen", lambda: len(SEEING.seen), name="hessian_of_an_object_that_counts")(torch.func.hessian(SEEING))


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_checkpoint(x):
    return torch.utils.checkpoint.checkpoint(lambda v: (print("c", file=OUT), v)[1], x, use_reentrant=False)


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_default(x, out=OUT):
    def inside(v, k=print("made", file=out)):  # noqa: B008
        return v

    return inside(x)


@impure("builtins.print", lambda: OUT.getvalue())
def prints_in_a_comprehension(x):
    return [print(k, file=OUT) for k in range(2)], x


@impure("StringIO", lambda: OUT.getvalue())
def writes_a_stream(x):
    OUT.write("a")
    return x


impure("builtins.print", lambda: OUT.getvalue(), name="callable_object_that_prints")(Printer())


class Handler(logging.Handler):
    lines: typing.ClassVar[list[str]] = []

    def emit(self, record):
        self.lines.append(record.getMessage())


LOGGER = logging.getLogger("purity")
LOGGER.addHandler(Handler())
LOGGER.propagate = False


@impure("", lambda: len(Handler.lines))
def logs(x):
    LOGGER.warning("called")
    return x


@impure("time", None)
def reads_the_time(x):
    return x.double() * 0 + time.perf_counter()


@impure("random", None)
def python_random(x):
    return x * 0 + random.random()


@impure("", None)
def numpy_random(x):
    return x * 0 + float(np.random.rand())


RNG = np.random.default_rng(0)


@impure("", None)
def numpy_generator(x):
    return x * 0 + float(RNG.standard_normal())


@impure("seed", lambda: torch.initial_seed())
def seeds(x):
    torch.manual_seed(int(torch.initial_seed()) % 1000 + 1)
    return x


FILE = tempfile.NamedTemporaryFile()  # noqa: SIM115


@impure("open", lambda: os.path.getsize(FILE.name))
def appends_to_a_file(x):
    with open(FILE.name, "a") as file:
        file.write("a")
    return x


@impure("set_", lambda: torch.get_default_dtype())
def changes_a_setting(x):
    torch.set_default_dtype(torch.float64 if torch.get_default_dtype() is torch.float32 else torch.float32)
    return x


# ---- impure: writes ----
COUNTER = 0
SEEN: list[Any] = []
TABLE: dict[str, Any] = {"n": 0}


@impure("COUNTER", lambda: COUNTER)
def writes_a_global(x):
    global COUNTER
    COUNTER += 1
    return x


@impure("SEEN", lambda: len(SEEN))
def appends_to_a_global(x):
    SEEN.append(1)
    return x


@impure("SEEN", lambda: len(SEEN))
def extends_a_global(x):
    seen = SEEN
    seen += [1]
    return x


@impure("append", lambda: len(SEEN))
def appends_through_a_method(x):
    add = SEEN.append
    add(1)
    return x


BOUND_APPEND = SEEN.append


@impure("BOUND_APPEND", lambda: len(SEEN))
def appends_through_a_global_method(x):
    BOUND_APPEND(1)
    return x


@impure("TABLE", lambda: TABLE["n"])
def writes_an_item(x):
    TABLE["n"] += 1
    return x


@impure("TABLE", lambda: len(TABLE))
def pops_an_item(x):
    TABLE[f"k{len(TABLE)}"] = 0
    return x


@impure("exists outside", lambda: len(TABLE))
def writes_through_an_alias(x):
    held = {"table": TABLE}
    held["table"][str(len(TABLE))] = 1
    return x


@impure("SEEN", lambda: len(SEEN))
def writes_through_a_local_object(x):
    Stack(x).items.append(1)
    class_less = [SEEN]
    class_less[0].append(1)
    return x


ARGUMENT: list[Any] = [X]


@impure("args[0]", lambda: len(ARGUMENT), ARGUMENT)
def appends_to_an_argument(items):
    items.append(1)
    return items[0]


@impure("exists outside", lambda: ARGUMENT[0].sum().item(), ARGUMENT)
def exchanges_an_item_of_an_argument(items):
    items[0] = items[0] + 1
    return items[0]


@impure("width", lambda: CONFIG2.width)
def writes_an_attribute(x):
    CONFIG2.width = CONFIG2.width + 1
    return x


CONFIG2 = Config()


@impure("width", lambda: CONFIG3.width)
def adds_to_an_attribute(x):
    CONFIG3.width += 1
    return x


CONFIG3 = Config()


@impure("setattr", lambda: CONFIG3.width)
def sets_by_name(x):
    setattr(CONFIG3, "width", CONFIG3.width + 1)  # noqa: B010
    return x


CONFIG3.gone = 1


def put_back():
    there = "gone" in vars(CONFIG3)
    CONFIG3.gone = len(SEEN)
    SEEN.append(1)
    return there, len(SEEN)


@impure("deletes", put_back)
def deletes_an_attribute(x):
    del CONFIG3.gone
    return x


@impure("Config", lambda: Config.__dict__.get("tally"))
def writes_a_class(x):
    Config.tally = getattr(Config, "tally", 0) + 1
    return x


def make_counter():
    count = 0

    def up(x):
        nonlocal count
        count += 1
        return x * count

    return up


impure("count", None, name="counts_in_a_cell")(make_counter())


def accumulate(x, seen=[]):  # noqa: B006
    seen.append(x)
    return len(seen) * x


impure("seen", None, name="mutable_default")(accumulate)


class Counting(nn.Module):
    def __init__(self):
        super().__init__()
        self.layer = nn.Linear(2, 2)
        self.calls = 0

    def forward(self, x):
        self.calls += 1
        return self.layer(x)


COUNTING = Counting()
impure("calls", lambda: COUNTING.calls, X, name="module_that_counts")(COUNTING)


class Remembering(nn.Module):
    def __init__(self):
        super().__init__()
        self.last = None

    def forward(self, x):
        self.last = x + (0 if self.last is None else self.last)
        return x


REMEMBERING = Remembering()
impure("last", lambda: REMEMBERING.last.sum().item(), X, name="module_that_remembers")(REMEMBERING)
INSIDE = nn.Sequential(nn.Linear(2, 2), Counting())
impure("calls", lambda: INSIDE[1].calls, X, name="module_that_counts_inside_a_sequential")(INSIDE)
HOOKED = nn.Linear(2, 2)
HOOKED.register_forward_hook(lambda module, args, result: SEEN.append(1))
impure("hooks", lambda: len(SEEN), X, name="hooks")(HOOKED)


@impure("train", lambda: NET2.training)
def changes_the_mode(x):
    NET2.train(not NET2.training)
    return x


NET2 = Net()


@impure("apply", lambda: NET2.first.weight.sum().item())
def applies(x):
    NET2.apply(lambda m: m.weight.data.add_(1) if isinstance(m, nn.Linear) else None)
    return x


@impure("register_hook", lambda: len(SEEN))
def registers_a_hook(x):
    w = x.clone().requires_grad_()
    w.register_hook(lambda g: SEEN.append(1))
    w.sum().backward()
    return w


@impure("tag", lambda: TAGGED.tag)
def tags_a_tensor(x):
    TAGGED.tag = getattr(TAGGED, "tag", 0) + 1
    return x


TAGGED = torch.ones(2)
TAGGED.tag = 0


class CountingFunction(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        SEEN.append(1)
        return x * 2

    @staticmethod
    def backward(ctx, g):
        return g * 2


@impure("SEEN", lambda: len(SEEN))
def custom_function_with_an_effect(x):
    return CountingFunction.apply(x)


class CountingBackward(CountingFunction):
    @staticmethod
    def forward(ctx, x):
        return x * 2

    @staticmethod
    def backward(ctx, g):
        SEEN.append(1)
        return g * 2


@impure("SEEN", lambda: len(SEEN))
def custom_backward_with_an_effect(x):
    w = x.clone().requires_grad_()
    CountingBackward.apply(w).sum().backward()
    return w.grad


# ---- impure: code that runs unseen ----
class Watched:
    reads = 0

    @property
    def size(self):
        Watched.reads += 1
        return 2


WATCHED = Watched()


@impure("reads", lambda: Watched.reads)
def property_with_a_counter(x):
    return x * WATCHED.size


class Dynamic:
    reads = 0

    def __getattr__(self, name):
        Dynamic.reads += 1
        return 2


DYNAMIC = Dynamic()


@impure("__getattr__", lambda: Dynamic.reads)
def computed_attribute(x):
    return x * DYNAMIC.size


class Intercepting:
    reads = 0
    size = 2

    def __getattribute__(self, name):
        Intercepting.reads += 1
        return object.__getattribute__(self, name)


INTERCEPTING = Intercepting()


@impure("__getattribute__", lambda: Intercepting.reads)
def intercepted_attribute(x):
    return x * INTERCEPTING.size


class Descriptor:
    reads = 0

    def __get__(self, owner, cls):
        Descriptor.reads += 1
        return 2


class Described:
    size = Descriptor()


DESCRIBED = Described()


@impure("Descriptor", lambda: Descriptor.reads)
def descriptor(x):
    return x * DESCRIBED.size


@impure("Descriptor", lambda: Descriptor.reads)
def descriptor_of_a_class(x):
    return x * Described.size


class Comparing:
    asked = 0

    def __eq__(self, other):
        Comparing.asked += 1
        return True

    def __hash__(self):
        Comparing.asked += 1
        return 1

    def __bool__(self):
        Comparing.asked += 1
        return True

    def __len__(self):
        Comparing.asked += 1
        return 1

    def __add__(self, other):
        Comparing.asked += 1
        return other

    __radd__ = __add__

    def __iter__(self):
        Comparing.asked += 1
        return iter(())

    def __getitem__(self, key):
        Comparing.asked += 1
        return 1

    def __contains__(self, key):
        Comparing.asked += 1
        return True

    def __str__(self):
        Comparing.asked += 1
        return "c"

    def __index__(self):
        Comparing.asked += 1
        return 0

    def __enter__(self):
        Comparing.asked += 1

    def __exit__(self, *error):
        pass


COMPARING = Comparing()


def asked():
    return Comparing.asked


@impure("__eq__", asked)
def equality(x):
    return x if COMPARING == 1 else x + 1


@impure("truth", asked)
def truth(x):
    return x if COMPARING else x + 1


@impure("truth", asked)
def negation(x):
    return x if not COMPARING else x + 1


@impure("truth", asked)
def conjunction(x):
    return (COMPARING and 1) * x


@impure("operator", asked)
def addition(x):
    return COMPARING + x


@impure("operator", asked)
def reflected_addition(x):
    return 1 + COMPARING + x


@impure("Comparing", asked)
def addition_by_a_function(x):
    return operator.add(COMPARING, x)


@impure("Comparing", asked)
def length(x):
    return x * len(COMPARING)


@impure("Comparing", asked)
def hashed(x):
    return {COMPARING: x}[COMPARING]


@impure("Comparing", asked)
def in_a_set(x):
    return len({COMPARING, 1}) * x


@impure("Comparing", asked)
def membership(x):
    return x * (3 in COMPARING)


@impure("Comparing", asked)
def membership_in_a_list(x):
    return x * (3 in [COMPARING])


@impure("Comparing", asked)
def comparison_of_lists(x):
    return x * ([COMPARING] == [3])


@impure("Comparing", asked)
def iteration(x):
    for _ in COMPARING:
        pass
    return x


@impure("Comparing", asked)
def unpacking(x):
    [*a] = COMPARING
    return x


@impure("Comparing", asked)
def subscription(x):
    return x * COMPARING[0]


@impure("Comparing", asked)
def formatting(x):
    return x * len(f"{COMPARING}")


@impure("Comparing", asked)
def string_of(x):
    return x * len(str(COMPARING))


@impure("Comparing", asked)
def given_to_the_library(x):
    return torch.sum(x, dim=COMPARING)


@impure("Comparing", asked)
def context_of_the_user(x):
    with COMPARING:
        return x


@impure("Comparing", asked)
def any_of(x):
    return x * any([COMPARING])


@impure("Comparing", asked)
def sum_of(x):
    return sum([COMPARING], x)


@impure("Comparing", asked)
def sorting(x):
    return sorted([COMPARING, COMPARING], key=lambda c: c == 1 and 0)[0] == 3 or x


class Meta(type):
    asked = 0

    def __instancecheck__(cls, value):
        Meta.asked += 1
        return True

    def __call__(cls, *args):
        Meta.asked += 1
        return args[0]

    def __getattribute__(cls, name):
        if name == "size":
            type.__setattr__(Meta, "asked", Meta.asked + 1)
        return type.__getattribute__(cls, name)


class OfMeta(metaclass=Meta):
    size = 2


@impure("", lambda: Meta.asked)
def metaclass_instance_check(x):
    return x if isinstance(x, OfMeta) else x + 1


@impure("metaclass", lambda: Meta.asked)
def metaclass_call(x):
    return OfMeta(x)


@impure("metaclass", lambda: Meta.asked)
def metaclass_attribute(x):
    return x * OfMeta.size


class CountingList(list):
    reads = 0

    def __getitem__(self, k):
        CountingList.reads += 1
        return 2

    def __iter__(self):
        CountingList.reads += 1
        return super().__iter__()


COUNTING_LIST = CountingList([1, 2])


@impure("CountingList", lambda: CountingList.reads)
def subclass_of_list(x):
    return x * COUNTING_LIST[0]


@impure("CountingList", lambda: CountingList.reads)
def loop_over_a_subclass_of_list(x):
    return [x * k for k in COUNTING_LIST]


DEFAULTS: dict[Any, Any] = collections.defaultdict(int)


@impure("defaultdict", lambda: len(DEFAULTS))
def default_dictionary(x):
    return x * DEFAULTS[f"{len(DEFAULTS)}"]


ITERATOR = itertools.count()


@impure("ITERATOR", None)
def moves_an_iterator(x):
    return x * next(ITERATOR)


GENERATOR = (k for k in range(1000))


@impure("GENERATOR", None)
def loops_over_a_generator(x):
    for k in GENERATOR:
        return x * k


def generate(x) -> Iterator[Any]:
    SEEN.append(1)
    yield x


@impure("generator", lambda: len(SEEN))
def calls_a_generator(x):
    return list(generate(x))


@impure("generator", lambda: len(SEEN))
def generator_inside(x):
    def inside():
        SEEN.append(1)
        yield x

    return list(inside())


@functools.cache
def cached(n):
    return n + 1


@impure("cached", lambda: cached.cache_info().hits)
def calls_a_cached_function(x):
    return x * cached(3)


class Lazy:
    made = 0

    @functools.cached_property
    def size(self):
        Lazy.made += 1
        return 2


@impure("cached_property", lambda: Lazy.made, X, name="cached_property")
def reads_a_cached_property(x):
    LAZY.__dict__.pop("size", None)
    return x * LAZY.size


LAZY = Lazy()
IMPURE["cached_property"] = IMPURE["cached_property"]._replace(reason="LAZY")


@impure("catches", lambda: len(SEEN))
def swallows(x):
    try:
        raise ValueError
    except ValueError:
        SEEN.append(1)
    return x


@impure("globals", lambda: len(globals()))
def writes_globals(x):
    globals()[f"made_{len(globals())}"] = 1
    return x


@impure("exec", lambda: len(SEEN))
def executes(x):
    exec("SEEN.append(1)")
    return x


@impure("eval", lambda: len(SEEN))
def evaluates(x):
    eval("SEEN.append(1)")
    return x


@impure("_getframe", lambda: sys._getframe().f_back.f_lineno, X)
def reads_frames(x):
    return x * sys._getframe(1).f_lineno


IMPURE["reads_frames"] = IMPURE["reads_frames"]._replace(look=lambda: len(SEEN) if SEEN.append(1) is None else 0)


@impure("id", None)
def reads_an_address(x):
    return (id([x, *KEPT]) % 1000003, KEPT.append([object()] * 100))


KEPT: list[Any] = []
IMPURE["reads_an_address"] = IMPURE["reads_an_address"]._replace(look=lambda: len(KEPT))


@impure("class inside", lambda: len(Config.__subclasses__()))
def makes_a_class(x):
    class Inner(Config):
        pass

    KEPT.append(Inner)
    return x


@impure("numpy", lambda: X_WRITTEN.sum().item())
def writes_memory(x):
    X_WRITTEN.numpy()[0] += 1
    return x


X_WRITTEN = torch.ones(2)
ARRAY = np.ones(2)


@impure("", lambda: ARRAY.sum())
def writes_an_array(x):
    np.add(ARRAY, 1, out=ARRAY)
    return x


@impure("", lambda: ARRAY.sum())
def writes_an_item_of_an_array(x):
    ARRAY[0] += 1
    return x


@impure("ARRAY", None)
def reads_an_array(x):
    return x * torch.as_tensor(ARRAY)[0]


IMPURE["reads_an_array"] = IMPURE["reads_an_array"]._replace(look=lambda: np.add(ARRAY, 1, out=ARRAY).sum())


@impure("imports", lambda: "this_is_no_module" in sys.modules)
def imports_what_is_not_loaded(x):
    import antigravity  # noqa: F401

    return x


del IMPURE["imports_what_is_not_loaded"]  # it would open a browser


class Deleted:
    gone = 0

    def __del__(self):
        Deleted.gone += 1


@impure("__del__", lambda: Deleted.gone)
def makes_an_object_with_an_end(x):
    Deleted()
    return x


class Setting:
    sets = 0

    @property
    def size(self):
        return 1

    @size.setter
    def size(self, value):
        Setting.sets += 1


@impure("Setting", lambda: Setting.sets)
def sets_a_property_of_an_own_object(x):
    Setting().size = 3
    return x


class Guarded:
    sets = 0

    def __setattr__(self, name, value):
        Guarded.sets += 1
        object.__setattr__(self, name, value)


@impure("__setattr__", lambda: Guarded.sets)
def sets_an_attribute_of_an_own_object(x):
    Guarded().size = 3
    return x


class Starting:
    made = 0

    def __init__(self):
        Starting.made += 1


@impure("made", lambda: Starting.made)
def makes_an_object_that_counts(x):
    Starting()
    return x


class New:
    made = 0

    def __new__(cls):
        New.made += 1
        return object.__new__(cls)


@impure("__new__", lambda: New.made)
def makes_an_object_in_a_special_way(x):
    New()
    return x


class Layer(nn.Module):
    asked = 0

    def __getattr__(self, name):
        Layer.asked += 1
        return super().__getattr__(name)

    def __init__(self):
        super().__init__()
        self.inner = nn.Linear(2, 2)

    def forward(self, x):
        return self.inner(x)


impure("__getattr__", lambda: Layer.asked, X, name="module_with_getattr")(Layer())


class Called(nn.Module):
    asked = 0

    def __call__(self, x):
        Called.asked += 1
        return x


impure("how it is called", lambda: Called.asked, X, name="module_with_call")(Called())


class UserActivation:
    asked = 0

    def __call__(self, x):
        UserActivation.asked += 1
        return x.relu()


def counting_activation(x):
    UserActivation.asked += 1
    return x.relu()


impure("asked", lambda: UserActivation.asked, torch.ones(2, 3, 4), name="layer_with_an_activation_that_counts")(
    nn.TransformerEncoderLayer(4, 2, 8, batch_first=True, activation=counting_activation, dropout=0.0)
)


class CountingConv(nn.Conv2d):
    asked = 0

    def _conv_forward(self, input, weight, bias):
        CountingConv.asked += 1
        return super()._conv_forward(input, weight, bias)


impure("asked", lambda: CountingConv.asked, torch.ones(1, 1, 4, 4), name="layer_with_a_part_that_counts")(
    CountingConv(1, 1, 3)
)


def broken_wrapper(function):
    calls = []

    @functools.wraps(function)
    def wrapper(x):
        calls.append(1)
        return function(x) * len(calls)

    return wrapper


impure("calls", None, name="decorator_that_counts")(broken_wrapper(helper))
impure("COUNTER", lambda: COUNTER, name="no_grad_around_an_effect")(torch.no_grad()(writes_a_global))
impure("COUNTER", lambda: COUNTER, name="grad_of_an_effect")(torch.func.vmap(writes_a_global))
impure("COUNTER", lambda: COUNTER, X, name="partial_of_an_effect")(functools.partial(writes_a_global))


class Schedule:
    def __init__(self):
        self.step_count = 0

    def step(self):
        self.step_count += 1
        return 0.5**self.step_count


SCHEDULE = Schedule()


@impure("step_count", None)
def schedule_of_the_user(x):
    return x * SCHEDULE.step()


@impure("", lambda: len(SEEN))
def closure_in_a_list_of_functions(x):
    for callback in CALLBACKS:
        callback(x)
    return x


CALLBACKS = [torch.relu, lambda v: SEEN.append(1)]


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_later_turn(x):
    f = torch.relu
    for _ in range(3):
        x = f(x)
        f = remembering
    return x


def remembering(x):
    SEEN.append(1)
    return x


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_loop_else(x):
    for _ in range(2):
        pass
    else:
        SEEN.append(1)
    return x


@impure("SEEN", lambda: len(SEEN))
def effect_in_finally(x):
    try:
        x = x + 1
    finally:
        SEEN.append(1)
    return x


@impure("SEEN", lambda: len(SEEN))
def effect_in_an_assertion(x):
    assert SEEN.append(1) is None
    return x


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_slice(x):
    return x[SEEN.append(1) or 0 :]


@impure("SEEN", lambda: len(SEEN))
def effect_in_an_argument(x):
    return helper(x, shift=len(SEEN) if SEEN.append(1) else 1)


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_decorator(x):
    def noting(f):
        SEEN.append(1)
        return f

    @noting
    def inside(v):
        return v

    return inside(x)


# ---- impure: what is easily overlooked ----
@impure("SEEN", lambda: len(SEEN))
def variable_of_a_loop_without_turns(x):
    f = remembering
    for f in [torch.relu for _ in x[:0]]:  # noqa: B007
        pass
    f(x)
    return x


@impure("SEEN", lambda: len(SEEN))
def generator_that_runs_late(x):
    f = torch.relu
    late = (f(v) for v in x)
    f = remembering
    return list(late)


@impure("SEEN", lambda: len(SEEN))
def list_that_grows_in_its_loop(x):
    functions = [torch.relu]
    for f in functions:
        f(x)
        if len(functions) < 2:
            functions.append(remembering)
    return x


@impure("comprehension", lambda: len(SEEN))
def assignment_in_a_comprehension(x):
    f = torch.relu
    _ = [(f(x), f := remembering) for _ in range(2)]
    return x


@impure("unpacked", lambda: len(SEEN))
def unpacked_arguments_of_a_builtin(x):
    parts = [remembering]
    parts.append([x])
    return list(map(*parts))


@impure("SEEN", lambda: len(SEEN))
def unpacked_arguments(x):
    def apply(f, v):
        return f(v)

    return apply(*[remembering, x])


@impure("SEEN", lambda: len(SEEN))
def unpacked_keywords(x):
    def apply(v, f):
        return f(v)

    return apply(x, **{"f": remembering})


class Failure(Exception):
    made = 0

    def __init__(self):
        Failure.made += 1


@impure("Failure", lambda: Failure.made)
def exception_that_counts(x):
    Failure()
    return x


@impure("try block", lambda: len(SEEN))
def returns_from_a_try(x):
    f = remembering
    try:
        if x.sum() != 0.125:
            return x
        f = torch.relu
    finally:
        f(x)
    return x


@impure("makes a", lambda: torch.is_grad_enabled())
def sets_the_grad_mode(x):
    torch.set_grad_enabled(not torch.is_grad_enabled())
    return x


@impure("annotations", lambda: len(SEEN))
def annotation_with_an_effect(x):
    exec_annotations = _annotated
    return exec_annotations(x)


_ANNOTATED = """
def _annotated(x):
    def inside(v: SEEN.append(1)):
        return v
    return inside(x)
"""
_ANNOTATED_FILE = "<annotated>"
linecache.cache[_ANNOTATED_FILE] = len(_ANNOTATED), None, _ANNOTATED.splitlines(keepends=True), _ANNOTATED_FILE
exec(compile(_ANNOTATED, _ANNOTATED_FILE, "exec", dont_inherit=True), globals())
if sys.version_info >= (3, 14):
    del IMPURE["annotation_with_an_effect"]  # annotations are computed when somebody asks


class Logged(torch.Tensor):
    calls = 0

    @classmethod
    def __torch_function__(cls, func, types, args=(), kwargs=None):
        Logged.calls += 1
        return super().__torch_function__(func, types, args, kwargs or {})


LOGGED = torch.ones(2, 2).as_subclass(Logged)
impure("subclass", lambda: Logged.calls, LOGGED, name="subclass_of_tensor")(lambda x: x + 1)


@impure("subclass", lambda: Logged.calls)
def captured_subclass_of_tensor(x):
    return x + LOGGED


HOOKED_LEAF = torch.ones(2, 2, requires_grad=True)
HOOKED_LEAF.register_hook(lambda g: SEEN.append(1))


@impure("hooks", lambda: len(SEEN))
def hook_on_a_leaf(x):
    (HOOKED_LEAF * x).sum().backward()
    return x


STEPPED = torch.ones(2, requires_grad=True)
HOOKED_OPTIMIZER = torch.optim.SGD([STEPPED], lr=0.1)
HOOKED_OPTIMIZER.register_step_post_hook(lambda *given: SEEN.append(1))


@impure("hooks", lambda: len(SEEN))
def hook_on_an_optimizer(x):
    STEPPED.sum().backward()
    HOOKED_OPTIMIZER.step()
    return x


PLAIN_OPTIMIZER = torch.optim.SGD([STEPPED], lr=0.1)
COUNTING_SCHEDULER = torch.optim.lr_scheduler.LambdaLR(PLAIN_OPTIMIZER, lambda epoch: (SEEN.append(1), 1.0)[1])


@impure("it changes SEEN, a list that exists outside of it", lambda: len(SEEN))
def scheduler_with_a_function_that_counts(x):
    PLAIN_OPTIMIZER.step()
    COUNTING_SCHEDULER.step()
    return x


class OwnScheduler(torch.optim.lr_scheduler.LRScheduler):
    def get_lr(self):
        SEEN.append(1)
        return [0.1]


OWN_OPTIMIZER = torch.optim.SGD([STEPPED], lr=0.1)
OWN_SCHEDULER = OwnScheduler(OWN_OPTIMIZER)


@impure("", lambda: len(SEEN))
def scheduler_of_the_user(x):
    OWN_OPTIMIZER.step()
    OWN_SCHEDULER.step()
    return x


def another_subclass():
    KEPT.append(type("Sub", (Config,), {}))
    return len(KEPT)


@impure("Config", another_subclass)
def asks_a_class_for_its_subclasses(x):
    return len(Config.__subclasses__()) * x


@impure("identity", None)
def identity_of_numbers(x):
    return x, (SEEN.append(1), BIG is OTHER_BIG, len(SEEN))[2]


BIG, OTHER_BIG = 10**20, 10**20 + 0
IMPURE["identity_of_numbers"] = IMPURE["identity_of_numbers"]._replace(reason="")


@impure("_private", lambda: PRIVATE._Private__count)
def private_attribute(x):
    return PRIVATE.up(x)


class Private:
    def __init__(self):
        self.__count = 0

    def up(self, x):
        self.__count += 1
        return x


PRIVATE = Private()
IMPURE["private_attribute"] = IMPURE["private_attribute"]._replace(reason="_Private__count")


class Wrapping:
    """A decorator that is an object, and counts."""

    def __init__(self, function):
        self.function = function
        self.calls = 0

    def __call__(self, x):
        self.calls += 1
        return self.function(x)


WRAPPING = Wrapping(torch.relu)
impure("calls", lambda: WRAPPING.calls, name="decorator_object_that_counts")(WRAPPING)


@impure("SEEN", lambda: len(SEEN))
def effect_by_a_conditional_function(x):
    f = torch.relu if x.sum() == 0.125 else remembering
    return f(x) if x.dim() else x


@impure("SEEN", lambda: len(SEEN))
def effect_through_a_container(x):
    held = {"f": [torch.relu]}
    held["f"] += [remembering]
    return [f(x) for f in held["f"]]


@impure("SEEN", lambda: len(SEEN))
def effect_through_an_object(x):
    stack = Stack(torch.relu)
    stack.push(remembering)
    for f in stack.items:
        x = f(x)
    return x


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_returned_function(x):
    def make():
        return remembering

    return make()(x)


@impure("SEEN", lambda: len(SEEN))
def effect_by_getattr(x):
    return getattr(SEEN, "append")(1), x  # noqa: B009


@impure("computed", lambda: len(SEEN))
def effect_by_a_computed_name(x):
    name = "".join(reversed("dneppa"))
    return getattr(SEEN, name)(1), x


@impure("SEEN", lambda: len(SEEN))
def effect_in_a_tree(x):
    return torch.utils._pytree.tree_map(remembering, [x])


@impure("globals", lambda: TABLE.get("g", 0))
def effect_by_globals(x):
    globals()["TABLE"]["g"] = TABLE.get("g", 0) + 1
    return x


@impure("not public", lambda: TAGGED.tag)
def tags_a_tensor_by_a_method(x):
    TAGGED.__setattr__("tag", TAGGED.tag + 1)
    return x


@impure("not public", lambda: TAGGED.sum().item())
def writes_the_array_of_a_tensor(x):
    TAGGED._array[0] += 1
    return x


@impure("match", lambda: len(SEEN))
def effect_in_a_match(x):
    match x.dim():
        case 2:
            SEEN.append(1)
    return x


# ---- pure: what is easily refused ----
@pure()
def constant_slice(x):
    return x[PART], LIST_OF_FUNCTIONS[PART][0](x)


PART = slice(0, 1)
LIST_OF_FUNCTIONS = [torch.relu, torch.tanh]


@pure()
def early_raise(x):
    if x.dim() != 2:
        unsupported(x)
    return x


def unsupported(x):
    raise ValueError(f"not {x.dim()} dimensions")


@pure()
def large_numbers(x):
    return x * (HUGE > 1)


HUGE = 10**6000


@pure()
def not_a_number(x):
    return x * NAN + INFINITE


NAN, INFINITE = math.nan, -math.inf


@pure()
def comparisons_of_enumerations(x):
    return x * {Mode.FAST: 1.0}.get(MODE, 2.0) if MODE in (Mode.FAST, Mode.SLOW) else x


@pure()
def types_of_values(x):
    return x * 2 if type(x) is torch.Tensor and x.dtype == torch.float32 and x.device.type == "cpu" else x


@pure()
def optimizer_groups(x):
    return x * len(OPTIMIZER.param_groups)


@pure(torch.ones(2, 2, requires_grad=True), name="gradient_of_an_argument")
def gradient_of_an_argument(x):
    x.grad = None
    (x * x).sum().backward()
    return x.grad


WRAPPED = torch.func.grad(lambda v: (v * v).sum() * SCALE)
pure(X, name="transform_made_before")(WRAPPED)


@pure()
def calls_a_transform_made_before(x):
    return WRAPPED(x) + torch.func.vmap(WRAPPED)(x)
