"""The program: what a recorded function does to arrays, step by step.

Note [The program]
A `Program` is a straight list of `Step`s over `Value`s, in the order in which eager would run them. There are no Tensors in it,
no gradients and no branches: these have been resolved while it was recorded (`_recorder.py`).
- A `Value` is an array (or an opaque object, such as what a fused operation keeps for its backward). It has a shape, a dtype and
  strides, which hold for every call that the guards let through, and lies in a `Buffer`.
- A `Buffer` is memory. Views are values in the buffer of what they show. A step that writes names the buffers it writes
  (`writes`), and moves their versions; a value is what its buffer shows at the version that the step read. So two steps compute
  the same only if they read the same values at the same versions.
- A `Step` is a call: `function(*arguments, **options)`, whose arguments hold values anywhere inside tuples, lists and slices.
  `name` is its word in the vocabulary `xp` where it has one, by which fusion knows what it computes. `makes` are the values of
  its results.
- A step of kind "check" asks whether a value is still true or false as when the program was recorded. If it is not, the call is
  run in eager from the start: so no check may stand behind a write to memory that was there before. Streams of random numbers are put
  back by who runs the program.
- What goes in (`inputs`) are arrays of tensors that exist before the call, what comes out (`results`) values, whose memory is new
  at every call. A constant that is written, or is returned, is copied first.
Passes take a program and leave one that gives the same: `simplified` (dead steps, equal steps), then `_fusing.fused` (chains of
elementwise steps as one kernel). `text` writes it as Python, and `function` compiles that.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from .._generated import emit


class Buffer:
    """Memory that values lie in."""

    __slots__ = ("known", "number", "version", "written")

    def __init__(self, number: int, known: bool) -> None:
        self.number = number
        self.known = known  # it was there before the call
        self.version = 0
        self.written = False


class Value:
    """An array of the program, or an object that steps hand on. See Note [The program]."""

    __slots__ = ("buffer", "constant", "dtype", "name", "offset", "shape", "step", "strides")

    shape: tuple[int, ...]
    strides: tuple[int, ...]
    dtype: Any  # None of an object
    buffer: Any  # a Buffer; None of an object

    def __init__(self, name: str, array: Any, buffer: Buffer | None) -> None:
        self.name = name
        self.buffer = buffer
        self.step: Step | None = None
        self.offset = 0  # bytes from the beginning of its buffer
        self.constant: Any = None  # the array itself, where it does not come from a step or from outside
        if buffer is None:
            self.shape, self.dtype, self.strides = (), None, ()
        else:
            self.shape, self.dtype, self.strides = array.shape, array.dtype, array.strides

    def __repr__(self) -> str:
        return self.name

    @property
    def size(self) -> int:
        return int(np.prod(self.shape, dtype=np.int64))


class Step:
    """One call. See Note [The program]."""

    __slots__ = (
        "arguments",
        "function",
        "fused",
        "kind",
        "label",
        "makes",
        "name",
        "options",
        "place",
        "read",
        "several",
        "writes",
    )

    def __init__(
        self,
        kind: str,
        function: Callable[..., Any],
        label: str,
        arguments: tuple[Any, ...],
        options: dict[str, Any],
        *,
        name: str | None = None,
    ) -> None:
        self.kind = kind  # call, method, getitem, setitem, check
        self.function = function
        self.label = label  # how it is written
        self.name = name  # its word in the vocabulary
        self.arguments, self.options = arguments, options
        self.makes: list[Value] = []
        self.several = False  # its result is a tuple
        self.writes: list[Buffer] = []
        self.read: tuple[tuple[Value, int], ...] = ()  # values and the versions at which they are read
        self.place = ""  # the user's line
        self.fused: list[Step] = []  # of a kernel: the steps that it stands for

    @property
    def values(self) -> list[Value]:
        """Return the values that it reads."""
        return [value for value, _ in self.read]


# Functions whose results have as many elements as their arguments' numbers say.
DYNAMIC = frozenset(
    """nonzero argwhere flatnonzero where compress extract repeat unique unique_inverse unique_counts unique_all unique_values bincount
    delete trim_zeros intersect1d union1d setdiff1d histogram split array_split masked_select""".split()  # noqa: SIM905
)


def is_dynamic(step: Step) -> bool:
    """Tell whether the shape of a step's results depends on numbers."""
    if step.kind in ("getitem", "setitem"):
        return any(
            value.dtype is not None and value.dtype.kind == "b" and value.shape
            for value in values_in(step.arguments[1])
        )
    return step.label in DYNAMIC and not (step.label == "where" and len(step.arguments) == 3)


