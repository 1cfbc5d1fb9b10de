"""Random functions that print, count, branch, catch and write, as source: what a compiled function must do as eager does."""

from __future__ import annotations

import random

HEAD = """
import retrograd as torch

COUNT = 0
SCALE = 1.5


def pure(x, y):
    return torch.tanh(x) * y + 0.1


def telling(x):
    print("telling", round(x.sum().item(), 3))
    return torch.sin(x * SCALE) + x


class Layer(torch.nn.Module):
    def __init__(self, tells):
        super().__init__()
        self.weight = torch.nn.Parameter(torch.linspace(-0.5, 0.5, 9).reshape(3, 3))
        self.tells = tells
        self.calls = 0

    def forward(self, x):
        if self.tells:
            self.calls += 1
            print("layer", self.calls)
        y = x @ self.weight
        return torch.tanh(y) + 0.5 * x


quiet, loud = Layer(False), Layer(True)


def make():
    seen = 0

"""


class Writer:
    """Writes one function, statement by statement."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self.tensors, self.numbers = ["a", "b", "c", "d", "e"], ["m", "n", "k"]
        self.loops = 0
        self.left = self.random.randint(6, 22)

    def pick(self, *several):
        return self.random.choice(several)

    def tensor(self):
        return self.random.choice(self.tensors)

    def number(self):
        return self.random.choice(self.numbers)

    def value(self):
        """Return an expression of tensors."""
        x, y = self.tensor(), self.tensor()
        return self.pick(
            f"{x} * {y}", f"{x} + {y} * 0.5", f"torch.tanh({x}) - {y}", f"pure({x}, {y})", f"quiet({x})", f"{x}.exp().clamp(max=2.0)",
            f"torch.where({x} > 0, {x}, {y})", f"{x}.t().contiguous()", f"telling({x})", f"loud({x})", f"{x} / ({y}.abs() + 1)",
            f"{x} * {self.number()}", f"{x} @ {y} * 0.3", f"[pure(v, {y}) for v in ({x}, {y})][1]",
        )  # fmt: skip

    def amount(self):
        """Return an expression of numbers."""
        n = self.number()
        return self.pick(
            f"{self.value()}.sum().item()", f"{n} + 1", f"{n} * 0.5", "len(log)", f"float({self.tensor()}.mean())", f"{n} - 2",
            f"{self.tensor()}.abs().max().item() + {n}",
        )  # fmt: skip

    def block(self, depth: int) -> list[str]:
        found: list[str] = []
        for _ in range(self.random.randint(1, 4)):
            if self.left <= 0:
                break
            found += self.statement(depth)
        return found or ["pass"]

    def statement(self, depth: int) -> list[str]:
        self.left -= 1
        simple = [
            lambda: [f"{self.tensor()} = {self.value()}"],
            lambda: [f"{self.tensor()} = {self.value()}"],
            lambda: [f"{self.tensor()} = {self.value()}"],
            lambda: [f"{self.tensor()} = {self.value()}"],
            lambda: [f"{self.number()} = {self.amount()}"],
            lambda: [f"{self.number()} += {self.amount()}"],
            lambda: [f"print(round({self.amount()}, 3), 'at', round({self.number()}, 3))"],
            lambda: [f'print(f"{{{self.tensor()}.sum().item():.3f}} {{{self.number()}:.2f}}")'],
            lambda: [f"log.append({self.pick(self.number(), self.tensor())})"],
            lambda: [f"{self.tensor()}, {self.tensor()} = {self.value()}, {self.value()}"],
            lambda: [f"{self.tensor()} = {self.tensor()} + 0; {self.tensor()} = {self.tensor()}.clone().mul_(0.5)"],
            lambda: [f"COUNT += {self.random.randint(1, 3)}"],
            lambda: ["seen += 1"],
            lambda: [f"(quiet({self.tensor()}) ** 2).mean().backward()"],
            lambda: [f"assert {self.tensor()}.shape == (3, 3)"],
            lambda: [f"{self.tensor()} = (lambda v: v * {self.tensor()})({self.tensor()})"],
            lambda: [f"del {self.pick('d', 'e', 'k')}"],
            lambda: [f"def inner(v): return v * {self.tensor()}", f"{self.tensor()} = inner({self.tensor()})"],
            lambda: [f"{self.tensor()} = torch.stack([{self.tensor()}, {self.tensor()}]).sum(0)"],
        ]
        compound = [self.branch, self.loop, self.repeat, self.caught, self.without, self.leave]
        if depth < 3 and self.random.random() < 0.3:
            return self.random.choice(compound)(depth + 1)
        return self.random.choice(simple)()

    def branch(self, depth):
        test = self.pick(
            f"{self.number()} > {self.random.randint(-2, 3)}", f"{self.tensor()}.sum() > 0", "len(log) % 2"
        )
        found = [f"if {test}:", *indented(self.block(depth))]
        return [*found, "else:", *indented(self.block(depth))] if self.random.random() < 0.5 else found

    def loop(self, depth):
        over = self.pick(f"range({self.random.randint(1, 3)})", "(a, b)", "enumerate([a, c])")
        target = {"r": "i", "(": self.tensor(), "e": f"i, {self.tensor()}"}[over[0]]
        body = self.block(depth)
        if self.random.random() < 0.4:
            body += [
                f"if {self.number()} > {self.random.randint(0, 4)}:",
                f"    {self.pick('break', 'continue')}",
                *self.block(depth),
            ]
        found = [f"for {target} in {over}:", *indented(body)]
        return [*found, "else:", *indented(self.block(depth))] if self.random.random() < 0.2 else found

    def repeat(self, depth):
        self.loops += 1
        name = f"turn{self.loops}"
        return [f"{name} = 0", f"while {name} < 2:", f"    {name} += 1", *indented(self.block(depth))]

    def caught(self, depth):
        raising = [f"if {self.number()} > {self.random.randint(-3, 3)}:", f"    raise ValueError({self.number()})"]
        body = [*self.block(depth), *raising, *self.block(depth)]
        found = ["try:", *indented(body), "except ValueError as error:", "    print('caught', type(error).__name__)"]
        found += indented(self.block(depth))
        return [*found, "finally:", *indented(self.block(depth))] if self.random.random() < 0.4 else found

    def without(self, depth):
        return ["with torch.no_grad():", *indented(self.block(depth))]

    def leave(self, depth):
        return [f"if {self.number()} > {self.random.randint(2, 6)}:", f"    return {self.tensor()}, {self.number()}"]


def indented(lines):
    return [f"    {line}" for line in lines]


def source(seed: int) -> str:
    """Return the source of a file with a function `program(a, b, c, m, n, log)` and what it uses."""
    writer = Writer(seed)
    body: list[str] = []
    while writer.left > 0:
        body += writer.statement(0)
    start = ["global COUNT", "nonlocal seen", *(["d, e, k = a * 2, b + 1, 0"] if seed % 3 else [])]
    end = f"return {writer.tensor()}, {writer.number()}, {writer.value()}, log"
    lines = ["def program(a, b, c, m, n, log):", *indented([*start, *body, end])]
    after = ["def state():", "    return seen", "return program, state"]
    return HEAD + "\n".join(indented([*lines, *after])) + "\n"
