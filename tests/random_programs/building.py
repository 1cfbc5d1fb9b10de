"""Make a program of (seed, number): each step is tried on torch, and kept if torch takes it."""

from __future__ import annotations

import math
import random
import warnings

import torch

from tests.random_programs import operations
from tests.random_programs.programs import Leaf, Program, Step
from tests.random_programs.readings import READINGS
from tests.random_programs.running import scope_of

SHAPES = ((3,), (3,), (2, 3), (2, 3), (2, 3), (), (2, 1), (1, 3), (3, 3), (2, 2, 3), (0, 3), (4,), (1, 2, 4, 4))
DTYPES = ("float64",) * 9 + ("float32", "complex128", "bfloat16")
LAYOUTS = ("",) * 5 + (".t()", "[::2]", ".flip(0)")
LARGEST = 1e6  # beyond, rounding decides
MOST = 300  # numbers in a value

INDICES = (
    "[0]", "[-1]", "[1:]", "[..., 0]", "[None]", "[:, 1]", "[::2]", "[[0, 1]]", "[..., [1, 0]]", "[:, None]",
    "[torch.tensor([1, 0])]", "[torch.tensor(1)]", "[{v} > 0]", "[...]", "[..., 1:]", "[0, ..., 1]", "[[1], 0]",
)  # fmt: skip
CASTS = ("float64", "float64", "float32", "complex128", "bfloat16", "complex64", "float16", "int64")
VIEWS = (
    "{v}.reshape(-1)", "{v}.view(-1)", "{v}.mT", "{v}.unsqueeze(0)", "{v}.transpose(0, -1)", "{v}.flatten()", "{v}.squeeze()",
    "{v}.expand(2, *{v}.shape)", "{v}.diagonal()", "{v}.chunk(2)[1]", "{v}.unbind(0)[0]", "{v}.view_as({v})", "{v}.movedim(0, -1)",
    "{v}.narrow(0, 0, 1)", "torch.view_as_real({v} + 0j)", "{v}.real", "{v}.unfold(0, 2, 1)", "{v}.contiguous()", "{v}.clone()",
)  # fmt: skip
WRITES = (
    "{v}.mul_(2)", "{v}.add_({w})", "{v}.copy_({w})", "{v}.zero_()", "{v}.fill_(0.5)", "{v} += 1", "{v} *= {w}", "{v}.sin_()",
    "{v}.exp_()", "{v}[0] = {w}", "{v}[...] = {w}", "{v}[{v} > 0.5] = 0.25", "{v}[1:] *= 2", "{v}[..., 0] = 1.5", "{v}[[0, 1]] = {w}",
    "{v}[..., -1] += {w}", "{v}.clamp_(-1, 1)", "{v}.sub_({w}, alpha=2)", "{v}.masked_fill_({v} > 0, 0.5)",
    "{v}.index_fill_(0, torch.tensor([0]), 0.3)", "{v}.view(-1)[0] = 0.7", "{v}.t_()", "{v}.squeeze_()", "{v}.unsqueeze_(0)",
)  # fmt: skip


