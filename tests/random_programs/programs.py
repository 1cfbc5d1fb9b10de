"""A program as text: leaves, constants, the steps of a function `f`, and a reading of it."""

from __future__ import annotations

import re
from dataclasses import dataclass, field, replace

NAME = re.compile(r"\b[xct]\d+\b")
DRAWING = re.compile(
    r"rand|dropout|bernoulli|normal|multinomial|poisson|rrelu|cauchy|exponential|geometric|uniform|gumbel|fractional|attention"
)

HELPERS = """
def tup(values):
    return tuple(values) if isinstance(values, (tuple, list)) else (values,)


def weights(value):
    return torch.linspace(0.5, 1.5, value.numel(), dtype=torch.float64).reshape(value.shape).to(value.dtype)


def total(values):
    out = 0.0
    for one in tup(values):
        if one is not None:
            part = (one * weights(one)).sum()
            out = out + (part.real if part.is_complex() else part)
    return out


def loss(*xs):
    return total(f(*xs))


class Scaled(torch.autograd.Function):
    generate_vmap_rule = True

    @staticmethod
    def forward(x, factor):
        return x * factor

    @staticmethod
    def setup_context(ctx, inputs, output):
        ctx.factor = inputs[1]

    @staticmethod
    def backward(ctx, g):
        return g * ctx.factor, None

    @staticmethod
    def jvp(ctx, t, _):
        return t * ctx.factor


class Cubed(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.save_for_backward(x)
        return x * x * x

    @staticmethod
    def backward(ctx, g):
        (x,) = ctx.saved_tensors
        return g * 3 * x * x


class Doubled(torch.autograd.Function):
    @staticmethod
    def forward(ctx, x):
        ctx.mark_dirty(x)
        return x.mul_(2)

    @staticmethod
    def backward(ctx, g):
        return g * 2
"""


@dataclass(frozen=True)
class Leaf:
    """An input of `f`: its name, its values as text, its dtype, how its memory lies, and whether it requires grad."""

    name: str
    values: str
    dtype: str
    layout: str = ""  # what is called on the tensor of the values
    requires_grad: bool = True

    def line(self, scale: str = "") -> str:
        """Return the line that makes the leaf; `scale` is what its values are multiplied with."""
        grad = ".requires_grad_()" if self.requires_grad else ""
        made = f"torch.tensor({self.values}, dtype=torch.{self.dtype})"
        scaled = f"({made} * {scale})" if scale else made
        return f"{self.name} = {scaled}{self.layout}{grad}"


@dataclass(frozen=True)
class Step:
    """One line of `f`. `operation` is the public name it calls, or a word for what it does."""

    operation: str
    text: str

    @property
    def defines(self) -> str | None:
        found = re.match(r"(?:with torch\.no_grad\(\): )?([xct]\d+) = ", self.text)
        return found[1] if found else None

    @property
    def uses(self) -> set[str]:
        return set(NAME.findall(self.text)) - {self.defines}


@dataclass(frozen=True)
class Program:
    """A program of (seed, number)."""

    leaves: tuple[Leaf, ...]
    constants: tuple[str, ...]
    steps: tuple[Step, ...]
    outputs: tuple[str, ...]
    reading: str  # its name in readings.READINGS
    seed: int = 0
    number: int = 0
    operations: frozenset[str] = field(default=frozenset(), compare=False)

    def function(self) -> str:
        """Return the text of `f`."""
        body = [f"    {step.text}" for step in self.steps] or ["    pass"]
        given = ", ".join(leaf.name for leaf in self.leaves)
        return "\n".join([f"def f({given}):", *body, f"    return {', '.join(self.outputs)}"])

    def text(self, reading: str, scale: str = "") -> str:
        """Return the whole program; it leaves what it found in `r`."""
        names = ", ".join(leaf.name for leaf in self.leaves)
        drawn = ["torch.manual_seed(0)"] if any(DRAWING.search(step.text) for step in self.steps) else []
        return "\n".join(
            [
                *drawn,
                *(leaf.line(scale) for leaf in self.leaves),
                *self.constants,
                self.function(),
                f"xs = ({names},)",
                reading,
            ]
        )

    def pruned(self) -> Program:
        """Drop steps and constants whose values nobody uses, and that write nowhere."""
        needed = set(self.outputs)
        kept = []
        for step in reversed(self.steps):
            if step.defines is None or step.defines in needed or writes(step):
                kept.append(step)
                needed |= step.uses
        constants = tuple(line for line in self.constants if line.split(" = ")[0] in needed)
        return replace(self, steps=tuple(reversed(kept)), constants=constants)


def writes(step: Step) -> bool:
    """Tell whether a step that makes a value also changes another."""
    return bool(re.search(r"_\(|Doubled|\] =|\] \*=|hook", step.text.partition(" = ")[2]))
