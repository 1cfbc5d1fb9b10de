"""The step that most optimizers share: which gradients there are, on what their rule runs, and what a write leaves behind.

An optimizer says which buffers of zeros a parameter begins with (`_zeros`), which numbers a step needs (`_numbers`), and the rule; one
whose numbers are a parameter's own says more (`_prepare`). See Note [Plans] for how a rule runs. Small
parameters share scratch memory; large ones go through a kernel.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from operator import itemgetter
from typing import Any, ClassVar, TypeAlias

import ml_dtypes
import numpy as np

from .._modes import NO_GRAD, read_mode
from .._native import machine
from .._native.program import PreparedUpdate, Together
from .._places import user_frame
from ..overrides import unwatched
from ..tensor._aliasing.views import wrote
from ..tensor._base import LEAF, _edge_slot, materialise
from ..tensor._functions.complex_views import view_as_real
from ..tensor._functions.creation import tensor as make_tensor
from ..tensor._functions.creation import zeros_like
from ..tensor._recording.flat import EXACT
from ..tensor._tensor import Tensor
from ._plan import LARGE, Plan, Workspace, as_arrays, plan_for
from .optimizer import Optimizer, ParamsT, _get_scalar_dtype, _use_grad_for_differentiable, loss_of

NDARRAY = np.ndarray
KINDS = {np.dtype(np.float32): np.dtype(np.float32), np.dtype(np.float64): np.dtype(np.float64)}
HALVES = {np.dtype(np.float16), np.dtype(ml_dtypes.bfloat16)}  # in which large parameters alone have plans
KINDS |= {half: half for half in HALVES} | {
    np.dtype(np.complex64): np.dtype(np.float32),
    np.dtype(np.complex128): np.dtype(np.float64),
}
State: TypeAlias = dict[str, Any]
Options: TypeAlias = dict[str, Any]
Shared: TypeAlias = dict[Any, Any]
Prepared: TypeAlias = tuple[tuple[Any, ...], Any]
Kind: TypeAlias = tuple[Any, tuple[bool, ...]]  # the dtype of the numbers, and which buffers there are
PLANNED = set(
    EXACT
)  # classes whose memory plans update: Tensor and Parameter, and those that show a whole of which the memory is a part
PLAIN = {float, int, bool, str, list, type(None)}  # types of options that are no Tensors and hold none


class Slot:
    """A parameter that plans can update: its memory and its buffers', as arrays of real numbers."""

    __slots__ = (
        "array",
        "buffers",
        "dtype",
        "kernel",
        "kind",
        "large",
        "others",
        "parameter",
        "plan",
        "scratch",
        "shape",
    )

    def __init__(self, array: Any, buffers: list[Any], kinds: dict[Kind, Kind]) -> None:
        self.array = array
        self.buffers = buffers  # arrays, None where the rule has none
        self.dtype, self.shape = array.dtype, array.shape
        dtype = KINDS[array.dtype]
        kind = dtype, tuple(one is not None for one in buffers)
        self.kind = kinds.setdefault(kind, kind)  # one object for all that are equal: such slots have the same plan
        memory = [one if one.dtype is dtype else one.view(dtype) for one in (array, *buffers) if one is not None]
        self.large = memory[0].size >= LARGE
        self.parameter, *self.others = [one.reshape(-1) for one in memory] if self.large else memory
        self.plan: Plan | None = None
        self.kernel: PreparedUpdate | None = None
        self.scratch: list[Any] = []

    def adopt_kernel(self, plan: Plan, gradient: Any, values: tuple[float, ...]) -> None:
        """Prepare the kernel of a plan that will update this large parameter, if there is one."""
        self.kernel = plan.kernel([self.parameter, gradient, *self.others], values)
        self.plan = plan

    def adopt(self, plan: Plan, workspace: Workspace) -> None:
        """Take scratch memory for a plan that will update this small parameter."""
        found = workspace.take(plan, self.parameter.dtype, self.parameter.size)
        self.scratch = [*self.others, *(one.reshape(self.parameter.shape) for one in found)]
        self.plan = plan


