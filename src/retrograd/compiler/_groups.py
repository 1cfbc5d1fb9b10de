"""Groups: steps that follow each other run as one native call.

Note [Groups]
A call of NumPy costs a microsecond before it computes anything, and goes over memory once. So steps that `_lowering` understands
are gathered. Each step has a kind: *native* (`_stages`), *large* (maps and sums of arrays that no cache holds, `_clusters`), or a
call of its own. A step has a wave: that of what it reads, and one more where that is of another kind. All native steps of a wave
are one call, and large ones of a wave and a shape are one. Views take no part: to native steps they are offsets and strides into
memory that is there; large ones read them in the next wave. Writes into inputs are native steps, too; they come after all that
reads what was there, and before all that reads what they write. Checks come before all that follows them. Other steps that write keep
their place: groups are made between them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._native import machine
from ._clusters import cluster_of, is_large, shape_of
from ._lowering import Map, View, lowered
from ._program import Buffer, Program, Step, Value, checks
from ._stages import is_native, kernel_of

FEWEST = 2  # large steps that are worth a kernel


def grouped(program: Program) -> Program:
    """Return a program whose steps run in groups. See Note [Groups]."""
    if not machine.is_available():
        return program
    known = {step: lowered(step) for step in program.steps}
    shown = _Shown(program, known)
    steps: list[Step] = []
    segment: list[Step] = []
    for step in program.steps:
        if (step.writes or checks(step)) and not is_native(step, known[step]):
            steps += _Segment(segment, known, shown).ordered()
            segment = []
            steps.append(step)
            shown.done.add(step)
        else:
            segment.append(step)
    steps += _Segment(segment, known, shown).ordered()
    return Program(program.inputs, _needed_views(steps, program.results), program.results)


class _Shown:
    """Who reads which memory."""

    def __init__(self, program: Program, known: dict[Step, Any]) -> None:
        self.outside = set(program.results)
        self.results = {value.buffer for value in program.results}
        self.readers: dict[Value, list[Step]] = {}
        self.of: dict[Buffer, list[Step]] = {}  # those that are no views
        self.makers: dict[Buffer, Value] = {}  # as what it is made
        self.done: set[Step] = set()  # steps that are ordered, and come before all that follow
        for step in program.steps:
            for value in step.makes if known[step] is not View else ():
                self.makers.setdefault(value.buffer, value)
            for value in step.values:
                self.readers.setdefault(value, []).append(step)
                if known[step] is not View and value.buffer is not None:
                    self.of.setdefault(value.buffer, []).append(step)

    def by(self, steps: list[Step]) -> set[Buffer]:
        """Return the memory that steps make and others see."""
        mine = set(steps)
        made = {value.buffer for step in steps for value in step.makes}
        return {
            buffer
            for buffer in made
            if buffer in self.results or any(reader not in mine for reader in self.of.get(buffer, ()))
        }

    def is_last(self, value: Value, steps: set[Step]) -> bool:
        """Tell whether a value fills memory that nobody reads after some steps, which are next."""
        buffer = value.buffer
        if buffer in self.results or buffer.written or self.makers.get(buffer) is not value or value.offset:
            return False
        assert value.step is not None
        users = {value.step, *self.of.get(buffer, ())}
        return users - self.done <= steps and not any(map(self._keeps_arrays, users))

    def _keeps_arrays(self, step: Step) -> bool:
        """Tell whether an object that a step makes is read later: it may hold on to arrays that came into the step, or out of it."""
        objects = [one for one in step.makes if one.buffer is None]
        readers = {reader for one in objects for reader in self.readers.get(one, ())}
        return not self.outside.isdisjoint(objects) or not readers <= self.done or any(map(self._keeps_arrays, readers))


def _needed_views(steps: list[Step], results: Sequence[Value]) -> list[Step]:
    """Leave views out that only kernels have read."""
    needed = set(results)
    kept = []
    for step in reversed(steps):
        stays = step.writes or checks(step) or step.name == "kernel" or not step.makes
        if stays or any(made in needed for made in step.makes):
            kept.append(step)
            needed.update(step.values)
    return kept[::-1]


class _Segment:
    """Steps between writes."""

    def __init__(self, steps: list[Step], known: dict[Step, Any], shown: _Shown) -> None:
        self.steps, self.known, self.shown = steps, known, shown
        self.kinds: dict[Step, str] = {}
        self.waves: dict[Step, int] = {}
        self.floor = 0  # the wave of the last check
        self.touched: dict[Any, list[Step]] = {}  # the steps that have read memory, or written it
        for step in steps:
            self._place(step)

    def _place(self, step: Step) -> None:
        what = self.known[step]
        kind = "call"
        if what is View:
            kind = "view"
        elif what is not None:
            kind = "native" if is_native(step, what) else "large" if is_large(step, what) else "call"
        self.kinds[step] = kind
        waves = [self.floor, *[self._wave_after(value, kind) for value in step.values]]
        for value in step.values if kind != "view" else ():
            # after writes into what it reads; a write after all that has read it
            for other in self.touched.get(value.buffer, ()):
                if other.writes or value.buffer in step.writes:
                    waves.append(self.waves[other] + (self.kinds[other] != kind))
        self.waves[step] = max(waves)
        if step.kind == "check":
            self.floor = max(self.floor, self.waves[step])
        for value in step.values if kind != "view" else ():
            self.touched.setdefault(value.buffer, []).append(step)

    def _wave_after(self, value: Value, kind: str) -> int:
        """Return the first wave in which a step of a kind can read a value."""
        step, seen = value.step, False
        while step is not None and self.kinds.get(step) == "view":  # by what has made the memory
            step = next(one for one in step.values if one.buffer is value.buffer).step
            seen = True
        if step is None or step not in self.waves:
            return 0
        together = kind == "view" or (kind == self.kinds[step] and not (seen and kind == "large"))
        return self.waves[step] + (not together)

    def ordered(self) -> list[Step]:
        """Return the steps wave by wave, gathered."""
        found: list[Step] = []
        for wave in range(max(self.waves.values(), default=-1) + 1):
            own = [step for step in self.steps if self.waves[step] == wave]
            native = [step for step in own if self.kinds[step] == "native"]
            large = [step for step in own if self.kinds[step] == "large"]
            kernels = [self._kernel(native)] if native else []
            gathered = set(native)
            for part in _clusters(large, self.known):
                outside, readers = self.shown.outside, self.shown.readers
                cluster = cluster_of(part, self.known, outside, readers) if len(part) >= FEWEST else None
                alone = [step for step in part if self._takes_a_place(step)] if cluster is None else []
                kernels += [self._kernel([step]) for step in alone] if cluster is None else [cluster]
                gathered.update(alone if cluster is None else cluster.fused)
            rest = [step for step in own if step not in gathered]
            found += _in_order([*kernels, *rest])
            self.shown.done.update((*own, *kernels))
        return found

    def _takes_a_place(self, step: Step) -> bool:
        """Tell whether a map can be computed where one of its operands lies, which nobody reads afterwards."""
        (made,) = step.makes
        if not isinstance(self.known[step][0], Map) or made.buffer in self.shown.results:
            return False
        return any(
            self.shown.is_last(value, {step})
            and (value.shape, value.strides, value.dtype) == (made.shape, made.strides, made.dtype)
            for value in step.values
        )

    def _kernel(self, steps: list[Step]) -> Step:
        shown, own = self.shown, set(steps)
        read: dict[Buffer, set[Value]] = {}
        for value in [one for step in steps for one in step.values if one.buffer is not None]:
            read.setdefault(value.buffer, set()).add(self._origin(value))
        ending = {buffer: value for buffer, (value, *more) in read.items() if not more and shown.is_last(value, own)}
        return kernel_of(steps, self.known, shown.by(steps), shown.results, ending, self._origin)

    def _origin(self, value: Value) -> Value:
        """Return what a view shows, as far as it is there without the view."""
        while value.step is not None and self.known.get(value.step) is View:
            value = next(one for one in value.step.values if one.buffer is value.buffer)
        return value


def _clusters(steps: list[Step], known: dict[Step, Any]) -> list[list[Step]]:
    """Divide large steps into those that one kernel can compute: of one shape, none of which waits for another cluster in between."""
    clusters: list[tuple[Any, list[Step]]] = []
    place: dict[Value, int] = {}
    for step in steps:
        first = max([place[value] for value in step.values if value in place], default=0)
        shape = shape_of(known[step])
        at = next((k for k in range(first, len(clusters)) if clusters[k][0] == shape), len(clusters))
        if at < len(clusters) and any(place.get(value, at) > at for value in step.values):
            at = len(clusters)
        if at == len(clusters):
            clusters.append((shape, []))
        clusters[at][1].append(step)
        for made in step.makes:
            place[made] = at
    return [steps for _, steps in clusters]


def _in_order(steps: list[Step]) -> list[Step]:
    """Order steps of one wave so that each comes after what it reads."""
    made = {value: step for step in steps for value in step.makes}
    found: dict[Step, None] = {}

    def visit(step: Step) -> None:
        if step not in found:
            for value in step.values:
                if value in made and made[value] is not step:
                    visit(made[value])
            found[step] = None

    for step in steps:
        visit(step)
    return list(found)
