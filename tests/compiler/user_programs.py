"""Programs as people write them, each with a function to compile: networks, training steps, transforms, configurations.

A program takes `wrap`, by which it makes the function that is to be compiled, and returns what there is to see: compiled, it must be what
it is in eager. `eager="..."` says that the function runs in eager, and why.
"""

from __future__ import annotations

import contextlib
import dataclasses
import enum
import functools
import math
import operator
from collections import OrderedDict, namedtuple
from collections.abc import Callable
from typing import Any, NamedTuple

import retrograd as torch
import retrograd.nn.functional as F
from retrograd import nn
from retrograd.func import functional_call, grad, grad_and_value, hessian, jacfwd, jacrev, jvp, vjp, vmap


class Program(NamedTuple):
    run: Callable[[Any], Any]
    eager: str  # why it runs in eager; "" if it is compiled


PROGRAMS: dict[str, Program] = {}
CALLS = 4


def program(run: Any = None, *, eager: str = "") -> Any:
    if run is None:
        return functools.partial(program, eager=eager)
    assert run.__name__ not in PROGRAMS
    PROGRAMS[run.__name__] = Program(run, eager)
    return run


def batches(*shape: int, calls: int = CALLS) -> list[Any]:
    torch.manual_seed(7)
    return [torch.randn(*shape) for _ in range(calls)]


def called(wrap: Any, function: Any, *shape: int) -> list[Any]:
    """Call a function several times on other numbers."""
    call = wrap(function)
    return [call(x) for x in batches(*shape)]


def trained(wrap: Any, model: Any, *shape: int, optimizer: Any = None) -> Any:
    """Train a module for some steps: the losses, and what the parameters are."""
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05) if optimizer is None else optimizer(model.parameters())

    def step(x: Any) -> Any:
        optimizer.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        optimizer.step()
        return loss

    call = wrap(step)
    losses = [call(x).detach() for x in batches(*shape)]
    return losses, [p.detach().clone() for p in model.parameters()]


# ---- networks with conditions ----
class Conditional(nn.Module):
    def __init__(self, residual: bool = True, norm: str = "layer", dropout: float = 0.0) -> None:
        super().__init__()
        self.lin1, self.lin2 = nn.Linear(6, 8), nn.Linear(8, 6)
        self.residual = residual
        self.norm = nn.LayerNorm(6) if norm == "layer" else nn.Identity() if norm == "none" else None
        self.dropout = dropout

    def forward(self, x: Any) -> Any:
        h = F.relu(self.lin1(x))
        if self.training and self.dropout > 0:
            h = F.dropout(h, self.dropout)
        h = self.lin2(h)
        if self.residual:
            h = h + x
        if self.norm is not None:
            h = self.norm(h)
        return h


@program
def conditions_on_training(wrap):
    torch.manual_seed(0)
    model = Conditional(dropout=0.3)
    call = wrap(model)
    seen = []
    for turn, x in enumerate(batches(3, 6)):
        model.train(turn < 2)
        torch.manual_seed(turn)
        seen.append(call(x))
    return seen


@program
def conditions_on_attributes(wrap):
    torch.manual_seed(0)
    return [called(wrap, Conditional(r, n), 3, 6) for r in (True, False) for n in ("layer", "none", "")]


class Config(NamedTuple):
    width: int = 8
    activation: str = "gelu"
    scale: float = 0.5


@dataclasses.dataclass
class DataConfig:
    width: int = 8
    activation: str = "tanh"
    bias: bool = True
    eps: float = 1e-5
    layers: list[int] = dataclasses.field(default_factory=lambda: [8, 4])

    @property
    def half(self) -> int:
        return self.width // 2


@dataclasses.dataclass(frozen=True)
class Frozen:
    heads: int = 2
    causal: bool = True


class Kind(enum.Enum):
    MEAN = "mean"
    SUM = "sum"
    NONE = "none"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class WithConfig(nn.Module):
    def __init__(self, config: Any, kind: Kind = Kind.MEAN) -> None:
        super().__init__()
        self.config = config
        self.kind = kind
        self.lin = nn.Linear(6, config.width)

    def forward(self, x: Any) -> Any:
        y = self.lin(x)
        if self.config.activation == "gelu":
            y = F.gelu(y)
        elif self.config.activation == "tanh":
            y = torch.tanh(y)
        else:
            raise ValueError(f"unknown activation {self.config.activation}")
        if self.kind is Kind.MEAN:
            return y.mean(dim=-1)
        if self.kind == Kind.SUM:
            return y.sum(dim=-1)
        return y


@program
def named_tuple_config(wrap):
    torch.manual_seed(0)
    return called(wrap, WithConfig(Config()), 3, 6)


@program
def dataclass_config_and_enum(wrap):
    torch.manual_seed(0)
    return [called(wrap, WithConfig(DataConfig(), kind), 3, 6) for kind in Kind]


@program
def dataclass_property_and_list(wrap):
    config = DataConfig()

    def f(x):
        y = x[:, : config.half]
        for n in config.layers:
            y = y * n + config.eps
        return y

    return called(wrap, f, 3, 8)


@program(eager="it compares level, a Level")
def int_enum_in_a_comparison(wrap):
    def f(x, level=Level.HIGH):
        return x * 2 if level > Level.LOW else x

    return called(wrap, f, 3)


@program(eager="an argument of type Kind")
def enum_as_argument(wrap):
    def f(x, kind):
        if kind is Kind.MEAN:
            return x.mean()
        return x.sum() if kind is Kind.SUM else x

    call = wrap(f)
    return [call(x, kind) for x in batches(3) for kind in Kind]


@program
def dictionary_of_functions(wrap):
    table = {"relu": F.relu, "tanh": torch.tanh, "square": lambda t: t * t}

    def f(x, name):
        return table[name](x).sum()

    call = wrap(f)
    return [call(x, name) for x in batches(3) for name in table]


# ---- inputs and outputs ----
@program(eager="a result is computed of another one")  # compiled in parts
def dictionary_in_and_out(wrap):
    torch.manual_seed(0)
    lin = nn.Linear(4, 4)

    def f(batch):
        hidden = lin(batch["x"])
        out = {"hidden": hidden, "loss": F.mse_loss(hidden, batch["y"])}
        if "mask" in batch:
            out["masked"] = hidden * batch["mask"]
        return out

    call = wrap(f)
    return [call({"x": x, "y": x * 2}) for x in batches(3, 4)] + [
        call({"x": x, "y": x, "mask": (x > 0).float()}) for x in batches(3, 4)
    ]


@dataclasses.dataclass
class ModelOutput:
    logits: Any
    loss: Any = None


@program(eager="the source of __create_fn__.<locals>.__init__ is not available")
def dataclass_out(wrap):
    torch.manual_seed(0)
    lin = nn.Linear(4, 3)

    def f(x, y):
        logits = lin(x)
        return ModelOutput(logits=logits, loss=F.cross_entropy(logits, y))

    call = wrap(f)
    seen = [call(x, torch.tensor([0, 1, 2])) for x in batches(3, 4)]
    return [(one.logits, one.loss, type(one).__name__) for one in seen]


@program(eager="the source of __create_fn__.<locals>.__init__ is not available")
def dataclass_inside(wrap):
    torch.manual_seed(0)
    lin = nn.Linear(4, 3)

    def inner(x):
        return ModelOutput(lin(x))

    def f(x):
        out = inner(x)
        return out.logits.sum() if out.loss is None else out.loss

    return called(wrap, f, 3, 4)