def _real(array: Any) -> Any:
    """Return an array's numbers in their order, complex ones as real numbers, twice as many along the last axis."""
    return np.ascontiguousarray(array).view(KINDS[array.dtype])


CAPTURABLE = ["cuda", "xpu", "hpu", "privateuseone", "xla"]


def _step_of(cls: type) -> Callable[..., Any]:
    """Make the step of a class, which has the class's name in errors."""

    def step(self: Any, closure: Callable[[], Any] | None = None) -> Any:
        """Update every parameter that has a gradient; return what `closure` computes, if it is given."""
        loss = loss_of(closure)
        if read_mode() is NO_GRAD:
            self._update_all()
        else:
            unwatched(self._update_all)  # under a profiler the step runs as it would without
        return loss

    step.__qualname__ = f"{cls.__name__}.step"
    return _use_grad_for_differentiable(step)


class RuleOptimizer(Optimizer):
    """An optimizer whose parameters are updated one by one, by a rule."""

    # options that groups saved by old versions do not have
    _missing: ClassVar[Options] = {"maximize": False, "foreach": None, "capturable": False, "differentiable": False}
    _floats: tuple[str, ...] = ("step",)  # state that old versions kept as numbers
    _captured = "params and state_steps"  # what torch names where a step on a CPU is to be captured
    _foreach_differentiates = False  # whether torch lets gradients go through its steps on lists of tensors
    _rate_argument = ""  # for which torch needs a rate that is a number, one through which no gradient goes
    _zeros: tuple[str, ...] = ()  # the buffers of the state, with which a parameter begins
    _read: ClassVar[Callable[[State], Any]]  # returns these buffers of a state, if there are several

    def __init_subclass__(cls, **options: Any) -> None:
        super().__init_subclass__(**options)
        if cls._zeros:
            cls._read = itemgetter(*cls._zeros)  # in a third of the time of a loop
        if RuleOptimizer in cls.__bases__ and "step" not in cls.__dict__:
            cls.step = _step_of(cls)  # type: ignore[method-assign]  # errors name the class

    def __init__(self, params: ParamsT, defaults: Options) -> None:
        super().__init__(params, defaults)
        if defaults.get("fused"):  # ways of stepping that exclude each other in torch; all of them are the same here
            if defaults["differentiable"]:
                raise RuntimeError("`fused` does not support `differentiable`")
            if defaults["foreach"]:
                raise RuntimeError("`fused` and `foreach` cannot be `True` together.")

    @classmethod
    def _prepare(cls, param: Any, state: State, options: Options, shared: Shared) -> Prepared:
        """Fill the state if it is empty and count the step; return the buffers and the numbers that the rule needs.

        `shared` is for numbers that the parameters of a group share in this step.
        """
        if not state:
            cls._begin(param, state, options)
        step = count(state)
        numbers = shared.get(step)
        if numbers is None:
            numbers = shared[step] = cls._numbers(step, options)
        return cls._buffers(state, options), numbers

    @classmethod
    def _begin(cls, param: Any, state: State, options: Options) -> None:
        """Fill the state of a parameter before its first step."""
        state["step"] = new_number(0.0, options.get("fused"))
        for name, value in cls._first_numbers(options).items():
            state[name] = new_number(value)
        for name in cls._zeros:
            state[name] = zeros_like(param)

    @staticmethod
    def _first_numbers(options: Options) -> dict[str, float]:
        """Return the numbers of the state, beside the count of steps, with which a parameter begins."""
        return {}

    @classmethod
    def _buffers(cls, state: State, options: Options) -> tuple[Any, ...]:
        """Return the tensors of the state that the rule updates, None where the options need none."""
        return cls._read(state)  # type: ignore[no-any-return]

    @staticmethod
    def _numbers(step: float, options: Options) -> tuple[Any, ...]:
        """Return what the rule needs to know about a step."""
        raise NotImplementedError

    @staticmethod
    def _rule(p: Any, g: Any, buffers: Any, numbers: Any) -> None:
        """Update a parameter by its gradient, on Tensors or, once, on cells."""
        raise NotImplementedError

    def _update_all(self) -> None:
        frame = user_frame(sys._getframe(2)) if read_mode() is NO_GRAD else None
        if "_slots" not in self.__dict__:
            self._slots: dict[Any, Slot] = {}
            self._kinds: dict[Kind, Kind] = {}
            self._workspace = Workspace()
        calls = Together()
        try:
            for group in self.param_groups:
                self._update_group(group, frame, calls)
        finally:
            calls.run()

    def _need_possible(self, group: Options) -> None:
        """Refuse what torch refuses in a group in which a parameter has a gradient."""
        updated = [param for param in group["params"] if param.grad is not None]
        rate = group["lr"]
        if updated and isinstance(rate, Tensor) and rate.requires_grad and self._rate_argument:
            raise TypeError(
                f"{self._rate_argument} must be Number, not Tensor\nHint: gradients reach the rate through SGD, Adam, AdamW, NAdam "
                "and RAdam; here give lr.detach()."
            )
        if updated and group.get("differentiable") and group.get("foreach") and not self._foreach_differentiates:
            raise AssertionError("_foreach ops don't support autograd\nHint: omit foreach for differentiable steps.")
        if group.get("capturable") and any(param.device.type == "cpu" for param in updated):
            devices = CAPTURABLE[:-1] if group.get("foreach") else CAPTURABLE
            raise AssertionError(
                f"If capturable=True, {self._captured} must be on supported devices: {devices}.\nHint: omit capturable: "
                "steps on a CPU are never captured."
            )

    def _update_group(self, group: Options, frame: Any, calls: Together) -> None:
        """Update the parameters of a group by plans, or on Tensors without a `frame`; what `calls` collects is run later."""
        options = group if group.get("differentiable") else plain_numbers(group)
        if options is group or group.get("capturable"):
            self._need_possible(group)
        maximize = bool(group.get("maximize"))
        rule, prepare, slots, states = self._rule, self._prepare, self._slots, self.state
        code, lasti = (None, 0) if frame is None else (frame.f_code, frame.f_lasti)
        shared: Shared = {}
        known: Any = None  # numbers and kind of which there is a plan with values
        kind: Any = None
        packed: dict[Any, bytes] = {}  # these values, as kernels read them
        begun: Any = None
        try:
            for param in group["params"]:
                extra = param._extra
                grad = None if extra is None else extra.grad
                if grad is None:
                    continue
                state = states.get(param)
                if state:
                    buffers, numbers = prepare(param, state, options, shared)
                else:
                    state = {}
                    buffers, numbers = prepare(param, state, options, shared)
                    if state:  # else the rule keeps nothing
                        states[param] = state
                        begun = param
                slot = None
                if frame is not None:
                    slot = slots.get(param)
                    if slot is None or slot.array is not param._array or not _same(slot.buffers, buffers):
                        slot = self._make_slot(param, buffers)
                array = grad._array
                if (
                    slot is None
                    or type(grad) not in PLANNED
                    or array.dtype is not slot.dtype
                    or array.shape != slot.shape
                ):
                    calls.run()  # in the order of parameters
                    self._on_tensors(param, grad, state, buffers, numbers, maximize)
                    continue
                if slot.kind is not kind or (numbers is not known and numbers != known):
                    known, kind = numbers, slot.kind
                    # torch's fused steps round once
                    half = kind[0] if kind[0] in HALVES and not group.get("fused") else None
                    plan = plan_for(rule, numbers, kind[1], maximize, half)
                    run, plain = plan.run, plan.numbers(numbers)
                    values = as_arrays(plain, kind[0])
                    packed = {}
                if array.dtype is not kind[0]:
                    array = _real(array)
                if slot.large:
                    array = array.reshape(-1)
                    if slot.plan is not plan:
                        slot.adopt_kernel(plan, array, plain)
                    kernel = slot.kernel
                    if kernel is None and kind[0] in HALVES:
                        calls.run()
                        self._on_tensors(param, grad, state, buffers, numbers, maximize)
                        continue
                    if kernel is None:
                        plan.update([slot.parameter, array, *slot.others], plain)
                    else:
                        scalars = kernel.plan.scalars
                        if scalars not in packed:
                            packed[scalars] = kernel.numbers(dict(zip(plan.names, plain, strict=True)))
                        calls.add(kernel, array, packed[scalars])
                else:
                    if slot.plan is not plan:
                        slot.adopt(plan, self._workspace)
                    run(slot.parameter, array, *slot.scratch, *values)
                storage = param._storage
                if storage is None or storage.inference or storage.owner is None or storage.views is not None:
                    wrote(param)
                else:
                    storage.version += 1
                    storage.code, storage.lasti = code, lasti
        except BaseException:
            if begun is param and not self._zeros:  # its buffers are empty memory, and torch's do not exist yet
                del states[begun]
            raise

    def _make_slot(self, param: Any, buffers: tuple[Any, ...]) -> Slot | None:
        """Return what plans need of a parameter; None if its rule has to run on Tensors."""
        if not param._array.ndim:
            for one in (param, *buffers):
                if one is not None:
                    materialise(one)
        arrays = [None if one is None else one._array for one in buffers]
        known = type(param) in PLANNED and (_edge_slot.__get__(param) in (None, LEAF))
        if not known or not _is_dense(param._array, param._array):
            return None
        if param._storage is not None and param._storage.inference:
            return None
        if param._array.dtype in HALVES and (param._array.size < LARGE or not machine.is_available()):
            return None
        if not all(one is None or _is_dense(one, param._array) for one in arrays):
            return None
        slot = self._slots[param] = Slot(param._array, arrays, self._kinds)
        return slot

    def _on_tensors(
        self, param: Any, grad: Any, state: dict[str, Any], buffers: tuple[Any, ...], numbers: Any, maximize: bool
    ) -> None:
        """Run the rule on Tensors. If it is to be differentiated, on copies of the state: graphs keep what was there."""
        if read_mode() is not NO_GRAD and self.defaults["differentiable"]:
            names = {id(value): name for name, value in state.items()}
            copies = tuple(None if one is None else one.clone() for one in buffers)
            state.update({names[id(old)]: new for old, new in zip(buffers, copies, strict=True) if old is not None})
            buffers = copies
        update_tensors(self._rule, param, grad, buffers, numbers, maximize)

    def __setstate__(self, state: dict[str, Any]) -> None:
        super().__setstate__(state)
        self.__dict__.pop("_slots", None)
        for group in self.param_groups:
            for name, value in self._missing.items():
                group.setdefault(name, value)
        numbers_to_tensors(self, self._floats)