def checks(step: Step) -> bool:
    """Tell whether a program may end at a step. Where numbers say how much is made, Python may have asked how much that was."""
    return step.kind == "check" or bool(step.makes and is_dynamic(step))


def may_refuse(step: Step) -> bool:
    """Tell whether a step draws random numbers by numbers of tensors that it may refuse, such as chances above 1."""
    return step.kind == "draw" and any(value.dtype is not None for value in step.values)


def values_in(*trees: Any) -> Iterable[Value]:
    """Go through the values inside arguments."""
    for tree in trees:
        if type(tree) is Value:
            yield tree
        elif type(tree) in (tuple, list):
            yield from values_in(*tree)
        elif type(tree) is dict:
            yield from values_in(*tree.values())
        elif type(tree) is slice:
            yield from values_in(tree.start, tree.stop, tree.step)


class Program:
    """Steps from inputs to results. See Note [The program]."""

    def __init__(self, inputs: list[Value], steps: list[Step], results: list[Value]) -> None:
        self.inputs, self.steps, self.results = inputs, steps, results

    # ---- passes ----
    def simplified(self) -> Program:
        """Return the program without steps that nobody reads and copies that nobody needs, and with equal steps once."""
        steps = _alive(self._without_equals(), self.results)
        return Program(self.inputs, *_without_copies(steps, self.results))

    def _without_equals(self) -> list[Step]:
        kept: list[Step] = []
        known: dict[Any, Step] = {}
        same: dict[Value, Value] = {}
        memory: dict[Any, Any] = {}  # in which views of what is left out lie now
        returned = {id(value.buffer) for value in self.results}
        for step in self.steps:
            if same:
                step = _renamed(step, same)
            key = None
            shared = any(
                made.buffer is None or id(made.buffer) in returned or made.buffer.written for made in step.makes
            )
            if not step.writes and step.makes and not shared:
                key = _key(step)
            if key is not None:
                first = known.get(key)
                if first is not None:
                    for made, other in zip(step.makes, first.makes, strict=True):
                        same[made], memory[made.buffer] = other, other.buffer
                    continue
                known[key] = step
            for made in step.makes:
                made.buffer = memory.get(made.buffer, made.buffer)
            kept.append(step)
        return kept

    # ---- text ----
    def text(self, name: str = "program", readable: bool = False) -> tuple[str, dict[str, Any]]:
        """Write the program as a Python function of its inputs, and return the names that it uses, too.

        A `readable` one does without checks of shapes, which are the same but for sizes that depend on numbers.
        """
        scope: dict[str, Any] = {"asarray": np.asarray}
        writer = _Writer(scope, readable)
        lines = [f"def {name}({', '.join(value.name for value in self.inputs)}):"]
        last = self._last_uses()
        writer.copied.update([value.name for value in self.inputs])
        for value in self._written_constants():
            lines.append(f"    {value.name} = {writer.constant(value)}.copy('K')")
            writer.copied.add(value.name)
        for number, step in enumerate(self.steps):
            lines += [f"    {line}" for line in writer.lines(step)]
            gone = last.get(number)
            if gone:
                lines.append(f"    del {', '.join(gone)}")
        results = [writer.result(value) for value in self.results]
        lines.append(
            f"    return {', '.join(results)}{',' if len(results) == 1 else ''}" if results else "    return ()"
        )
        return "\n".join(lines), scope

    def function(self, what: str) -> Callable[..., Any]:
        """Compile the program."""
        text, scope = self.text()
        return emit(what, text, scope)["program"]  # type: ignore[no-any-return]

    def _written_constants(self) -> list[Value]:
        found: dict[str, Value] = {}
        for step in self.steps:
            for value in step.values:
                if (
                    value not in self.inputs
                    and value.constant is not None
                    and value.buffer is not None
                    and value.buffer.written
                ):
                    found[value.name] = value
        return list(found.values())

    def _last_uses(self) -> dict[int, list[str]]:
        """Return which names a step is the last to read, so that large arrays are let go in time."""
        kept = {value.name for value in (*self.results, *self.inputs)}
        last: dict[str, int] = {}
        for number, step in enumerate(self.steps):
            for value in (*step.values, *step.makes):
                if value.constant is None and value.name not in kept:
                    last[value.name] = number
        names: dict[int, list[str]] = {}
        for name, number in last.items():
            names.setdefault(number, []).append(name)
        return names