Pair = namedtuple("Pair", "first second")


@program(eager="it makes a Pair, which defines __new__")
def named_tuple_out(wrap):
    def f(x):
        return Pair(x + 1, second=x * 2)

    return [(one.first, one.second, type(one).__name__) for one in called(wrap, f, 3)]


@program(eager="a result of type OrderedDict")
def ordered_dict_out(wrap):
    def f(x):
        out = OrderedDict()
        out["a"] = x + 1
        out["b"] = x * 2
        return out

    return [(type(one).__name__, list(one), list(one.values())) for one in called(wrap, f, 3)]


@program
def lists_of_tensors_in(wrap):
    def f(xs, ys=()):
        total = sum(x.sum() for x in xs)
        for y in ys:
            total = total + y
        return total / len(xs)

    call = wrap(f)
    return [call([x, x * 2], (x.sum(), x.mean())) for x in batches(3)]


@program
def nested_trees(wrap):
    def f(tree):
        a, (b, rest) = tree["a"], tree["b"]
        return {"c": [a + b, *rest], "d": (a, {"e": b * 2})}

    call = wrap(f)
    return [call({"a": x, "b": (x + 1, [x * 2, x * 3])}) for x in batches(3)]


@program
def args_and_kwargs(wrap):
    def inner(x, *args, scale=1.0, **kwargs):
        for a in args:
            x = x + a
        return x * scale + kwargs.get("shift", 0.0)

    def f(*args, **kwargs):
        return inner(*args, **kwargs)

    call = wrap(f)
    return [call(x, x * 2, 1.0, scale=2.0, shift=x.mean()) for x in batches(3)]


@program
def kwargs_through_modules(wrap):
    class Block(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x, mask=None, **kwargs):
            y = self.lin(x)
            if mask is not None:
                y = y.masked_fill(mask, 0.0)
            if kwargs.get("residual", False):
                y = y + x
            return y

    torch.manual_seed(0)
    blocks = nn.ModuleList([Block(), Block()])

    def f(x, **kwargs):
        for block in blocks:
            x = block(x, **kwargs)
        return x

    call = wrap(f)
    return [call(x, mask=x > 0, residual=True) for x in batches(3, 4)]


@program
def partials(wrap):
    soft = functools.partial(F.softmax, dim=-1)
    double = functools.partial(operator.mul, 2)

    def f(x, act=functools.partial(F.leaky_relu, negative_slope=0.1)):
        return double(act(soft(x)))

    return called(wrap, f, 3, 4)


@program
def a_partial_is_compiled(wrap):
    def f(x, scale, shift=0.0):
        return x * scale + shift

    call = wrap(functools.partial(f, shift=1.0))
    return [call(x, 2.0) for x in batches(3)]


@program
def closures_and_lambdas(wrap):
    def make(scale):
        def inner(x):
            return x * scale

        return inner

    fs = [make(2.0), make(3.0), lambda t: t.tanh()]

    def f(x):
        return [g(x) for g in fs]

    return called(wrap, f, 3)


class LambdaLayer(nn.Module):
    def __init__(self, function):
        super().__init__()
        self.function = function

    def forward(self, x):
        return self.function(x)


@program
def lambdas_in_modules(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(
        nn.Linear(4, 8), LambdaLayer(lambda t: t.view(-1, 2, 4)), LambdaLayer(torch.tanh), nn.Flatten(1)
    )
    return called(wrap, model, 3, 4)


class Properties(nn.Module):
    def __init__(self):
        super().__init__()
        self.lin = nn.Linear(4, 4)
        self._scale = 2.0

    @property
    def scale(self):
        return self._scale

    @property
    def device(self):
        return next(self.parameters()).device

    @property
    def dtype(self):
        return self.lin.weight.dtype

    @staticmethod
    def act(x):
        return x.relu()

    @classmethod
    def name_of(cls):
        return cls.__name__

    def forward(self, x):
        x = x.to(self.device).to(self.dtype)
        return self.act(self.lin(x)) * self.scale


@program
def properties_and_static_methods(wrap):
    torch.manual_seed(0)
    return called(wrap, Properties(), 3, 4)


@program
def isinstance_checks(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Dropout(0.0), nn.Linear(4, 2))

    def f(x):
        for layer in model:
            x = layer(x)
            if isinstance(layer, nn.Linear):
                x = x * 0.5
            elif isinstance(layer, (nn.ReLU, nn.Tanh)):
                x = x + 1
        return x if isinstance(x, torch.Tensor) else None

    return called(wrap, f, 3, 4)


@program
def formatted_errors_and_asserts(wrap):
    def f(x, y):
        if x.shape != y.shape:
            raise ValueError(f"shapes differ: {tuple(x.shape)} and {tuple(y.shape)}")
        assert x.dim() == 2, f"expected 2 dimensions, got {x.dim()}"
        assert x.size(0) > 0
        if x.shape[1] % 2 != 0:
            msg = "an even number of columns is needed, not {}".format(x.shape[1])
            raise RuntimeError(msg)
        return x @ y.T

    call = wrap(f)
    return [call(x, x + 1) for x in batches(3, 4)]


@program
def early_returns(wrap):
    def f(x, y=None, return_hidden=False):
        h = x * 2
        if y is None:
            return h
        loss = (h - y).abs().mean()
        if not return_hidden:
            return loss
        return loss, h

    call = wrap(f)
    return [[call(x), call(x, x), call(x, x, True)] for x in batches(3)]


@program
def module_list_and_dict(wrap):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(3)])
            self.heads = nn.ModuleDict({"a": nn.Linear(4, 2), "b": nn.Linear(4, 3)})
            self.acts = nn.ModuleDict([("relu", nn.ReLU()), ("tanh", nn.Tanh())])

        def forward(self, x, act="relu"):
            for i, layer in enumerate(self.layers):
                x = layer(x)
                if i < len(self.layers) - 1:
                    x = self.acts[act](x)
            return {name: head(x) for name, head in self.heads.items()}

    torch.manual_seed(0)
    call = wrap(Net())
    return [call(x, act) for x in batches(3, 4) for act in ("relu", "tanh")]


@program
def zip_reversed_and_skips(wrap):
    class UNet(nn.Module):
        def __init__(self):
            super().__init__()
            self.down = nn.ModuleList([nn.Linear(8, 4), nn.Linear(4, 2)])
            self.up = nn.ModuleList([nn.Linear(2, 4), nn.Linear(4, 8)])

        def forward(self, x):
            skips = []
            for layer in self.down:
                skips.append(x)
                x = F.silu(layer(x))
            for layer, skip in zip(self.up, reversed(skips)):
                x = F.silu(layer(x)) + skip
            return x

    torch.manual_seed(0)
    return called(wrap, UNet(), 3, 8)


@program
def pop_from_a_stack(wrap):
    def f(x):
        stack = [x]
        for k in range(3):
            stack.append(stack[-1] * 2 + k)
        while len(stack) > 1:
            top = stack.pop()
            stack[-1] = stack[-1] + top
        return stack[0]

    return called(wrap, f, 3)


@program
def list_comprehensions(wrap):
    def f(xs):
        ys = [x * i for i, x in enumerate(xs) if i % 2 == 0]
        zs = {f"k{i}": y.sum() for i, y in enumerate(ys)}
        return torch.stack(ys).sum(0), sorted(zs), torch.cat([y[None] for y in ys])

    call = wrap(f)
    return [call([x, x + 1, x + 2]) for x in batches(3)]


