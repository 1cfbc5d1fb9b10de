"""Groups: steps that follow each other run as one native call.

Note [Groups]
A call of NumPy costs a microsecond before it computes anything, and goes over memory once. So steps that `_lowering` understands
are gathered. Each step has a kind: *small* (small arrays, `_kernels`), *large* (maps and sums of large ones, `_clusters`), or a
call of its own. A step has a wave: that of what it reads, and one more where that is of another kind. All small steps of a wave
are one kernel, and large ones of a wave and a shape are one. Views take no part: to small steps they are offsets and strides into
memory that is there; large ones read them in the next wave. Writes into inputs are small steps, too; they come after all that
reads what was there, and before all that reads what they write. Inside a small kernel a value is computed in a loop over its
elements. Maps of one shape that follow each other share a loop, in which they read each other's values from registers; what only
one loop reads is not stored. Products are calls of BLAS by its address. Values that others read get memory of their own, as eager
lays it out; the rest shares one piece of scratch memory for the call. Other steps that write keep their place: groups are made between
them.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from .._native import machine
from ._clusters import cluster_of, is_large, shape_of
from ._kernels import is_small, kernel_of
from ._lowering import Store, View, lowered
from ._program import Program, Step, Value

FEWEST = 2  # steps that are worth a kernel
MOST = 600  # steps of a kernel: LLVM takes longer than in proportion


def grouped(program: Program) -> Program:
    """Return a program whose steps run in groups. See Note [Groups]."""
    if not machine.is_available():
        return program
    outside = set(program.results)
    steps: list[Step] = []
    segment: list[Step] = []
    readers = _readers(program.steps)
    for step in program.steps:
        if (step.writes and not _is_small_store(step)) or step.kind == "check":
            steps += _Segment(segment, outside, readers).ordered()
            segment = []
            steps.append(step)
        else:
            segment.append(step)
    steps += _Segment(segment, outside, readers).ordered()
    return Program(program.inputs, _needed_views(steps, program.results), program.results)


def _is_small_store(step: Step) -> bool:
    what = lowered(step)
    return isinstance(what, Store) and is_small(step, what)


def _readers(steps: Sequence[Step]) -> dict[Value, list[Step]]:
    found: dict[Value, list[Step]] = {}
    for step in steps:
        for value in step.values:
            found.setdefault(value, []).append(step)
    return found


def _needed_views(steps: list[Step], results: Sequence[Value]) -> list[Step]:
    """Leave views out that only kernels have read."""
    needed = set(results)
    kept = []
    for step in reversed(steps):
        if step.writes or step.kind == "check" or not step.makes or any(made in needed for made in step.makes):
            kept.append(step)
            needed.update(step.values)
    return kept[::-1]


class _Segment:
    """Steps between writes."""

    def __init__(self, steps: list[Step], outside: set[Value], readers: dict[Value, list[Step]]) -> None:
        self.steps, self.outside, self.readers = steps, outside, readers
        self.known: dict[Step, Any] = {}  # what steps do, where they are gathered
        self.kinds: dict[Step, str] = {}
        self.waves: dict[Step, int] = {}
        self.touched: dict[Any, list[Step]] = {}  # the steps that have read memory, or written it
        for step in steps:
            self._place(step)

    def _place(self, step: Step) -> None:
        what = lowered(step)
        kind = "call"
        if isinstance(what, View):
            kind = "view"
        elif what is not None:
            kind = "small" if is_small(step, what) else "large" if is_large(step, what) else "call"
        if kind != "call":
            self.known[step] = what
        self.kinds[step] = kind
        waves = [self._wave_after(value, kind) for value in step.values]
        for value in (
            step.values if kind != "view" else ()
        ):  # after writes into what it reads; a write after all that has read it
            for other in self.touched.get(value.buffer, ()):
                if other.writes or value.buffer in step.writes:
                    waves.append(self.waves[other] + (self.kinds[other] != kind))
        self.waves[step] = max(waves, default=0)
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
            small = [step for step in own if self.kinds[step] == "small"]
            large = [step for step in own if self.kinds[step] == "large"]
            if len(small) < FEWEST:
                small = []
            kernels = [
                kernel_of(small[start : start + MOST], self.known, self.outside, self.readers)
                for start in range(0, len(small), MOST)
            ]
            gathered = set(small)
            for part in _clusters(large, self.known):
                cluster = cluster_of(part, self.known, self.outside, self.readers) if len(part) >= FEWEST else None
                if cluster is not None:
                    kernels.append(cluster)
                    gathered.update(cluster.fused)
            rest = [step for step in own if step not in gathered]
            found += _in_order([*kernels, *rest])
        return found


def _clusters(steps: list[Step], known: dict[Step, Any]) -> list[list[Step]]:
    """Divide large steps into those that one kernel can compute: of one shape, none of which waits for another cluster in between."""
    clusters: list[tuple[Any, list[Step]]] = []
    place: dict[Value, int] = {}
    for step in steps:
        first = max([place[value] for value in step.values if value in place], default=0)
        shape = shape_of(step, known[step])
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
