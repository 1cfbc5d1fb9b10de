"""The recorder: it runs what is done to traced arrays, and writes it down as steps of a program."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from .. import _random
from .._core.arrays import raw_leaf
from .._modes import current_mode
from .._places import describe, user_frame
from ..tensor._base import wrap
from ..tensor._functions.generators import default_generator
from ._apart import is_alone
from ._numbers import Number
from ._program import Buffer, Step, Value, values_in
from ._traced import COMPUTING, STANDING, Traced, TracedObject, UnrecordableError, bare, traced_namespace

STREAM = -2  # the number of memory that is none, but a stream of random numbers


class Recorder:
    """Steps as they come. See Note [Traced arrays] in `_traced.py` and Note [The program] in `_program.py`."""

    def __init__(self, session: Any) -> None:
        self.session = session
        self.draws = False  # whether it draws random numbers from the default stream
        self._stream = _stream()
        self._drawn: list[Traced] = []  # its random numbers, in the order in which they were drawn
        self._keeps_drawn = False  # whether they are kept from writes
        self._again: Any = None  # goes through those that are drawn once more
        self._generators: dict[int, StandIn] = {}  # by the id of a generator
        self.hosted = False  # whether the program calls an optimizer
        self.steps: list[Step] = []
        self.inputs: list[Value] = []
        self.numbers: list[Value] = []  # further inputs, which are computed before every call
        self._buffers: dict[int, Buffer] = {}  # by the id of the array that owns the memory
        self._given: dict[int, Any] = {}  # what owns the memory of inputs
        self._owners: dict[int, Traced] = {}
        self._kept: list[Any] = []  # so that ids stay what they are
        self._constants: dict[int, Value] = {}
        self._count = 0
        self.saved: list[tuple[Any, Any]] = []  # memory that was there before, and what it held
        self.shared = False  # whether tensors from outside share memory

    def refuse(self, reason: str) -> Any:
        """End the recording: the call is run in eager."""
        if current_mode().recording is not self:
            raise TypeError(f"a tensor is being recorded by torch.compile in another thread: {reason}")
        raise UnrecordableError(f"{reason} ({_place()})")

    # ---- values ----
    def input(self, array: Any) -> Traced:
        """Return a traced array for one that is there before the call.

        One that shares memory with another gets memory of its own here: in other calls they may lie apart. All do if there are other
        threads, which may look at it; but for what is part of other memory, into which no program writes.
        """
        owner = _owner(array)
        shares = id(owner) in self._given
        self._given[id(owner)] = owner
        if shares or not is_alone():
            apart = array.copy("K")
            if apart.strides == array.strides:
                array = apart
            elif shares:
                raise UnrecordableError("two tensors from outside share memory")
        self.shared |= shares
        traced = self._traced(array, "a", known=True)
        self.inputs.append(traced.value)
        return traced

    def number(self, thing: Any) -> Any:
        """Return a traced array, or a traced object, for numbers that are computed anew before every call."""
        if isinstance(thing, np.ndarray):
            made: Any = self._traced(thing, "n", known=True)
        else:
            made = TracedObject(thing, Value(self._name("n"), None, None))
        self.numbers.append(made.value)
        return made

    def free_number(self, thing: Any, key: Any) -> Number:
        """Return what stands for a number of Python's that is another in every call."""
        made = Number(self, thing, Value(self._name("n"), None, None), frozenset({key}))
        self.numbers.append(made.value)
        return made

    def computed(self, function: Any, label: str, args: Sequence[Any]) -> Number:
        """Add arithmetic with numbers of Python's as a step."""
        step = Step("call", function, label, (), {})
        self._begin(step, args, {}, ())
        made = Value(self._name("n"), None, None)
        step.makes = [made]
        self._finish(step)
        keys = frozenset().union(*(one.keys for one in args if type(one) is Number))
        return Number(self, function(*bare(tuple(args))), made, keys)

    def decided(self, function: Any, label: str, args: Sequence[Any]) -> bool:
        """Answer a question about numbers of Python's, as the program will have to find it, too."""
        found = self.computed(function, label, args)
        step = Step("check", bool, "check", (), {})
        self._begin(step, (found, found.thing), {}, ())
        self._finish(step)
        return bool(found.thing)

    def _with_arrays(self, args: Sequence[Any]) -> Sequence[Any]:
        """Return arguments of an elementwise function, with numbers of Python's as arrays: these can be read by kernels."""
        dtypes = {one.array.dtype for one in args if type(one) is Traced}
        if len(dtypes) != 1:
            return args
        return tuple([self._as_array(one.beside(*dtypes), *dtypes) if type(one) is Number else one for one in args])

    def _as_array(self, number: Number, dtype: Any) -> Traced:
        step = Step("call", np.asarray, "asarray", (), {})
        self._begin(step, (number, dtype), {}, ())
        traced = self._result(np.asarray(number.thing, dtype), ())
        step.makes = [traced.value]
        self._finish(step)
        return traced

    def constant(self, array: Any) -> Any:
        """Return a traced array for one that was made of nothing but Python's numbers and sizes."""
        if type(array) is not np.ndarray:
            if type(array) is Traced or not isinstance(array, np.generic):
                return array
            array = np.asarray(array)
        traced = self._traced(array, "c")
        if traced.value.constant is None and traced.value.step is None and not traced.value.buffer.known:
            traced.value.constant = array.copy("K")  # as it is now
        return traced

    def _name(self, prefix: str) -> str:
        self._count += 1
        return f"{prefix}{self._count}"

    def _traced(self, array: Any, prefix: str = "v", known: bool = False) -> Traced:
        owner = _owner(array)
        buffer = self._buffers.get(id(owner))
        if buffer is None:
            buffer = self._buffers[id(owner)] = Buffer(len(self._buffers), known)
            self._kept.append(owner)
        traced = Traced(self, array, Value(self._name(prefix), array, buffer))
        if array is not owner:
            traced.value.offset = _address(array) - _address(owner)
        if array is owner:
            self._owners.setdefault(id(owner), traced)
        return traced

    def base_of(self, traced: Traced) -> Any:
        """Return the traced array that owns the memory of another; None for one that owns it itself."""
        if traced.array.base is None:
            return None
        owner = _owner(traced.array)
        if owner is traced.array:
            return None
        found = self._owners.get(id(owner))
        if found is None:  # memory of which a program is given a part: it can be looked at, but is no value
            found = self._owners[id(owner)] = Traced(self, owner, None)
        return found

    def _argument(self, tree: Any) -> Any:
        """Return an argument as a step has it: values in the place of arrays."""
        kind = type(tree)
        if kind is Traced or kind in STANDING:
            if tree.value is None:
                self.refuse("memory is read of which the function was given a part")
            return tree.value
        if kind in (tuple, list):
            return kind([self._argument(one) for one in tree])
        if kind is dict:
            return {name: self._argument(one) for name, one in tree.items()}
        if kind is slice:
            return slice(self._argument(tree.start), self._argument(tree.stop), self._argument(tree.step))
        if isinstance(tree, np.ndarray):
            found = self._constants.get(id(tree))
            if found is None:
                if id(_owner(tree)) in self._buffers:
                    self.refuse("an array is used beside its recorded form")
                found = Value(self._name("c"), tree, Buffer(-1, False))
                found.constant = tree
                self._constants[id(tree)] = found
                self._kept.append(tree)
            return found
        return tree

    # ---- steps ----
    def call(
        self,
        kind: str,
        function: Any,
        label: str,
        args: Sequence[Any],
        options: dict[str, Any],
        *,
        name: str | None = None,
        writes: Sequence[Any] = (),
        owner: Any = None,
    ) -> Any:
        """Run a function on the arrays, and add it as a step."""
        if current_mode().recording is not self:
            return COMPUTING.call(kind, function, label, args, options)
        if name is not None and any(type(one) is Number for one in args):
            args = self._with_arrays(args)
        step = Step(
            kind, owner if owner is not None and owner.__name__ == label else function, label, (), {}, name=name
        )
        self._begin(step, args, options, writes)
        result = function(*bare(tuple(args)), **bare(options))
        return self._made(step, result, (*args, *options.values()))

    def fused(self, operation: Any, arrays: Sequence[Any], params: dict[str, Any]) -> tuple[Any, Any]:
        """Run a fused operation, and add it as a step whose last result is what its backward reads."""
        from ._fused_steps import forward_of, in_words

        for one in params.values():
            if type(one) is Number:
                one._needed()
        known = in_words(traced_namespace, operation, arrays, params)
        if known is not None:
            return known
        function = forward_of(operation, params)
        step = Step("call", function, operation.name, (), {})
        self._begin(step, arrays, {}, ())
        *outs, residuals = function(*bare(list(arrays)))
        made = [self._result(one, arrays) for one in outs]
        kept = TracedObject(residuals, Value(self._name("kept"), None, None))
        step.makes = [*[one.value for one in made], kept.value]
        self._finish(step, several=True)
        return (made[0] if operation.outputs == 1 else tuple(made)), kept

    def fused_backward(
        self, operation: Any, g: Any, needed: Any, residuals: Any, arrays: Sequence[Any], params: dict[str, Any]
    ) -> list[Any]:
        """Run the backward of a fused operation, and add it as a step."""
        from ._fused_steps import Words, backward_in_words, backward_of

        if type(residuals) is Words:
            return backward_in_words(traced_namespace, operation, g, needed, residuals, arrays, params)
        function, given = backward_of(operation, needed, params), (g, residuals, *arrays)
        step = Step("call", function, f"{operation.name}_backward", (), {})
        self._begin(step, given, {}, ())
        found = function(*bare(given))
        made = [None if one is None else self._result(one, given) for one in found]
        step.makes = [Value(self._name("none"), None, None) if one is None else one.value for one in made]
        self._finish(step, several=True)
        return made

    def is_traced(self, array: Any) -> bool:
        """Tell whether an array is one of the recording."""
        return type(array) is Traced

    def shown(self, array: Any) -> Any:
        """Return an array whose shape and strides can be looked at."""
        return array.array if type(array) is Traced else array

    # ---- random numbers ----
    def draw(self, function: Any, *arrays: Any) -> Traced:
        """Add a step that draws from a stream of random numbers: it is taken in its turn, whether or not its numbers are read.

        `function(*arrays)` draws from the default stream, or from the one that a `StandIn` stands for.
        """
        result, used = self._draw_now(function, arrays)
        if self._again is not None and not used:
            return self._drawn_before(result)
        stream, given = self._stream, arrays
        if used:
            (generator,) = used if len(used) == 1 else self.refuse("a function draws from several generators")
            function, stream, given = generator.drawing(function), generator.stream, (generator.traced, *arrays)
        step = Step("draw", function, "draw", (), {})
        self._begin(step, given, {}, ())
        step.writes.append(stream)
        stream.version += 1
        traced = self._result(result, given)
        step.makes = [traced.value]
        self._finish(step)
        if used:
            return traced
        self.draws = True
        self._drawn.append(traced)
        return traced.copy("K") if self._keeps_drawn else traced  # type: ignore[attr-defined]

    def _draw_now(self, function: Any, arrays: Sequence[Any]) -> tuple[Any, list[StandIn]]:
        """Return the numbers that a function draws, and the generators of the program's own that it draws from."""
        stand_ins = list(self._generators.values())
        for one in stand_ins:
            one.current.__dict__.update(generator=one.traced.thing, used=False)
        try:
            result = np.asarray(function(*bare(tuple(arrays))))
            return result, [one for one in stand_ins if one.current.used]
        finally:
            for one in stand_ins:
                one.current.__dict__.clear()

    def _drawn_before(self, result: Any) -> Traced:
        """Return numbers that were drawn before, where a checkpoint runs a second time."""
        before: Any = next(self._again, None)
        if before is None or before.array.shape != result.shape:
            self.refuse("a checkpoint draws other random numbers in its second run")
        return before.copy("K")  # type: ignore[no-any-return]

    def drawn_so_far(self) -> int:
        """Return where numbers are to be drawn again from, and keep what is drawn from now on."""
        self._keeps_drawn = True
        return len(self._drawn)

    @contextmanager
    def drawing_again(self, start: int) -> Iterator[None]:
        """Run a block that draws what was drawn before from the default stream, and leaves that as it is."""
        before, self._again = self._again, iter(self._drawn[start:])
        streams = Streams([default_generator])
        try:
            yield
        finally:
            self._again = before
            streams.put_back()

    def add_generator(self, generator: Any) -> None:
        """Let a generator of the program's own be an input."""
        self._generators[id(generator)] = StandIn(self.number(generator))

    def generator(self, generator: Any) -> Any:
        """Return what stands for a generator of the program's own in functions that draw from it."""
        if generator is default_generator:
            return generator
        found = self._generators.get(id(generator))
        return (
            self.refuse("a generator is used that the analysis of the function has not found")
            if found is None
            else found
        )

    def stands_for_generator(self, thing: Any) -> bool:
        """Tell whether something is what `generator` has returned."""
        return type(thing) is StandIn

    def host(self, function: Any, label: str, values: Sequence[Any]) -> None:
        """Add a call into the library, which may change all memory from outside and what it is given. It is not run."""
        step = Step("host", function, label, (), {})
        self._begin(step, values, {}, ())
        self.hosted = True
        for buffer in {*self._buffers.values(), *[one.value.buffer for one in values]}:
            if buffer.known or any(one.value.buffer is buffer for one in values):
                buffer.version += 1
                buffer.written = True
                step.writes.append(buffer)
        self._finish(step)

    def call_after(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any], changed: Sequence[Any]) -> None:
        """Let a method of an object of the library, the first argument, be called after the program; it changes some objects."""
        self.session.call_after(function, args, kwargs, changed)

    def number_of(self, scaler: Any) -> Number:
        """Return what stands for the scale of a GradScaler."""
        return self.session.number_of(scaler)  # type: ignore[no-any-return]

    def scale_of(self, scaler: Any) -> Any:
        """Return the scale of a GradScaler as a tensor."""
        return wrap(self._as_array(self.number_of(scaler), np.dtype(np.float32)))

    def call_later(self, function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Let the program call a step of an optimizer."""
        self.session.call_later(function, args, kwargs)

    def need_known(self, tensors: Sequence[Any]) -> None:
        """Refuse tensors that the analysis has not found."""
        self.session.need_known(tensors)

    def need_traced(self, tensors: Sequence[Any]) -> None:
        """Refuse operands that come from outside and are not known."""
        for tensor in tensors:
            array = getattr(tensor, "_array", None)
            if (
                array is not None
                and type(raw := raw_leaf(array)) is not Traced
                and isinstance(raw, (np.ndarray, np.generic))
            ):
                self.refuse("a tensor is read that the analysis of the function has not found")

    def check(self, traced: Traced) -> bool:
        """Answer whether a value is true, as the program will have to find it, too."""
        if current_mode().recording is not self:
            return bool(traced.array)
        outcome = bool(traced.array)
        step = Step("check", bool, "check", (), {})
        self._begin(step, (traced, outcome), {}, ())
        self._finish(step)
        return outcome

    def _begin(self, step: Step, args: Sequence[Any], options: dict[str, Any], writes: Sequence[Any]) -> None:
        step.arguments, step.options = self._argument(tuple(args)), self._argument(options)
        reads = dict.fromkeys(values_in(step.arguments, step.options))
        step.read = tuple([(value, 0 if value.buffer is None else value.buffer.version) for value in reads])
        for written in writes:
            if type(written) is not Traced:
                self.refuse("a step writes into an array that is not recorded")
            buffer = written.value.buffer
            if buffer.known:
                self._save(written)
            buffer.version += 1
            buffer.written = True
            step.writes.append(buffer)

    def _save(self, traced: Traced) -> None:
        """Keep what memory from outside holds before the first write into it."""
        owner = _owner(traced.array)
        if not any(one is owner for one, _ in self.saved):
            self.saved.append((owner, owner.copy("K")))

    def has_written(self, traced: Traced) -> bool:
        """Tell whether steps have written into memory from outside."""
        owner = _owner(traced.array)
        return any(one is owner for one, _ in self.saved)

    def _made(self, step: Step, result: Any, given: Sequence[Any]) -> Any:
        """Return the result of a step as traced arrays."""
        if isinstance(result, (tuple, list)) and not isinstance(result, str):
            traced = [self._result(one, given) for one in result]
            step.makes = [one.value for one in traced]
            self._finish(step, several=True)
            if type(result) in (tuple, list):
                return type(result)(traced)
            return type(result)(*traced) if hasattr(result, "_fields") else tuple(traced)
        if result is None:
            self._finish(step)
            return None
        same = _same(result, given)
        if same is not None:  # it gave back what it was given
            if step.writes:
                self._finish(step)
            return same
        traced_result = self._result(result, given)
        step.makes = [traced_result.value]
        self._finish(step)
        return traced_result

    def _result(self, result: Any, given: Sequence[Any]) -> Traced:
        if isinstance(result, np.generic):
            result = np.asarray(result)
        if not isinstance(result, np.ndarray):
            self.refuse(f"a function of arrays gives {type(result).__name__}")
        return self._traced(result)

    def _finish(self, step: Step, several: bool = False) -> None:
        step.several = several
        for made in step.makes:
            made.step = step
        step.place = _place()
        self.steps.append(step)

    def rolled_back(self) -> None:
        """Put memory from outside back as it was."""
        for owner, before in self.saved:
            owner[...] = before
        self.saved.clear()


class StandIn:
    """What draws from a generator of the program's own: in a program, from the one that is given in the call."""

    def __init__(self, traced: TracedObject) -> None:
        vars(self).update(traced=traced, stream=_stream(), current=threading.local())

    def drawing(self, function: Any) -> Any:
        """Return a function that draws from a generator, its first argument."""

        def draw(generator: Any, *arrays: Any) -> Any:
            self.current.generator = generator
            try:
                return function(*arrays)
            finally:
                del self.current.generator

        return draw

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real(), name)

    def __setattr__(self, name: str, value: Any) -> None:
        setattr(self._real(), name, value)

    def _real(self) -> Any:
        self.current.used = True
        try:
            return self.current.generator
        except AttributeError:
            raise UnrecordableError("random numbers are drawn in a way that is not recorded") from None