# ---- custom functions, buffers, tying ----
class Clip(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x, bound):
        ctx.save_for_backward(x)
        ctx.bound = bound
        return x.clamp(-bound, bound)

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * (x.abs() <= ctx.bound), None


class StraightThrough(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        return x.round()

    @staticmethod
    def backward(ctx, g):
        return g


@program(eager="a tensor from outside gets another history")
def custom_functions(wrap):
    def f(x):
        x = x.requires_grad_()
        loss = (Clip.apply(x, 0.5) * 3 + StraightThrough.apply(x)).sum()
        (g,) = torch.autograd.grad(loss, x)
        return loss.detach(), g

    call = wrap(f)
    return [call(x) for x in batches(5)]


@program
def custom_function_in_a_module(wrap):
    class Quantized(nn.Module):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def forward(self, x):
            w = StraightThrough.apply(self.lin.weight * 8) / 8
            return F.linear(Clip.apply(x, 1.0), w, self.lin.bias)

    torch.manual_seed(0)
    return trained(wrap, Quantized(), 3, 4)


@program
def straight_through_by_detach(wrap):
    def f(x):
        hard = (x > 0).float()
        soft = torch.sigmoid(x)
        return hard + soft - soft.detach()

    return called(wrap, f, 5)


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.register_buffer("mean", torch.zeros(4))
        self.register_buffer("steps", torch.tensor(0))
        self.momentum = 0.1

    def forward(self, x):
        if self.training:
            with torch.no_grad():
                self.mean.mul_(1 - self.momentum).add_(x.mean(0), alpha=self.momentum)
                self.steps.add_(1)
        return x - self.mean


@program
def buffers_in_place(wrap):
    model = Average()
    call = wrap(model)
    return [(call(x), model.mean.clone(), model.steps.clone()) for x in batches(3, 4)]


@program
def buffers_by_copy(wrap):
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            new = 0.9 * self.mean + 0.1 * x.mean(0)
            self.mean.copy_(new.detach())
            return x - new

    model = Moving()
    call = wrap(model)
    return [(call(x), model.mean.clone()) for x in batches(3, 4)]


@program
def buffers_by_data(wrap):
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean.data.copy_(0.9 * self.mean.data + 0.1 * x.mean(0).data)
            return x - self.mean

    model = Moving()
    call = wrap(model)
    return [(call(x), model.mean.clone()) for x in batches(3, 4)]


@program(eager="it writes the attribute mean of function, a buffers_by_assignment.<loc")
def buffers_by_assignment(wrap):
    class Moving(nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("mean", torch.zeros(4))

        def forward(self, x):
            self.mean = 0.9 * self.mean + 0.1 * x.mean(0).detach()
            return x - self.mean

    model = Moving()
    call = wrap(model)
    return [(call(x), model.mean.clone()) for x in batches(3, 4)]


class Tied(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(10, 6)
        self.head = nn.Linear(6, 10, bias=False)
        self.head.weight = self.embed.weight

    def forward(self, tokens):
        return self.head(self.embed(tokens))


@program
def tied_weights(wrap):
    torch.manual_seed(0)
    model = Tied()
    optimizer = torch.optim.AdamW(model.parameters(), lr=0.01)

    def step(tokens):
        optimizer.zero_grad(set_to_none=True)
        logits = model(tokens[:, :-1])
        loss = F.cross_entropy(logits.reshape(-1, logits.size(-1)), tokens[:, 1:].reshape(-1))
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = wrap(step)
    torch.manual_seed(1)
    seen = [call(torch.randint(10, (2, 5))) for _ in range(CALLS)]
    return seen, model.embed.weight.detach()


# ---- reshapes and attention ----
def rearrange_heads(x, heads):
    b, t, c = x.shape
    return x.view(b, t, heads, c // heads).transpose(1, 2)


def merge_heads(x):
    b, h, t, d = x.size()
    return x.transpose(1, 2).contiguous().view(b, t, h * d)


class Attention(nn.Module):
    def __init__(self, width=8, heads=2, dropout=0.0, most=16):
        super().__init__()
        assert width % heads == 0
        self.heads = heads
        self.qkv = nn.Linear(width, 3 * width)
        self.out = nn.Linear(width, width)
        self.drop = nn.Dropout(dropout)
        self.register_buffer("mask", torch.tril(torch.ones(most, most)).view(1, 1, most, most))

    def forward(self, x, padding=None):
        b, t, c = x.size()
        q, k, v = self.qkv(x).split(c, dim=2)
        q, k, v = (rearrange_heads(one, self.heads) for one in (q, k, v))
        att = (q @ k.transpose(-2, -1)) * (1.0 / math.sqrt(k.size(-1)))
        att = att.masked_fill(self.mask[:, :, :t, :t] == 0, float("-inf"))
        if padding is not None:
            att = att.masked_fill(padding[:, None, None, :], -1e9)
        att = self.drop(F.softmax(att, dim=-1))
        return self.out(merge_heads(att @ v))


@program
def attention_with_masks(wrap):
    torch.manual_seed(0)
    call = wrap(Attention())
    x = batches(2, 5, 8)
    return [call(one) for one in x] + [call(one, padding=torch.tensor([[False] * 4 + [True]] * 2)) for one in x]


class Block(nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.ln_1, self.ln_2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attn = Attention(width)
        self.mlp = nn.ModuleDict(
            dict(
                c_fc=nn.Linear(width, 4 * width),
                c_proj=nn.Linear(4 * width, width),
                act=nn.GELU(),
                dropout=nn.Dropout(0.1),
            )
        )
        m = self.mlp
        self.mlpf = lambda x: m.dropout(m.c_proj(m.act(m.c_fc(x))))

    def forward(self, x):
        x = x + self.attn(self.ln_1(x))
        x = x + self.mlpf(self.ln_2(x))
        return x


class MinGPT(nn.Module):
    def __init__(self, vocabulary=11, width=8, depth=2, block_size=16):
        super().__init__()
        self.block_size = block_size
        self.transformer = nn.ModuleDict(
            dict(
                wte=nn.Embedding(vocabulary, width),
                wpe=nn.Embedding(block_size, width),
                drop=nn.Dropout(0.1),
                h=nn.ModuleList([Block(width) for _ in range(depth)]),
                ln_f=nn.LayerNorm(width),
            )
        )
        self.lm_head = nn.Linear(width, vocabulary, bias=False)

    def forward(self, idx, targets=None):
        device = idx.device
        b, t = idx.size()
        assert t <= self.block_size, f"Cannot forward sequence of length {t}, block size is only {self.block_size}"
        pos = torch.arange(0, t, dtype=torch.long, device=device).unsqueeze(0)
        tok_emb = self.transformer.wte(idx)
        pos_emb = self.transformer.wpe(pos)
        x = self.transformer.drop(tok_emb + pos_emb)
        for block in self.transformer.h:
            x = block(x)
        x = self.transformer.ln_f(x)
        logits = self.lm_head(x)
        loss = None
        if targets is not None:
            loss = F.cross_entropy(logits.view(-1, logits.size(-1)), targets.view(-1), ignore_index=-1)
        return logits, loss


@program
def min_gpt(wrap):
    torch.manual_seed(0)
    model = MinGPT()
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-2, betas=(0.9, 0.95))

    def step(x, y):
        logits, loss = model(x, y)
        model.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        return loss.detach()

    call = wrap(step)
    torch.manual_seed(1)
    seen = []
    for _ in range(CALLS):
        tokens = torch.randint(11, (2, 6))
        seen.append(call(tokens[:, :-1].contiguous(), tokens[:, 1:].contiguous()))
    # the gradients of the keys' bias are rounding, of which Adam makes steps of full size
    return seen, [p.detach() for name, p in model.named_parameters() if "qkv.bias" not in name]


@program
def rotary_positions(wrap):
    class Rotary(nn.Module):
        def __init__(self, dim=4):
            super().__init__()
            inv = 1.0 / (10000 ** (torch.arange(0, dim, 2).float() / dim))
            self.register_buffer("inv_freq", inv, persistent=False)

        def forward(self, x):
            t = torch.arange(x.shape[-2], device=x.device).type_as(self.inv_freq)
            freqs = torch.outer(t, self.inv_freq)
            emb = torch.cat((freqs, freqs), dim=-1)
            cos, sin = emb.cos(), emb.sin()
            x1, x2 = x.chunk(2, dim=-1)
            return x * cos + torch.cat((-x2, x1), dim=-1) * sin

    return called(wrap, Rotary(), 2, 5, 4)


@program
def positional_cache(wrap):
    class Sinusoid(nn.Module):
        def __init__(self, d=8, most=32):
            super().__init__()
            position = torch.arange(most).unsqueeze(1)
            div_term = torch.exp(torch.arange(0, d, 2) * (-math.log(10000.0) / d))
            pe = torch.zeros(most, 1, d)
            pe[:, 0, 0::2] = torch.sin(position * div_term)
            pe[:, 0, 1::2] = torch.cos(position * div_term)
            self.register_buffer("pe", pe)

        def forward(self, x):
            return x + self.pe[: x.size(0)]

    return called(wrap, Sinusoid(), 5, 2, 8)


@program(eager="it writes the attribute cache of function, a a_cache_that_is_filled.<l")
def a_cache_that_is_filled(wrap):
    class Cached(nn.Module):
        def __init__(self):
            super().__init__()
            self.cache = None

        def forward(self, x):
            if self.cache is None or self.cache.size(0) < x.size(0):
                self.cache = torch.arange(float(x.size(0)))
            return x + self.cache[: x.size(0)]

    return called(wrap, Cached(), 5)


@program(eager="a result is computed of another one")  # compiled in parts
def a_cache_in_and_out(wrap):
    torch.manual_seed(0)
    lin = nn.Linear(4, 4)

    def f(x, past=None):
        k = lin(x)
        if past is not None:
            k = torch.cat([past, k], dim=1)
        return k.softmax(-1), k

    call = wrap(f)
    past, seen = None, []
    for x in batches(2, 1, 4):
        out, past = call(x, past)
        seen.append(out)
    return seen


@program
def transformer_encoder(wrap):
    torch.manual_seed(0)
    layer = nn.TransformerEncoderLayer(8, 2, 16, dropout=0.0, batch_first=True)
    return trained(wrap, nn.TransformerEncoder(layer, 2, enable_nested_tensor=False), 2, 5, 8)


@program
def scaled_dot_product(wrap):
    def f(x):
        q = x.view(2, 3, 2, 4).transpose(1, 2)
        return F.scaled_dot_product_attention(q, q, q, is_causal=True).transpose(1, 2).reshape(2, 3, 8)

    return called(wrap, f, 2, 3, 8)


@program
def einsum_and_unpacked_shapes(wrap):
    def f(x):
        b, *rest = x.shape
        n = math.prod(rest)
        y = x.reshape(b, n)
        return torch.einsum("bi,bj->bij", y, y).flatten(1), y.new_zeros(b, 2)

    return called(wrap, f, 2, 3, 2)


@program
def vision_patches(wrap):
    class Patches(nn.Module):
        def __init__(self, patch=2, width=8):
            super().__init__()
            self.proj = nn.Conv2d(3, width, kernel_size=patch, stride=patch)
            self.cls_token = nn.Parameter(torch.zeros(1, 1, width))
            self.pos = nn.Parameter(torch.randn(1, 5, width) * 0.02)

        def forward(self, x):
            x = self.proj(x).flatten(2).transpose(1, 2)
            cls = self.cls_token.expand(x.shape[0], -1, -1)
            return torch.cat((cls, x), dim=1) + self.pos

    torch.manual_seed(0)
    return trained(wrap, Patches(), 2, 3, 4, 4)


@program
def residual_network(wrap):
    class Basic(nn.Module):
        expansion = 1

        def __init__(self, cin, cout, stride=1):
            super().__init__()
            self.conv1 = nn.Conv2d(cin, cout, 3, stride, 1, bias=False)
            self.bn1 = nn.BatchNorm2d(cout)
            self.conv2 = nn.Conv2d(cout, cout, 3, 1, 1, bias=False)
            self.bn2 = nn.BatchNorm2d(cout)
            self.shortcut = nn.Sequential()
            if stride != 1 or cin != self.expansion * cout:
                self.shortcut = nn.Sequential(nn.Conv2d(cin, cout, 1, stride, bias=False), nn.BatchNorm2d(cout))

        def forward(self, x):
            out = F.relu(self.bn1(self.conv1(x)))
            out = self.bn2(self.conv2(out))
            out += self.shortcut(x)
            return F.relu(out)

    torch.manual_seed(0)
    model = nn.Sequential(Basic(3, 4), Basic(4, 6, 2), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(6, 3))
    return trained(wrap, model, 2, 3, 6, 6)


@program
def recurrent_cells_by_hand(wrap):
    class Cell(nn.Module):
        def __init__(self, n=4):
            super().__init__()
            self.wx, self.wh = nn.Linear(n, 3 * n), nn.Linear(n, 3 * n, bias=False)

        def forward(self, x, h):
            rx, zx, nx = self.wx(x).chunk(3, -1)
            rh, zh, nh = self.wh(h).chunk(3, -1)
            r, z = torch.sigmoid(rx + rh), torch.sigmoid(zx + zh)
            n = torch.tanh(nx + r * nh)
            return (1 - z) * n + z * h

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.cell = Cell()

        def forward(self, x, h=None):
            if h is None:
                h = torch.zeros(x.size(1), 4, device=x.device, dtype=x.dtype)
            outputs = []
            for t in range(x.size(0)):
                h = self.cell(x[t], h)
                outputs.append(h)
            return torch.stack(outputs, 0)

    torch.manual_seed(0)
    return trained(wrap, Net(), 5, 2, 4)


@program
def lstm_layer(wrap):
    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.rnn = nn.LSTM(4, 6, batch_first=True)
            self.head = nn.Linear(6, 2)

        def forward(self, x):
            out, (h, c) = self.rnn(x)
            return self.head(out[:, -1])

    torch.manual_seed(0)
    return trained(wrap, Net(), 2, 5, 4)


@program
def variational_autoencoder(wrap):
    class VAE(nn.Module):
        def __init__(self):
            super().__init__()
            self.enc, self.mu, self.logvar, self.dec = (
                nn.Linear(6, 8),
                nn.Linear(8, 2),
                nn.Linear(8, 2),
                nn.Linear(2, 6),
            )

        def reparameterize(self, mu, logvar):
            if not self.training:
                return mu
            std = torch.exp(0.5 * logvar)
            return mu + torch.randn_like(std) * std

        def forward(self, x):
            h = F.relu(self.enc(x.view(-1, 6)))
            mu, logvar = self.mu(h), self.logvar(h)
            return torch.sigmoid(self.dec(self.reparameterize(mu, logvar))), mu, logvar

    torch.manual_seed(0)
    model = VAE()
    optimizer = torch.optim.Adam(model.parameters(), lr=1e-2)

    def step(x):
        optimizer.zero_grad()
        out, mu, logvar = model(x)
        bce = F.binary_cross_entropy(out, torch.sigmoid(x), reduction="sum")
        kld = -0.5 * torch.sum(1 + logvar - mu.pow(2) - logvar.exp())
        loss = bce + kld
        loss.backward()
        optimizer.step()
        return loss

    call = wrap(step)
    return [call(x).detach() for x in batches(4, 6)], [p.detach() for p in model.parameters()]


@program
def mixture_of_experts(wrap):
    class MoE(nn.Module):
        def __init__(self, n=3):
            super().__init__()
            self.gate = nn.Linear(4, n)
            self.experts = nn.ModuleList([nn.Linear(4, 4) for _ in range(n)])

        def forward(self, x):
            w = F.softmax(self.gate(x), dim=-1)
            top, index = w.topk(2, dim=-1)
            outs = torch.stack([e(x) for e in self.experts], dim=1)
            picked = outs.gather(1, index.unsqueeze(-1).expand(-1, -1, outs.size(-1)))
            return (picked * top.unsqueeze(-1)).sum(1)

    torch.manual_seed(0)
    return trained(wrap, MoE(), 3, 4)


@program
def branch_on_a_value(wrap):
    def f(x):
        if x.sum() > 0:
            return x * 2
        if (x.abs() > 3).any():
            return x / 2
        return -x

    return called(wrap, f, 3)


@program(eager="the numbers of a tensor are read")
def loop_until_converged(wrap):
    def f(x):
        y = x.abs() + 1
        for _ in range(20):
            new = 0.5 * (y + (x.abs() + 1) / y)
            if torch.allclose(new, y):
                break
            y = new
        return y

    return called(wrap, f, 3)


# ---- training steps ----
@program
def two_groups_and_decay(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.LayerNorm(8), nn.Linear(8, 2))
    decay = [p for p in model.parameters() if p.dim() >= 2]
    rest = [p for p in model.parameters() if p.dim() < 2]

    def optimizer(_):
        return torch.optim.AdamW(
            [{"params": decay, "weight_decay": 0.1, "lr": 0.01}, {"params": rest, "weight_decay": 0.0}], lr=0.02
        )

    return trained(wrap, model, 3, 4, optimizer=optimizer)


@program
def clipped_gradients(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.Adam(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().sum()
        loss.backward()
        norm = nn.utils.clip_grad_norm_(model.parameters(), max_norm=0.5)
        optimizer.step()
        return loss.detach(), norm

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in model.parameters()]


@program
def clipped_values(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        nn.utils.clip_grad_value_(model.parameters(), 0.1)
        optimizer.step()

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in model.parameters()]


@program
def zeroed_in_place(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad(set_to_none=False)
        model(x).square().sum().backward()
        optimizer.step()

    call = wrap(step)
    seen = [(call(x), model.weight.grad.clone()) for x in batches(3, 4)]
    return seen, [p.detach() for p in model.parameters()]


@program
def accumulated_gradients(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(xs):
        optimizer.zero_grad()
        total = 0.0
        for x in xs:
            loss = model(x).square().mean() / len(xs)
            loss.backward()
            total = total + loss.detach()
        optimizer.step()
        return total

    call = wrap(step)
    return [call([x, x + 1, x * 2]) for x in batches(3, 4)], [p.detach() for p in model.parameters()]


@program
def accumulated_over_calls(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def micro(x):
        loss = model(x).square().mean() / 2
        loss.backward()
        return loss.detach()

    call = wrap(micro)
    seen = []
    for turn, x in enumerate(batches(3, 4, calls=6)):
        seen.append(call(x))
        if turn % 2:
            optimizer.step()
            optimizer.zero_grad()
    return seen, [p.detach() for p in model.parameters()]


@program
def moving_average_of_weights(wrap):
    torch.manual_seed(0)
    model, shadow = nn.Linear(4, 2), nn.Linear(4, 2)
    shadow.load_state_dict(model.state_dict())
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        with torch.no_grad():
            for old, new in zip(shadow.parameters(), model.parameters()):
                old.mul_(0.9).add_(new, alpha=0.1)

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for m in (model, shadow) for p in m.parameters()]


@program
def moving_average_by_lerp(wrap):
    torch.manual_seed(0)
    model, target = nn.Linear(4, 2), nn.Linear(4, 2)

    @torch.no_grad()
    def update(tau=0.05):
        for p, q in zip(model.parameters(), target.parameters()):
            q.data.lerp_(p.data, tau)

    call = wrap(update)
    return [(call(), [p.detach().clone() for p in target.parameters()]) for _ in range(CALLS)]


@program(eager="it calls ema.update_parameters")
def averaged_model(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    ema = torch.optim.swa_utils.AveragedModel(model, multi_avg_fn=torch.optim.swa_utils.get_ema_multi_avg_fn(0.9))
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)

    def step(x):
        optimizer.zero_grad()
        model(x).square().sum().backward()
        optimizer.step()
        ema.update_parameters(model)

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in ema.parameters()], ema.n_averaged.clone()


def scheduled(wrap, make, *, optimizer=torch.optim.SGD, calls=6):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    opt = optimizer(model.parameters(), lr=0.1)
    scheduler = make(opt)

    def step(x):
        opt.zero_grad()
        loss = model(x).square().mean()
        loss.backward()
        opt.step()
        scheduler.step()
        return loss.detach()

    call = wrap(step)
    seen = [(call(x), opt.param_groups[0]["lr"], scheduler.last_epoch) for x in batches(3, 4, calls=calls)]
    return seen, [p.detach() for p in model.parameters()]


@program
def step_schedule(wrap):
    return scheduled(wrap, lambda o: torch.optim.lr_scheduler.StepLR(o, 2, 0.5))


@program
def cosine_schedule(wrap):
    return scheduled(wrap, lambda o: torch.optim.lr_scheduler.CosineAnnealingLR(o, 5), optimizer=torch.optim.Adam)


@program
def one_cycle_schedule(wrap):
    return scheduled(
        wrap, lambda o: torch.optim.lr_scheduler.OneCycleLR(o, 0.2, total_steps=20), optimizer=torch.optim.AdamW
    )


@program
def lambda_schedule(wrap):
    return scheduled(wrap, lambda o: torch.optim.lr_scheduler.LambdaLR(o, lambda n: 1.0 / (1 + n)))


@program
def warmup_then_decay(wrap):
    def make(o):
        warm = torch.optim.lr_scheduler.LinearLR(o, 0.1, total_iters=2)
        decay = torch.optim.lr_scheduler.ExponentialLR(o, 0.9)
        return torch.optim.lr_scheduler.SequentialLR(o, [warm, decay], [2])

    return scheduled(wrap, make)


@program
def scaled_gradients(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05)
    scaler = torch.amp.GradScaler("cpu", init_scale=4.0, growth_interval=2)

    def step(x):
        optimizer.zero_grad()
        loss = model(x).square().mean()
        scaler.scale(loss).backward()
        scaler.unscale_(optimizer)
        nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        scaler.step(optimizer)
        scaler.update()
        return loss.detach()

    call = wrap(step)
    xs = batches(3, 4, calls=7)
    xs[3] = xs[3] * float("inf")
    return [(call(x), scaler.get_scale()) for x in xs], [p.detach() for p in model.parameters()]


@program
def two_steps_in_one(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)

    def step(x):
        for part in (x, x * 2):
            optimizer.zero_grad()
            model(part).square().mean().backward()
            optimizer.step()

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in model.parameters()]


@program
def two_optimizers(wrap):
    torch.manual_seed(0)
    g, d = nn.Linear(2, 4), nn.Linear(4, 1)
    og, od = torch.optim.Adam(g.parameters(), lr=0.01), torch.optim.Adam(d.parameters(), lr=0.02)

    def step(real):
        noise = torch.randn(real.size(0), 2)
        fake = g(noise)
        od.zero_grad()
        ld = F.softplus(-d(real)).mean() + F.softplus(d(fake.detach())).mean()
        ld.backward()
        od.step()
        og.zero_grad()
        lg = F.softplus(-d(fake)).mean()
        lg.backward()
        og.step()
        return ld.detach(), lg.detach()

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for m in (g, d) for p in m.parameters()]


@program
def a_class_that_trains(wrap):
    class Trainer:
        def __init__(self):
            self.model = nn.Linear(4, 2)
            self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05)
            self.weight = 0.5

        def loss(self, x):
            return self.model(x).square().mean() * self.weight

        def step(self, x):
            self.optimizer.zero_grad(set_to_none=True)
            loss = self.loss(x)
            loss.backward()
            self.optimizer.step()
            return loss.detach()

    torch.manual_seed(0)
    trainer = Trainer()
    call = wrap(trainer.step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in trainer.model.parameters()]


@program
def gradient_penalty(wrap):
    torch.manual_seed(0)
    critic = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    optimizer = torch.optim.Adam(critic.parameters(), lr=0.01)

    def step(real, fake):
        eps = torch.rand(real.size(0), 1)
        mixed = (eps * real + (1 - eps) * fake).requires_grad_(True)
        out = critic(mixed)
        (g,) = torch.autograd.grad(
            outputs=out, inputs=mixed, grad_outputs=torch.ones_like(out), create_graph=True, retain_graph=True
        )
        loss = critic(fake).mean() - critic(real).mean() + 10 * ((g.norm(2, dim=1) - 1) ** 2).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = wrap(step)
    return [call(x, x * 0.5) for x in batches(3, 4)], [p.detach() for p in critic.parameters()]


@program(eager="a tensor from outside gets another history")
def physics_informed(wrap):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(1, 8), nn.Tanh(), nn.Linear(8, 1))

    def residual(x):
        x = x.requires_grad_(True)
        u = net(x)
        du = torch.autograd.grad(u.sum(), x, create_graph=True)[0]
        ddu = torch.autograd.grad(du.sum(), x, create_graph=True)[0]
        return (ddu + u).square().mean()

    call = wrap(residual)
    seen = []
    for x in batches(5, 1):
        loss = call(x)
        seen.append((loss.detach(), torch.autograd.grad(loss, net[0].weight)))
    return seen


@program
def checkpointed(wrap):
    torch.manual_seed(0)
    layers = nn.ModuleList([nn.Linear(4, 4) for _ in range(2)])

    class Net(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = layers

        def forward(self, x):
            for layer in self.layers:
                x = torch.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).relu()
            return x

    return trained(wrap, Net(), 3, 4)


# ---- transforms ----
def energy(x):
    return (x.sin() * x.pow(2)).sum()


@program
def compiled_grad(wrap):
    return called(wrap, grad(energy), 4)


@program
def compiled_grad_and_value(wrap):
    return called(wrap, grad_and_value(energy), 4)


@program
def compiled_vmap(wrap):
    return called(wrap, vmap(lambda x: x.softmax(0).max(), in_dims=1), 4, 3)


@program
def compiled_vmap_of_grad(wrap):
    return called(wrap, vmap(grad(energy)), 3, 4)


@program
def compiled_hessian(wrap):
    return called(wrap, hessian(energy), 4)


@program
def compiled_jacobians(wrap):
    def f(x):
        return x.outer(x).sum(0).tanh()

    return [called(wrap, jac(f), 3) for jac in (jacrev, jacfwd)]


@program
def results_of_transforms_inside(wrap):
    def f(x):
        g = grad(energy)(x).sum()
        value, pull = vjp(lambda t: t.exp(), x)
        out, tangent = jvp(energy, (x,), (torch.ones_like(x),))
        h = hessian(energy)(x)
        return g + value.sum() + pull(value)[0].sum() + out.square() + tangent.abs() + h.diagonal().sum() + h.mT.mean()

    return called(wrap, f, 4)


@program
def grad_with_aux_inside(wrap):
    def f(x, w):
        def loss(w):
            out = x @ w
            return out.square().mean(), out.detach()

        g, aux = grad(loss, has_aux=True)(w)
        (gg, value) = grad_and_value(lambda w: loss(w)[0])(w)
        return g.norm() + gg.max(), aux.sum(), value.sqrt()

    call = wrap(f)
    return [call(x, x.T) for x in batches(3, 4)]


@program
def functional_modules(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    params = {k: v.detach() for k, v in model.named_parameters()}

    def f(params, x):
        return functional_call(model, params, x).square().mean().sqrt()

    call = wrap(f)
    return [call(params, x) for x in batches(3, 4)]


@program
def per_sample_gradients(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)
    params = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, x, y):
        out = functional_call(model, (params, {}), (x.unsqueeze(0),))
        return F.cross_entropy(out, y.unsqueeze(0))

    per_sample = vmap(grad(loss), in_dims=(None, 0, 0))

    def norms(params, x, y):
        grads = per_sample(params, x, y)
        return sum(g.flatten(1).square().sum(1) for g in grads.values()).sqrt()

    call, also = wrap(norms), wrap(per_sample)
    y = torch.tensor([0, 1, 1])
    return [(call(params, x, y), also(params, x, y)) for x in batches(3, 4)]


@program
def ensembles(wrap):
    torch.manual_seed(0)
    models = [nn.Linear(4, 2) for _ in range(3)]
    params, buffers = torch.func.stack_module_state(models)
    base = models[0]

    def one(p, b, x):
        return functional_call(base, (p, b), (x,))

    def f(x):
        return vmap(one, in_dims=(0, 0, None))(params, buffers, x).mean(0)

    return [out.detach() for out in called(wrap, f, 3, 4)]


@program
def inner_loop_of_meta_learning(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(2, 6), nn.Tanh(), nn.Linear(6, 1))
    meta = {k: v.detach() for k, v in model.named_parameters()}

    def loss(params, x, y):
        return (functional_call(model, params, (x,)) - y).square().mean()

    def adapted(params, x, y):
        for _ in range(2):
            grads = grad(loss)(params, x, y)
            params = {k: p - 0.1 * grads[k] for k, p in params.items()}
        return loss(params, x, y)

    call = wrap(grad(adapted))
    return [call(meta, x, x.sum(1, keepdim=True)) for x in batches(5, 2)]


@program
def hessian_vector_product(wrap):
    def hvp(x, v):
        return jvp(grad(energy), (x,), (v,))[1]

    call = wrap(hvp)
    return [call(x, x + 1) for x in batches(4)]


@program
def newton_step(wrap):
    def f(x):
        g, h = grad(energy)(x), hessian(energy)(x)
        return x - torch.linalg.solve(h + 5 * torch.eye(x.numel()), g)

    return called(wrap, f, 3)


@program
def grad_of_a_compiled_function(wrap):
    call = wrap(energy)
    return [grad(call)(x) for x in batches(4)]


@program
def vmap_of_a_compiled_function(wrap):
    call = wrap(lambda x: x.sin().sum())
    return [vmap(call)(x) for x in batches(3, 4)]


@program
def vmap_of_grad_of_a_compiled_function(wrap):
    call = wrap(energy)
    return [vmap(grad(call))(x) for x in batches(3, 4)]


@program
def jvp_of_a_compiled_function(wrap):
    call = wrap(energy)
    return [jvp(call, (x,), (x + 1,)) for x in batches(4)]


@program
def hessian_of_a_compiled_function(wrap):
    call = wrap(energy)
    return [hessian(call)(x) for x in batches(4)]


@program
def backward_twice(wrap):
    torch.manual_seed(0)
    net = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 1))
    call = wrap(net)
    seen = []
    for x in batches(3, 4):
        x.requires_grad_()
        (g,) = torch.autograd.grad(call(x).sum(), x, create_graph=True)
        seen.append((g.detach(), torch.autograd.grad(g.square().sum(), [x, net[0].weight])))
    return seen


