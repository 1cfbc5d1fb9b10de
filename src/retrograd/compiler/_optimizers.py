"""Steps of optimizers as part of a program.

Note [Steps inside]
An optimizer whose rule has plans (Note [Plans] in `optim/_plan.py`) is recorded as what its plans compute: the formula of a small
parameter is steps like any others, which kernels take in; a large one is updated by one call of its own kernel. Nothing that a user
may change between calls is a constant of the program:
- rates, momenta and counts of steps go into numbers, which are computed anew before every call, as eager computes them. They are inputs of
  the program. Numbers that are None, 0 or 1 may decide what a rule does: if these are others, the record is not for the call;
- the tensors of the state are looked up in the optimizer at every call. The first call, which has none, runs in eager and makes them;
- which parameters are in which group is compared at every call.
Parameters of a group that have been updated equally often share their numbers. A second step in the same call has numbers of its own.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from .._generated import emit
from .._native import machine
from ..optim._plan import Plan, plan_for
from ..optim._step import RuleOptimizer, plain_numbers
from ..optim.sgd import SGD
from ..tensor._aliasing.views import wrote
from ._guards import is_immutable
from ._stages import LARGEST
from ._traced import UnrecordableError, traced_namespace

DTYPES = (np.dtype(np.float32), np.dtype(np.float64))


class NotYetError(UnrecordableError):
    """A call cannot be recorded, but the next one can: an optimizer will have its state by then."""


class Kin:
    """Parameters of a group that have been updated equally often, and share their numbers."""

    def __init__(self, at: int, group: Any, step: float | None) -> None:
        self.at, self.group, self.step = at, group, step
        self.updated: dict[int, Any] = {}  # those that have gradients, by their ids
        self.times: dict[int, int] = {}  # how often these are updated in the call
        # by dtype, buffers, how it is updated and how often it was: the plan, and its numbers as an input
        self.plans: dict[Any, tuple[Plan, Any]] = {}


class Stepped:
    """An optimizer whose steps can be part of a program, as it is before a call."""

    def __init__(self, optimizer: Any) -> None:
        self.optimizer, self.cls = optimizer, type(optimizer)
        self.kins: dict[Any, Kin] = {}
        self.of: dict[int, Kin] = {}  # by the id of a parameter
        self.params = [param for group in optimizer.param_groups for param in group["params"]]
        self.tensors: list[Any] = []  # of the state, in the order of `places`
        self.places: list[tuple[Any, str]] = []  # the parameter and the name
        self.counts: list[
            Any
        ] = []  # parameters whose steps are counted, in the order in which `numbers` wants their counts
        self.used: list[
            tuple[Kin, Any, int]
        ] = []  # numbers that are inputs of the program, by their plan, and which input they are
        for at, group in enumerate(optimizer.param_groups):
            for param in group["params"]:
                self._add(at, group, param)

    def _add(self, at: int, group: Any, param: Any) -> None:
        state = self.optimizer.state.get(param) or {}
        step = None
        for name, value in state.items():
            if not hasattr(value, "_array"):
                continue
            if name == "step":
                step = float(value._array)
            self.places.append((param, name))
            self.tensors.append(value)
        if self._counts and step is None:
            return  # it has no state yet
        key = at, step
        self.of[id(param)] = self.kins.setdefault(key, Kin(at, group, step))

    @property
    def _counts(self) -> bool:
        """Tell whether the state counts steps."""
        return self.cls is not SGD

    def numbers_of(self, kin: Kin, times: int) -> Any:
        """Return the numbers of a step of some parameters, which were updated so often before in the call."""
        return self.cls._numbers(0.0 if kin.step is None else kin.step + 1 + times, plain_numbers(kin.group))

    # ---- recording ----
    def record(self, recorder: Any) -> None:
        """Record a step on all parameters that have gradients."""
        for group in self.optimizer.param_groups:
            for param in group["params"]:
                grad = None if param._extra is None else param._extra.grad
                if grad is not None:
                    self._update(recorder, param, grad)

    def _update(self, recorder: Any, param: Any, grad: Any) -> None:
        kin = self.of.get(id(param))
        state = self.optimizer.state.get(param) or {}
        if kin is None or (self.cls is SGD and kin.group["momentum"] and "momentum_buffer" not in state):
            raise NotYetError("an optimizer has no state yet")
        p, g = param._array, grad._array
        buffers = self.cls._buffers(state, kin.group)
        rows = [p, g, *[one._array for one in buffers if one is not None]]
        if grad._edge is not None or any(
            not recorder.is_traced(one) or one.dtype != p.dtype or one.shape != p.shape for one in rows
        ):
            raise UnrecordableError("an optimizer updates a parameter by tensors of another shape or dtype")
        if p.dtype not in DTYPES or any(not one.flags.c_contiguous for one in (p, *rows[2:])):
            raise UnrecordableError(
                f"an optimizer updates a parameter of {p.dtype}, or one whose memory is ordered otherwise"
            )
        has = tuple([one is not None for one in buffers])
        whole = p.size > LARGEST or not machine.is_available()
        times = kin.times.get(id(param), 0)
        plan, numbers = self._numbers_input(recorder, kin, has, p.dtype, whole, times if self._counts else 0)
        if whole:
            written = [rows[k] for k in plan.written]
            recorder.call("call", _updating(plan), "optimizer_update", (numbers, *rows), {}, writes=written)
        else:
            named = {name: numbers[at, ...] for at, name in enumerate(plan.names)}
            made = plan.formula.formula(traced_namespace, *rows, **named)
            for at, new in zip(plan.written, made, strict=True):
                rows[at][...] = new
        wrote(param)
        kin.updated[id(param)] = param
        kin.times[id(param)] = times + 1

    def _numbers_input(
        self, recorder: Any, kin: Kin, has: Any, dtype: Any, whole: bool, times: int
    ) -> tuple[Plan, Any]:
        """Return a plan, and its numbers as an input of the program."""
        key = dtype, has, whole, times
        known = kin.plans.get(key)
        if known is None:
            numbers = self.numbers_of(kin, times)
            plan = plan_for(self.cls._rule, numbers, has, bool(kin.group.get("maximize")))
            values = plan.numbers(numbers)
            made = recorder.number(tuple(values) if whole else np.array(values, dtype))
            known = kin.plans[key] = plan, made
            self.used.append((kin, key, len(recorder.numbers) - 1))
        return known

    # ---- running ----
    def finder(self) -> Callable[[], Any]:
        """Return what finds the tensors of the state before a call; None if parameters or state are others than they were."""
        groups = [(group, tuple(group["params"])) for group in self.optimizer.param_groups]
        scope: dict[str, Any] = {"optimizer": self.optimizer, "same": operator.is_, "n": len(groups)}
        lines = [
            "def find():",
            "    groups = optimizer.param_groups",
            f"    if len(groups) != {len(groups)}:",
            "        return None",
        ]
        for at, (_, params) in enumerate(groups):
            scope[f"params{at}"] = params
            lines += [
                f"    p = groups[{at}]['params']",
                f"    if len(p) != {len(params)} or not all(map(same, p, params{at})):",
                "        return None",
            ]
        names: list[str] = []
        lines.append("    state = optimizer.state")
        last = None
        for number, (param, name) in enumerate(self.places):
            if param is not last:
                scope[f"p{number}"] = last = param
                lines += [f"    s = state.get(p{number})", "    if s is None:", "        return None"]
            names.append(f"t{number}")
            lines.append(f"    t{number} = s.get({name!r})")
        lines.append(f"    return ({''.join(f'{name}, ' for name in names)})")
        return emit("the state of an optimizer", "\n".join(lines), scope)["find"]  # type: ignore[no-any-return]

    def counter(self) -> Callable[..., Any]:
        """Return what computes the numbers of a step: of the counts of steps, in the order of `counts`.

        It returns the new counts and the numbers, or None if these are of another kind.
        """
        scope: dict[str, Any] = {
            "optimizer": self.optimizer, "numbers_of": self.cls._numbers, "plan_for": plan_for, "rule": self.cls._rule,
            "plain": plain_numbers, "array": np.array, "immutable": is_immutable, "last": [((), None)],
        }  # fmt: skip
        kins = list(dict.fromkeys(kin for kin, _, _ in self.used))
        given: list[str] = []
        lines = ["    groups = optimizer.param_groups"]
        counts: list[str] = []
        for number, kin in enumerate(kins):
            members = list(kin.updated.values()) if self._counts else []
            names = [f"c{len(given) + k}" for k in range(len(members))]
            given += names
            self.counts += members
            for name in names:
                if name == names[0]:
                    lines.append(f"    now{number} = {name}.item()")
                else:
                    lines += [f"    if {name}.item() != now{number}:", "        return None"]
            counts += [f"now{number} + {kin.times[id(member)]}" for member in members]
            lines.append(f"    o = groups[{kin.at}]")
            flags = [(name, value) for name, value in kin.group.items() if value is None or type(value) is bool]
            different = " or ".join(f"o.get({name!r}) is not {value}" for name, value in flags)
            lines += [f"    if {different}:", "        return None"] if flags else []
            for times in sorted({key[3] for other, key, _ in self.used if other is kin}):
                count = f"now{number} + {times + 1}" if names else "0.0"
                lines.append(f"    n{number}_{times} = numbers_of({count}, plain(o))")
        made: list[str] = []
        for number, (kin, key, _) in enumerate(self.used):
            dtype, has, whole, times = key
            scope[f"plan{number}"], scope[f"d{number}"], scope[f"has{number}"] = kin.plans[key][0], dtype, has
            own = f"n{kins.index(kin)}_{times}"
            lines += [
                f"    if plan_for(rule, {own}, has{number}, bool(groups[{kin.at}].get('maximize'))) is not plan{number}:",
                "        return None",
            ]
            values = f"plan{number}.numbers({own})"
            made.append(values if whole else f"array({values}, d{number})")
        lines.append(f"    found = ({''.join(f'{one}, ' for one in (*counts, *made))})")
        if not given:  # only options decide: while these are the same objects, so are the numbers
            read = [(kin.at, name) for kin in kins for name in kin.group if name not in ("params", "param_names")]
            options = f"({''.join(f'groups[{at}][{name!r}], ' for at, name in read)})"
            same = [f"len(groups[{kin.at}]) == {len(kin.group)}" for kin in kins]
            same += [f"groups[{at}][{name!r}] is known[{number}]" for number, (at, name) in enumerate(read)]
            lines[1:1] = [
                "    known, found = last[0]",
                f"    if found and {' and '.join(same)}:",
                "        return found",
                f"    known = {options}",
            ]
            # another thread may have exchanged an option meanwhile
            lines += [f"    if immutable(known) and {' and '.join(same)}:", "        last[0] = known, found"]
        lines.append("    return found")
        text = "\n".join([f"def count({', '.join(given)}):", *lines])
        return emit("the numbers of a step", text, scope)["count"]  # type: ignore[no-any-return]


def _updating(plan: Plan) -> Callable[..., None]:
    """Return what updates a large parameter: of the plan's numbers, the parameter, its gradient and its buffers."""

    def update(numbers: tuple[float, ...], *rows: Any) -> None:
        plan.update([one.reshape(-1) for one in rows], numbers)

    return update


def stepped(objects: Sequence[Any]) -> list[Stepped]:
    """Return those of the objects that a function uses whose steps can be part of a program."""
    found = []
    for one in objects:
        if not isinstance(one, RuleOptimizer) or any(
            group.get("differentiable") or group.get("capturable") for group in one.param_groups
        ):
            continue
        own = type(one)
        counts = own._prepare.__func__ is RuleOptimizer._prepare.__func__  # type: ignore[attr-defined]
        if own.__module__.startswith(RuleOptimizer.__module__.rpartition(".")[0]) and (own is SGD or counts):
            found.append(Stepped(one))
    return found