def _alive(steps: list[Step], results: Sequence[Value]) -> list[Step]:
    """Return the steps that results, checks or writes to kept memory need."""
    needed = set(results)
    buffers = {value.buffer for value in results if value.buffer is not None}
    kept: list[Step] = []
    for step in reversed(steps):
        wanted = checks(step) or any(made in needed for made in step.makes)
        wanted = wanted or any(buffer.known or buffer in buffers for buffer in step.writes)
        if not wanted:
            continue
        kept.append(step)
        for value in step.values:
            needed.add(value)
            if value.buffer is not None:
                buffers.add(value.buffer)  # earlier writes to it are seen
    return kept[::-1]


def _without_copies(steps: list[Step], results: list[Value]) -> tuple[list[Step], list[Value]]:
    """Leave out copies of values that nobody reads afterwards: the copy of a gradient that nobody else has is the gradient."""
    last: dict[Any, int] = {}  # where memory is read or written last
    for number, step in enumerate(steps):
        for value in step.values:
            last[value.buffer] = number
    returned = {value.buffer for value in results}
    same: dict[Value, Value] = {}
    merged: dict[Any, Any] = {}
    own: set[Value] = set()  # what these steps make: a value of another program has an owner
    kept: list[Step] = []
    for number, step in enumerate(steps):
        if same:
            step = _renamed(step, same)
        if step.kind == "method" and step.label == "copy" and not step.writes:
            (made,), of = step.makes, step.arguments[0]
            buffers = of.buffer, made.buffer
            alone = of in own and not of.offset and not any(one.known or one.written for one in buffers)
            laid_out = (of.shape, of.strides, of.dtype) == (made.shape, made.strides, made.dtype)
            owns = alone and laid_out and not any(value.buffer is of.buffer for value in of.step.values)
            if owns and of.buffer not in returned and last[of.buffer] == number:
                same[made] = of
                merged[made.buffer] = of.buffer
                last[of.buffer] = last.get(made.buffer, number)
                if made.buffer in returned:
                    returned.add(of.buffer)
                made.buffer = of.buffer
                continue
        for value in step.makes:
            value.buffer = merged.get(value.buffer, value.buffer)
        own.update(step.makes)
        kept.append(step)
    return kept, [same.get(value, value) for value in results]


def _renamed(step: Step, same: dict[Value, Value]) -> Step:
    if not any(value in same for value in step.values):
        return step

    def swap(tree: Any) -> Any:
        if type(tree) is Value:
            return same.get(tree, tree)
        if type(tree) in (tuple, list):
            return type(tree)([swap(one) for one in tree])
        if type(tree) is dict:
            return {name: swap(one) for name, one in tree.items()}
        return slice(swap(tree.start), swap(tree.stop), swap(tree.step)) if type(tree) is slice else tree

    made = Step(step.kind, step.function, step.label, swap(step.arguments), swap(step.options), name=step.name)
    made.makes, made.several, made.writes, made.place = step.makes, step.several, step.writes, step.place
    made.read = tuple([(same.get(value, value), version) for value, version in step.read])
    for value in made.makes:
        value.step = made
    return made


def _key(step: Step) -> Any:
    """Return what makes two steps the same; None if that cannot be said."""
    try:
        key = (step.kind, step.label, id(step.function), _frozen(step.arguments), _frozen(step.options), step.read)
        hash(key)
    except TypeError:
        return None
    return key


def _frozen(tree: Any) -> Any:
    if type(tree) in (tuple, list):
        return (type(tree).__name__, *map(_frozen, tree))
    if type(tree) is dict:
        return ("dict", *[(name, _frozen(one)) for name, one in tree.items()])
    if type(tree) is slice:
        return ("slice", _frozen(tree.start), _frozen(tree.stop), _frozen(tree.step))
    if type(tree) is float:
        return ("float", tree.hex())  # -0.0 is not 0.0
    if isinstance(tree, np.ndarray):
        return ("array", id(tree))
    return (type(tree), tree)