def update_tensors(rule: Callable[..., None], p: Any, g: Any, buffers: Any, numbers: Any, maximize: bool) -> None:
    """Run a rule on Tensors; complex ones as pairs of real numbers."""
    if maximize:
        g = g.neg()
    if p.is_complex():
        p, g = view_as_real(p), view_as_real(g)
        buffers = tuple(view_as_real(one) if one is not None and one.is_complex() else one for one in buffers)
    rule(p, g, buffers, numbers)


def update_lists(kind: type[RuleOptimizer], options: Options, **buffers: list[Any]) -> None:
    """Update parameters by their gradients, as the functional forms of optimizers do: what they were given is `options`."""
    params, grads, steps = options["params"], options["grads"], options["state_steps"]
    for p, g, step, *own in zip(params, grads, steps, *buffers.values(), strict=True):
        state = {"step": step, **dict(zip(buffers, own, strict=True))}
        update_tensors(kind._rule, p, g, *kind._prepare(p, state, options, {}), options["maximize"])


def _same(arrays: list[Any], tensors: tuple[Any, ...]) -> bool:
    """Tell whether the buffers are those a slot was made for."""
    for array, one in zip(arrays, tensors):  # noqa: B905, SIM110 - at every step of every parameter
        if array is not one and (one is None or array is not one._array):
            return False
    return True