# ---- compiled inside compiled, generators, numbers, modes ----
@program
def compiled_inside_compiled(wrap):
    inner = wrap(lambda x: x.tanh() * 2)

    def f(x):
        return inner(x).sum() + inner(x + 1).mean()

    return called(wrap, f, 4)


@program
def a_compiled_layer_inside_a_step(wrap):
    torch.manual_seed(0)
    inner = nn.Sequential(nn.Linear(4, 4), nn.Tanh())
    return trained(wrap, nn.Sequential(wrap(inner), nn.Linear(4, 1)), 3, 4)


@program
def own_generator(wrap):
    generator = torch.Generator().manual_seed(3)

    def f(x):
        return x + torch.randn(x.shape, generator=generator) + torch.rand(3, generator=generator)

    return called(wrap, f, 3)


@program
def generator_as_argument(wrap):
    def f(x, generator):
        keep = torch.empty_like(x).bernoulli_(0.5, generator=generator)
        return x * keep

    call, generator = wrap(f), torch.Generator().manual_seed(3)
    return [call(x, generator) for x in batches(6)]


@program
def changing_numbers(wrap):
    def f(x, scale, power):
        return (x * scale).abs() ** power

    call = wrap(f)
    return [call(x, 0.1 * k + 0.05, k) for k, x in enumerate(batches(4, calls=8))]