class Streams:
    """Where generators stand, so that they can be put back."""

    def __init__(self, generators: Sequence[Any]) -> None:
        self.states = [(one, _state(one)) for one in generators]

    def put_back(self) -> None:
        for generator, state in self.states:
            _random.Generator.set_state(generator, state)

    def now(self) -> Streams:
        """Return where the same generators stand now."""
        return Streams([one for one, _ in self.states])

    def have_moved(self) -> list[bool]:
        return [not np.array_equal(state, _state(generator)) for generator, state in self.states]


def _state(generator: Any) -> Any:
    return _random.Generator.get_state(generator)


def _stream() -> Buffer:
    """Return the memory that stands for a stream of random numbers: it is there before the call, and every draw writes it."""
    buffer = Buffer(STREAM, True)
    buffer.written = True
    return buffer


def _same(result: Any, given: Sequence[Any]) -> Any:
    for one in given:
        if type(one) is Traced and one.array is result:
            return one
        if type(one) in (tuple, list) and (found := _same(result, one)) is not None:
            return found
    return None


def _owner(array: Any) -> Any:
    """Return the array that owns the memory of another."""
    while array.base is not None:
        base = array.base
        if not isinstance(base, np.ndarray):
            base = getattr(base, "base", None)  # `as_strided` puts an object between
            if not isinstance(base, np.ndarray):
                return array
        array = base
    return array


def _address(array: Any) -> int:
    return int(array.__array_interface__["data"][0])


def _place() -> str:
    """Describe the user's line; NumPy's operators, which call back, are not the user's."""
    frame = user_frame(sys._getframe(2))
    while frame.f_back is not None and frame.f_globals.get("__name__", "").startswith("numpy."):
        frame = user_frame(frame.f_back)
    return describe(frame.f_code, frame.f_lasti).strip()