def _is_dense(array: Any, like: Any) -> bool:
    """Tell whether an array is memory that a plan can write, of another's shape and dtype."""
    return (
        type(array) is NDARRAY
        and array.dtype in KINDS
        and array.dtype is like.dtype
        and array.shape == like.shape
        and array.flags.carray
        and (array.ndim > 0 or array.dtype.kind == "f")
    )


def plain_numbers(group: dict[str, Any]) -> dict[str, Any]:
    """Return the options of a group with numbers where there are Tensors."""
    changed: dict[str, Any] = {}
    for name, value in group.items():
        if type(value) in PLAIN:
            continue
        if type(value) is tuple:
            if any(isinstance(one, Tensor) for one in value):
                changed[name] = tuple(one.item() if isinstance(one, Tensor) else one for one in value)
        elif isinstance(value, Tensor):
            changed[name] = value.item()
    return {**group, **changed} if changed else group


# ---- state ----
def numbers_to_tensors(optimizer: Optimizer, names: tuple[str, ...]) -> None:
    """Make tensors of numbers in the state, as old versions saved them."""
    for state in optimizer.state.values():
        for name in names:
            if name in state and not isinstance(state[name], Tensor):
                state[name] = new_number(float(state[name]))


def new_number(value: float, fused: bool | None = None) -> Any:
    """Return a number of the state, with memory of its own."""
    number = make_tensor(value, dtype=_get_scalar_dtype(fused))
    materialise(number)
    return number