@program
def a_number_as_attribute(wrap):
    class Annealed(nn.Module):
        def __init__(self):
            super().__init__()
            self.temperature = 1.0

        def forward(self, x):
            return F.softmax(x / self.temperature, dim=-1)

    model = Annealed()
    call = wrap(model)
    seen = []
    for k, x in enumerate(batches(4, calls=8)):
        model.temperature = max(0.1, 1.0 - 0.1 * k)
        seen.append(call(x))
    return seen


@program
def autocast_inside(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 4)

    def f(x):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return model(x).sum()

    return called(wrap, f, 3, 4)


@program
def autocast_around(wrap):
    torch.manual_seed(0)
    call = wrap(nn.Sequential(nn.Linear(4, 4), nn.ReLU(), nn.Linear(4, 2)))
    seen = []
    for x in batches(3, 4):
        with torch.autocast("cpu", dtype=torch.bfloat16):
            seen.append(call(x))
    return seen


@program
def inference_mode_around(wrap):
    torch.manual_seed(0)
    call = wrap(nn.Sequential(nn.Linear(4, 4), nn.ReLU()))
    seen = []
    for x in batches(3, 4):
        with torch.inference_mode():
            out = call(x)
            seen.append((out.is_inference(), out.requires_grad, out + 0))
    return [(a, b, c.clone()) for a, b, c in seen]