class Builder:
    """The program so far, and torch's values of it."""

    def __init__(self, seed: int, number: int) -> None:
        self.seed, self.number = seed, number
        self.random = random.Random(f"{seed}:{number}")
        names = list(READINGS)
        self.reading = self.random.choices(names, [READINGS[name].weight for name in names])[0]
        self.leaves: list[Leaf] = []
        self.constants: list[str] = []
        self.steps: list[Step] = []
        self.scope = dict(scope_of(torch)[0])
        self.values: list[str] = []  # names of tensors that steps may use
        self.operations: set[str] = set()

    # ---- parts ----
    def new_leaf(self, values: str, dtype: str, layout: str = "") -> str:
        wanted = READINGS[self.reading].grad
        grad = self.random.random() < 0.6 if wanted is None else wanted
        leaf = Leaf(f"x{len(self.leaves)}", values, dtype, layout, grad)
        exec(leaf.line(), self.scope)
        self.leaves.append(leaf)
        self.values.append(leaf.name)
        return leaf.name

    def random_leaf(self) -> None:
        shape = self.random.choice(SHAPES)
        dtype = self.random.choice(DTYPES)
        layout = self.random.choice(LAYOUTS)
        if 0 in shape:
            layout = f".reshape({shape})"
        elif len(shape) != 2:
            layout = ""
        self.new_leaf(self.numbers(shape, dtype.startswith("complex")), dtype, layout)

    def numbers(self, shape: tuple[int, ...], complex_: bool) -> str:
        def one() -> str:
            value = repr(round(self.random.uniform(-1.9, 1.9), 2) or 0.3)
            return f"{value}{round(self.random.uniform(0.1, 1.5), 2):+}j" if complex_ else value

        def nested(sizes: tuple[int, ...]) -> str:
            return one() if not sizes else f"[{', '.join(nested(sizes[1:]) for _ in range(sizes[0]))}]"

        return nested(shape)

    def constant(self, place: operations.Place) -> str:
        name = f"c{len(self.constants)}"
        made = f"torch.tensor({place.values}, dtype=torch.{place.dtype})"
        if math.prod(place.shape) == 0:
            made += f".reshape({place.shape})"
        line = f"{name} = {made}"
        exec(line, self.scope)
        self.constants.append(line)
        return name

    # ---- steps ----
    def try_step(self, operation: str, text: str, name: str | None) -> bool:
        """Run a step on torch; keep it if its result is usable."""
        error = None
        try:
            exec(text, self.scope)
        except Exception as raised:
            error = raised
        if error is not None:
            if self.random.random() > 0.004:
                return False
            self.steps.append(Step(operation, text))  # both libraries have to refuse it
            self.operations.add(operation)
            self.refused = True
            return True
        if name is not None:
            value = self.scope[name]
            if not isinstance(value, torch.Tensor) or not self.usable(value):
                return False
            self.values.append(name)
        self.steps.append(Step(operation, text))
        self.operations.add(operation)
        return True

    def usable(self, value: torch.Tensor) -> bool:
        if value.numel() > MOST or value.layout is not torch.strided or value.dim() > 6:
            return False
        if not (value.is_floating_point() or value.is_complex()) or not value.numel():
            return True
        largest = value.detach().abs().max().item()
        return (math.isfinite(largest) and largest < LARGEST) or self.random.random() < 0.03

    def pick(self, floating: bool = True) -> str:
        """Return the name of a value, rather a late one."""
        names = [n for n in self.values if self.floating(n)] if floating else self.values
        if not names:
            return self.random.choice(self.values)
        return names[-1] if self.random.random() < 0.5 else self.random.choice(names)

    def floating(self, name: str) -> bool:
        value = self.scope[name]
        return isinstance(value, torch.Tensor) and (value.is_floating_point() or value.is_complex())

    def fresh_name(self) -> str:
        return f"t{len(self.steps)}"

    def call(self) -> bool:
        """Add a call of an operation of the table."""
        names = operations.operations()
        operation = self.random.choice(names)
        forms = operations.forms(operation)
        if not forms:
            return False
        form = self.random.choice(forms)
        for fitted in (self.random.random() < 0.5, True, True):
            marks = len(self.constants), len(self.leaves), len(self.values)
            arguments = [self.argument(place, fitted, form.in_place and k == 0) for k, place in enumerate(form.places)]
            call = form.text.format(*arguments)
            name = self.fresh_name()
            if form.in_place:
                text, defined = call, None
            else:
                text, defined = f"{name} = {self.selected(call)}", name
            if "no output" not in text and self.try_step(form.operation, text, defined):
                return True
            self.forget(*marks)
        return False

    def forget(self, constants: int, leaves: int, values: int) -> None:
        del self.constants[constants:], self.leaves[leaves:], self.values[values:]

    def selected(self, call: str) -> str:
        """Return the call with one of its results chosen, where torch gives several."""
        try:
            result = eval(call, self.scope)
        except Exception:
            return call
        path = ""
        while isinstance(result, (tuple, list)) and result:
            k = self.random.randrange(len(result))
            path += f"[{k}]"
            result = result[k]
        return call + path

    def argument(self, place: operations.Place, fitted: bool, target: bool) -> str:
        if not place.differentiable:
            whole = [n for n in self.values if not self.floating(n)]
            if whole and not fitted and self.random.random() < 0.5:
                return self.random.choice(whole)
            return self.constant(place)
        if target or not fitted:
            return self.pick()
        exact = [n for n in self.values if self.floating(n) and tuple(self.scope[n].shape) == place.shape]
        if exact and self.random.random() < 0.7:
            return self.random.choice(exact)
        size = math.prod(place.shape)
        if len(self.leaves) < 3 and 0 < size <= 27 and self.random.random() < 0.5:
            return self.new_leaf(place.values, place.dtype)
        return self.fit(self.pick(), place)

    def fit(self, name: str, place: operations.Place) -> str:
        """Return an expression of a value that has the shape, and roughly the range, of a sample's tensor."""
        value = self.scope[name]
        size = math.prod(place.shape)
        if size == value.numel() and self.random.random() < 0.5:
            return f"{name}.reshape({place.shape})"
        if value.is_complex() or not self.floating(name):
            return self.constant(place)
        return f"({self.constant(place)} * {name}.mean().sigmoid())" if value.numel() else self.constant(place)

    def other(self) -> bool:
        """Add a step that is no call of the table."""
        v, w, name = self.pick(), self.pick(), self.fresh_name()
        kind = self.random.choice(
            (
                "index",
                "index",
                "view",
                "view",
                "write",
                "write",
                "write",
                "cast",
                "detach",
                "no_grad",
                "custom",
                "hook",
                "arithmetic",
            )
        )
        if kind == "index":
            return self.try_step("index", f"{name} = {v}{self.random.choice(INDICES).format(v=v)}", name)
        if kind == "view":
            return self.try_step("view", f"{name} = {self.random.choice(VIEWS).format(v=v)}", name)
        if kind == "write":
            text = self.random.choice(WRITES).format(v=v, w=w)
            if self.random.random() < 0.1:
                text = f"with torch.no_grad(): {text}"
            return self.try_step("write", text, None)
        if kind == "cast":
            return self.try_step("cast", f"{name} = {v}.to(torch.{self.random.choice(CASTS)})", name)
        if kind == "detach":
            return self.try_step("detach", f"{name} = {v}.detach()", name)
        if kind == "no_grad":
            return self.try_step("no_grad", f"with torch.no_grad(): {name} = {v} * {w}", name)
        if kind == "custom":
            made = self.random.choice((f"Scaled.apply({v}, 1.5)", f"Cubed.apply({v})", f"Doubled.apply({v})"))
            return self.try_step("custom Function", f"{name} = {made}", name)
        if kind == "hook":
            text = f"if {v}.requires_grad: {v}.register_hook(lambda g: g * 2)"
            return self.try_step("hook", text, None)
        sign = self.random.choice(("+", "-", "*", "/", "@", "**", ">"))
        w = self.random.choice((w, w, "2", "0.5", "True"))
        return self.try_step("arithmetic", f"{name} = {v} {sign} {w}", name)

    # ---- the whole ----
    def build(self) -> Program:
        self.refused = False
        torch.default_generator.manual_seed(0)
        for _ in range(self.random.choice((1, 1, 2, 2, 3))):
            self.random_leaf()
        wanted = self.random.choice((1, 2, 2, 3, 3, 4, 5, 6))
        tries = 0
        while len(self.steps) < wanted and tries < 8 * wanted and not self.refused:
            tries += 1
            self.call() if self.random.random() < 0.65 else self.other()
        made = [n for n in self.values if n.startswith("t")] or self.values
        floating = [n for n in made if self.floating(n)] or made
        outputs = [floating[-1]]
        if not READINGS[self.reading].single and self.random.random() < 0.3:
            outputs.append(self.random.choice(floating))
        return Program(
            tuple(self.leaves),
            tuple(self.constants),
            tuple(self.steps),
            tuple(outputs),
            self.reading,
            self.seed,
            self.number,
            frozenset(self.operations),
        ).pruned()


def program(seed: int, number: int) -> Program:
    """Return the program of a seed and a number."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return Builder(seed, number).build()