def count(state: dict[str, Any]) -> float:
    """Advance the count of steps in a state and return it."""
    step = state["step"]
    if not isinstance(step, Tensor):
        raise RuntimeError("API has changed, `state_steps` argument must contain a list of singleton tensors")
    array = step._array
    if type(array) is NDARRAY and array.dtype.kind == "f" and not array.ndim:
        now: float = array.item() + 1
        array.fill(now)  # in a third of the time of a sum
        return now
    step.add_(1)
    return step.item()


# ---- words for rules: a factor may be a Tensor that is to be differentiated ----
def add_times(x: Any, y: Any, factor: Any) -> None:
    """Add a number of times `y`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.mul(factor))
    else:
        x.add_(y, alpha=factor)


def add_quotient(x: Any, y: Any, z: Any, factor: Any) -> None:
    """Add a number of times `y / z`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.div(z).mul(factor))
    else:
        x.addcdiv_(y, z, value=factor)


def add_product(x: Any, y: Any, z: Any, factor: Any) -> None:
    """Add a number of times `y z`."""
    if type(factor) is not float and isinstance(factor, Tensor):
        x.add_(y.mul(z).mul(factor))
    else:
        x.addcmul_(y, z, value=factor)


def keep_larger(x: Any, y: Any) -> None:
    """Keep the larger of each two numbers in `x`; a graph would keep `x` as it was."""
    x.copy_((x.clone() if isinstance(x, Tensor) else x).maximum(y))


def decayed(g: Any, p: Any, weight_decay: Any) -> Any:
    """Return a gradient with the pull of L2 regularisation."""
    if isinstance(weight_decay, Tensor):
        return g.add(p.mul(weight_decay))
    return g.add(p, alpha=weight_decay) if weight_decay else g


def shrink_and_pull(options: Options) -> tuple[Any, Any]:
    """Return the factor by which weights decay by themselves, None if they do not, and the pull that goes into the gradient."""
    weight_decay = options["weight_decay"]
    if not options["decoupled_weight_decay"]:
        return None, weight_decay
    return 1 - options["lr"] * weight_decay if weight_decay else None, 0


# ---- options ----
def named(values: dict[str, Any], names: str) -> Options:
    """Return the values of these names, in this order."""
    return {name: values[name] for name in names.split()}


def check_one(lr: Any) -> None:
    """Refuse a rate that is a Tensor of several."""
    if isinstance(lr, Tensor) and lr.numel() != 1:
        raise ValueError("Tensor lr must be 1-element")


def check_lr(lr: Any, **others: Any) -> None:
    """Refuse a negative rate, or a Tensor of several; then what is out of range among other options, in their order."""
    check_one(lr)
    if not 0.0 <= lr:  # noqa: SIM300 - the order that torch's error names
        raise ValueError(f"Invalid learning rate: {lr}")
    for name, value in others.items():
        if name == "betas":
            for at in (0, 1):
                if not 0.0 <= value[at] < 1.0:
                    raise ValueError(f"Invalid beta parameter at index {at}: {value[at]}")
        elif not 0.0 <= value:  # noqa: SIM300
            raise ValueError(f"Invalid {'epsilon' if name == 'eps' else name} value: {value}")