@program
def no_grad_decorator(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)

    @torch.no_grad()
    def predict(x):
        return model(x).argmax(-1)

    return called(wrap, predict, 3, 4)


@program
def inference_mode_inside(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)

    def predict(x):
        with torch.inference_mode():
            return model(x).softmax(-1)

    call = wrap(predict)
    return [call(x).is_inference() for x in batches(3, 4)]


@program
def set_grad_enabled(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)

    def f(x, train):
        with torch.set_grad_enabled(train):
            return model(x).sum()

    call = wrap(f)
    return [call(x, train).requires_grad for x in batches(3, 4) for train in (True, False)]


@program(eager="it makes a no_grad at every call")
def nullcontext_or_no_grad(wrap):
    torch.manual_seed(0)
    model = nn.Linear(4, 2)

    def f(x, frozen):
        with torch.no_grad() if frozen else contextlib.nullcontext():
            h = model(x)
        return h.sum()

    call = wrap(f)
    return [call(x, frozen).requires_grad for x in batches(3, 4) for frozen in (True, False)]


@program(eager="it catches exceptions, and what raises decides what happens")
def try_and_except(wrap):
    def f(x):
        try:
            return x.view(2, 2).sum(0)
        except RuntimeError:
            return x

    return called(wrap, f, 4)