class _Writer:
    """Writes steps as lines of Python."""

    def __init__(self, scope: dict[str, Any], readable: bool) -> None:
        self.scope, self.readable = scope, readable
        self.names: dict[int, str] = {}
        self.copied: set[str] = set()
        self.changed = readable  # whether memory from outside has been written

    def lines(self, step: Step) -> list[str]:
        arguments = [self.argument(one) for one in step.arguments]
        if step.kind in ("setitem", "host") and any(buffer.known for buffer in step.writes):
            self.changed = True
        if step.kind == "check":
            return [f"if bool({arguments[0]}) is not {step.arguments[1]}:", "    return None"]
        if step.kind == "kernel" and not self.readable:
            self.changed = self.changed or bool(step.writes)
            return step.function.lines(step, self.named)  # type: ignore[attr-defined, no-any-return]
        if step.kind == "getitem":
            call = f"{arguments[0]}[{arguments[1]}]"
        elif step.kind == "setitem":
            return [f"{arguments[0]}[{arguments[1]}] = {arguments[2]}"]
        else:
            arguments += [f"{name}={self.argument(one)}" for name, one in step.options.items()]
            if step.kind == "method":
                call = f"{arguments[0]}.{step.label}({', '.join(arguments[1:])})"
            elif step.kind == "attribute":
                call = f"{arguments[0]}.{step.label}"
            else:
                call = f"{self.named(step.function, step.label)}({', '.join(arguments)})"
        if not step.makes:
            return [call]
        first = step.makes[0]
        if (
            not step.several
            and first.buffer is not None
            and not first.shape
            and (first.buffer.written or step.kind != "call")
        ):
            call = f"asarray({call})"  # memory, where NumPy gives a number
        target = "".join(f"{made.name}, " for made in step.makes) if step.several else step.makes[0].name
        lines = [f"{target} = {call}"]
        if may_refuse(step):  # eager will say it
            lines = ["try:", f"    {lines[0]}", "except (RuntimeError, ValueError):", "    return None"]
        if step.several:
            written = [
                made.name for made in step.makes if made.buffer is not None and made.buffer.written and not made.shape
            ]
            lines += [f"{name} = asarray({name})" for name in written]
        return [*lines, *self._shape_checks(step)]

    def _shape_checks(self, step: Step) -> list[str]:
        """Write what makes sure that results have the shapes for which all that follows was compiled, as long as nothing has changed."""
        if step.kind != "draw":  # random numbers that were drawn can be given back
            self.changed = self.changed or any(buffer.known for buffer in step.writes)
        if self.changed or step.name == "kernel" or step.kind == "attribute":
            return []
        arrays = [made for made in step.makes if made.buffer is not None]
        return [line for made in arrays for line in (f"if {made.name}.shape != {made.shape}:", "    return None")]

    def argument(self, tree: Any) -> str:
        if type(tree) is Value:
            return self.constant(tree) if tree.constant is not None and tree.name not in self.copied else tree.name
        if type(tree) is tuple:
            return f"({''.join(f'{self.argument(one)}, ' for one in tree)})"
        if type(tree) is list:
            return f"[{', '.join(self.argument(one) for one in tree)}]"
        if type(tree) is slice:
            return f"slice({self.argument(tree.start)}, {self.argument(tree.stop)}, {self.argument(tree.step)})"
        if tree is None or tree is Ellipsis or type(tree) in (int, bool, str):
            return repr(tree)
        if type(tree) is float and tree == tree and abs(tree) != float("inf"):
            return repr(tree)
        return self.named(tree, getattr(tree, "__name__", type(tree).__name__))

    def constant(self, value: Value) -> str:
        return self.named(value.constant, f"of_{value.name}")

    def result(self, value: Value) -> str:
        text = self.argument(value)
        return f"{text}.copy('K')" if value.constant is not None and value.name not in self.copied else text

    def named(self, thing: Any, label: str) -> str:
        """Return the name of something that is not written out, for which the function's globals have it."""
        name = self.names.get(id(thing))
        if name is None:
            name = first = "".join(letter if letter.isalnum() else "_" for letter in label) or "it"
            if first[0].isdigit():
                name = first = f"_{first}"
            count = 1
            while name in self.scope or hasattr(
                builtins, name
            ):  # a constant called `bool` is not what asks for the truth
                count += 1
                name = f"{first}_{count}"
            self.scope[name] = thing
            self.names[id(thing)] = name
        return name