@program(eager="it calls retrograd.cuda.is_available, whose effects are not recorded")
def device_and_dtype(wrap):
    def f(x):
        device = x.device if torch.cuda.is_available() else "cpu"
        y = torch.zeros(3, device=device, dtype=x.dtype)
        eye = torch.eye(3, device=x.device).to(x)
        return (x.to(device) + y) @ eye, torch.finfo(x.dtype).eps

    return called(wrap, f, 3)


@program(eager="it calls retrograd.nn.init.normal_, whose effects are not recorded")
def weights_initialised_inside(wrap):
    def f(x):
        w = torch.empty(3, 4)
        nn.init.normal_(w, std=0.1)
        return w @ x

    torch.manual_seed(0)
    return called(wrap, f, 4)


@program
def functional_loss_classes(wrap):
    ce, mse, kl = (
        nn.CrossEntropyLoss(label_smoothing=0.1),
        nn.MSELoss(reduction="sum"),
        nn.KLDivLoss(reduction="batchmean"),
    )

    def f(x):
        target = torch.arange(3)
        return ce(x, target) + mse(x, x.detach() * 2) + kl(x.log_softmax(-1), x.softmax(-1))

    return called(wrap, f, 3, 4)


@program
def distillation(wrap):
    torch.manual_seed(0)
    teacher, student = nn.Linear(4, 3).eval().requires_grad_(False), nn.Linear(4, 3)
    optimizer = torch.optim.SGD(student.parameters(), lr=0.1)
    temperature = 2.0

    def step(x):
        with torch.no_grad():
            soft = F.softmax(teacher(x) / temperature, dim=-1)
        loss = F.kl_div(F.log_softmax(student(x) / temperature, dim=-1), soft, reduction="batchmean") * temperature**2
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = wrap(step)
    return [call(x) for x in batches(3, 4)], [p.detach() for p in student.parameters()]


@program
def contrastive_loss(wrap):
    def f(a, b, temperature=0.1):
        a, b = F.normalize(a, dim=-1), F.normalize(b, dim=-1)
        logits = a @ b.t() / temperature
        labels = torch.arange(logits.shape[0], device=a.device)
        loss = (F.cross_entropy(logits, labels) + F.cross_entropy(logits.t(), labels)) / 2
        return loss, (logits.argmax(1) == labels).float().mean()

    call = wrap(f)
    return [call(x, x + 0.1) for x in batches(3, 4)]


@program
def policy_gradient(wrap):
    torch.manual_seed(0)
    policy = nn.Sequential(nn.Linear(4, 8), nn.Tanh(), nn.Linear(8, 2))
    optimizer = torch.optim.Adam(policy.parameters(), lr=0.01)

    def update(states, actions, returns):
        logp = F.log_softmax(policy(states), -1).gather(1, actions[:, None]).squeeze(1)
        advantages = (returns - returns.mean()) / (returns.std() + 1e-8)
        loss = -(logp * advantages).mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        return loss.detach()

    call = wrap(update)
    torch.manual_seed(1)
    return [call(torch.randn(5, 4), torch.randint(2, (5,)), torch.randn(5)) for _ in range(CALLS)]


@program(eager="it makes a Normal at every call")
def distributions_inside(wrap):
    def f(x):
        normal = torch.distributions.Normal(x, torch.ones_like(x))
        return normal.log_prob(x * 2).sum() + normal.entropy().mean()

    return called(wrap, f, 3)


@program(eager="an argument of type Batch")
def dataclass_of_tensors_in(wrap):
    @dataclasses.dataclass
    class Batch:
        x: Any
        y: Any

    def f(batch):
        return (batch.x - batch.y).square().mean()

    call = wrap(f)
    return [call(Batch(x, x * 2)) for x in batches(3)]


@program
def deep_inheritance(wrap):
    class Base(nn.Module):
        scale = 1.0

        def forward(self, x):
            return self.post(self.core(self.pre(x)))

        def pre(self, x):
            return x

        def post(self, x):
            return x * self.scale

        def core(self, x):
            raise NotImplementedError

    class Middle(Base):
        def __init__(self):
            super().__init__()
            self.lin = nn.Linear(4, 4)

        def core(self, x):
            return self.lin(x)

    class Last(Middle):
        scale = 2.0

        def pre(self, x):
            return super().pre(x).relu()

    torch.manual_seed(0)
    return called(wrap, Last(), 3, 4)


@program
def subclassed_layers(wrap):
    class Scaled(nn.Linear):
        def __init__(self, *args, gain=2.0, **kwargs):
            super().__init__(*args, **kwargs)
            self.gain = gain

        def forward(self, x):
            return super().forward(x) * self.gain

    class Normalised(nn.Linear):
        def forward(self, x):
            return F.linear(x, self.weight / self.weight.norm(dim=1, keepdim=True), self.bias)

    torch.manual_seed(0)
    return trained(wrap, nn.Sequential(Scaled(4, 4), nn.ReLU(), Normalised(4, 2)), 3, 4)


@program
def low_rank_adapters(wrap):
    class LoRA(nn.Module):
        def __init__(self, base, r=2, alpha=4):
            super().__init__()
            self.base = base
            for p in self.base.parameters():
                p.requires_grad = False
            self.a = nn.Parameter(torch.randn(r, base.in_features) * 0.1)
            self.b = nn.Parameter(torch.zeros(base.out_features, r))
            self.scaling = alpha / r

        def forward(self, x):
            return self.base(x) + (x @ self.a.T @ self.b.T) * self.scaling

    torch.manual_seed(0)
    model = LoRA(nn.Linear(4, 3))
    return trained(
        wrap, model, 3, 4, optimizer=lambda ps: torch.optim.AdamW([p for p in ps if p.requires_grad], lr=0.01)
    )


@program
def weight_norm_and_parametrizations(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.parametrizations.weight_norm(nn.Linear(4, 4)), nn.Tanh())
    return trained(wrap, model, 3, 4)


@program
def spectral_norm_inside(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.utils.parametrizations.spectral_norm(nn.Linear(4, 4)), nn.Tanh())
    return trained(wrap, model, 3, 4)


@program
def extra_state_and_hyperparameters(wrap):
    class Net(nn.Module):
        def __init__(self, **hparams):
            super().__init__()
            self.hparams = hparams
            self.lin = nn.Linear(hparams["n_in"], hparams.get("n_out", 2))

        def forward(self, x):
            y = self.lin(x)
            if self.hparams.get("activation") == "relu":
                y = y.relu()
            return y ** self.hparams["power"]

    torch.manual_seed(0)
    return called(wrap, Net(n_in=4, activation="relu", power=2), 3, 4)


@program
def string_dispatch(wrap):
    class Pool(nn.Module):
        def __init__(self, mode):
            super().__init__()
            self.mode = mode

        def forward(self, x):
            return getattr(self, f"pool_{self.mode}")(x)

        def pool_mean(self, x):
            return x.mean(1)

        def pool_max(self, x):
            return x.max(1).values

    return [called(wrap, Pool(mode), 3, 4) for mode in ("mean", "max")]


@program
def getattr_of_the_library(wrap):
    def f(x, name="relu"):
        act = getattr(F, name)
        return act(x) + getattr(torch, NAMED)(x)

    call = wrap(f)
    return [call(x, name) for x in batches(3) for name in ("relu", "silu")]


@program(eager="it has a match statement")
def match_statement(wrap):
    def f(x, mode):
        match mode:
            case "double":
                return x * 2
            case "half" | "halve":
                return x / 2
            case _:
                return x

    call = wrap(f)
    return [call(x, mode) for x in batches(3) for mode in ("double", "half", "other")]


@program
def global_tables(wrap):
    def f(x):
        w = TABLE["w"]
        for name in NAMES:
            x = x * w[name]
        return x.sum(dim=DIM)

    return called(wrap, f, 3, 2)


TABLE = {"w": {"a": 2.0, "b": 0.5}}
NAMES = ["a", "b"]
DIM = 1
NAMED = "sin"


@program
def helper_decorators(wrap):
    def logged(function):
        @functools.wraps(function)
        def call(*args, **kwargs):
            return function(*args, **kwargs) * 2

        return call

    @logged
    def f(x, scale=1.0):
        return x.tanh() * scale

    return called(wrap, f, 3)


@program
def type_checks_by_typing(wrap):
    def f(x: Any, mask: Any | None = None, *, dims: tuple[int, ...] = (0,)) -> Any:
        total: Any = x.sum(dim=dims)
        if mask is not None:
            total = total * mask
        return total

    call = wrap(f)
    return [call(x, x[0] > 0) for x in batches(3, 2)]


@program(eager="generators_as_functions.<locals>.chunks is a generator or a coroutine")
def generators_as_functions(wrap):
    def chunks(x, n):
        for k in range(0, x.shape[0], n):
            yield x[k : k + n]

    def f(x):
        return torch.stack([c.sum() for c in chunks(x, 2)])

    return called(wrap, f, 6)


@program
def walrus_and_ternaries(wrap):
    def f(x, y=None):
        if (n := x.size(0)) > 2:
            x = x[: n - 1]
        z = y if y is not None else x
        return x.sum() + (z * n).sum()

    return called(wrap, f, 4)


@program
def counting_parameters(wrap):
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 4), nn.Linear(4, 2))

    def f(x):
        penalty = sum(p.pow(2.0).sum() for p in model.parameters())
        l1 = torch.stack([p.abs().sum() for name, p in model.named_parameters() if "weight" in name]).sum()
        count = sum(p.numel() for p in model.parameters() if p.requires_grad)
        return model(x).mean() + 1e-3 * penalty / count + l1

    return called(wrap, f, 3, 4)
