"""torch.utils.checkpoint: trade memory for a second run of the forward.

Note [Checkpointing without reentrance]
Rule 1. While the function runs, a pack hook gives the graph an empty `_Holder` instead of each tensor it
        would save. The `_Frame` of the call keeps the arguments, and of the holders only weak references and
        the tensors' metadata.
Rule 2. The first unpack of a backward runs the function again with another pack hook, which sees the same
        tensors in the same order and hands the n-th to the n-th holder. When the last one is in, an exception
        ends the run (early stop).
Rule 3. What was recomputed belongs to one run of the engine (a `Task`), or to a `GraphExecGroup` of them, and to its
        holder, both held weakly: it is gone when it was unpacked, when the graph let go of the holder, or when the
        backward is over. No cycles arise.
Rule 4. The arguments are saved as the graph saves tensors, through the hooks around the call. So an outer
        checkpoint recomputes the arguments of an inner one, and an argument changed in place is an error.
Rule 5. The function runs again under the transforms, the autocast and the default device it ran under before, on the
        same random numbers.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, ContextDecorator, nullcontext
from contextvars import ContextVar
from functools import partial
from operator import methodcaller
from typing import Any, Self

from .._core.primitive import engine_state
from .._device import chosen_device
from .._modes import current_mode, using
from .._places import Place, user_place
from .._public import set_all
from .._tracebacks import guarded
from .._warnings import warn
from ..autograd._function_node import Saved
from ..autograd.function import Function
from ..tensor._base import storage_of
from ..tensor._functions.generators import drawing_apart, get_rng_state
from ..tensor._tensor import Tensor
from ._checkpoint_debug import debug_contexts
from ._checkpoint_policy import SAC_IGNORED_OPS as SAC_IGNORED_OPS
from ._checkpoint_policy import CheckpointPolicy as CheckpointPolicy
from ._checkpoint_policy import SelectiveCheckpointContext as SelectiveCheckpointContext
from ._checkpoint_policy import create_selective_checkpoint_contexts as create_selective_checkpoint_contexts

ContextFn = Callable[[], tuple[AbstractContextManager[Any], AbstractContextManager[Any]]]

_DEBUG_TIP = """
Tip: To see a more detailed error message, either pass `debug=True` to
`torch.utils.checkpoint.checkpoint(...)` or wrap the code block
with `with torch.utils.checkpoint.set_checkpoint_debug_enabled(True):` to
enable checkpoint\u2011debug mode globally.

If this error occurs under torch.compile with automatic_dynamic_shapes enabled,
it may be because the recomputation selected a different compiled graph than the
forward pass (e.g., a dynamic graph instead of the original static graph).
To fix this, either:
  - Use torch._dynamo.mark_dynamic() to explicitly mark varying dimensions as
    dynamic upfront, avoiding the static-to-dynamic transition.
  - Call torch._C._dynamo.eval_frame._set_lru_cache(False) to disable LRU cache
    reordering, which can change which graph is checked first between forward
    and recompute.
"""
_PASS_EXPLICITLY = (
    "use_reentrant=False is recommended, but if you need to preserve the current default behavior, you can "
    "pass use_reentrant=True. Refer to docs for more details on the differences between the two variants."
)


class CheckpointError(RuntimeError):
    """What the function saved when it ran again is not what it saved the first time."""


class _StopRecomputationError(Exception):
    """Ends a recomputation that has all it needs."""


# ---- settings for a block: None leaves the choice to the argument of `checkpoint` ----
class _Choices(list[bool | None]):
    """What the open blocks have chosen, the innermost last."""

    dropped = property(methodcaller("pop"))

    def or_else(self, argument: bool) -> bool:
        """Return the innermost choice, or the argument if there is none."""
        chosen = self[-1] if self else None
        return argument if chosen is None else chosen


class _Choosing(ContextDecorator):
    """A block with a choice. It is left in C: see Note [Leaving a mode cannot be interrupted] in `_modes.py`."""

    choices: _Choices

    def __init__(self, chosen: bool | None) -> None:
        self.chosen = chosen

    def __enter__(self) -> None:
        choices = self.choices
        choices += (self.chosen,)


_early_stop, _debug = _Choices(), _Choices()


class set_checkpoint_early_stop(_Choosing):  # noqa: N801 - torch's name
    """Choose for a block whether recomputation ends once it has all tensors, overriding the argument."""

    choices = _early_stop
    __exit__ = staticmethod(partial("{0.dropped!s:.0}".format, _early_stop))

    def __init__(self, enable: bool) -> None:
        super().__init__(enable)


class set_checkpoint_debug_enabled(_Choosing):  # noqa: N801
    """Choose for a block whether errors list the operations that ran; None leaves it to the argument."""

    choices = _debug
    __exit__ = staticmethod(partial("{0.dropped!s:.0}".format, _debug))

    def __init__(self, enabled: bool | None) -> None:
        super().__init__(enabled)


def noop_context_fn() -> tuple[AbstractContextManager[Any], AbstractContextManager[Any]]:
    """Return two contexts that do nothing."""
    return nullcontext(), nullcontext()


# ---- the public functions ----
@guarded
def checkpoint(
    function: Callable[..., Any],
    *args: Any,
    use_reentrant: bool | None = None,
    context_fn: ContextFn = noop_context_fn,
    determinism_check: str = "default",
    debug: bool = False,
    early_stop: bool = True,
    **kwargs: Any,
) -> Any:
    """Run `function(*args)` without keeping its intermediate values; backward runs it again to get them.

    `preserve_rng_state=False` among the keyword arguments lets the second run draw other random numbers.

    Args:
        function: the function
        *args: its arguments
        use_reentrant: False is the better of torch's two ways; say which
        context_fn: makes two blocks, for the first run and for the second
        determinism_check: "default" compares shapes, dtypes and devices of both runs, "none" nothing
        debug: say which operations differed
        early_stop: end the second run when all values are there
        **kwargs: further arguments of the function

    Example:
        >>> x = torch.ones(3, requires_grad=True)
        >>> y = torch.utils.checkpoint.checkpoint(lambda x: x.exp().sqrt(), x, use_reentrant=False)
        >>> y.sum().backward()
        >>> x.grad
        tensor([0.8244, 0.8244, 0.8244])
    """
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint: the use_reentrant parameter should be passed explicitly. Starting in "
            "PyTorch 2.9, "
            f"calling checkpoint without use_reentrant will raise an exception. {_PASS_EXPLICITLY}"
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if use_reentrant:
        if kwargs:
            raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
        if context_fn is not noop_context_fn or debug is not False:
            raise ValueError("Passing `context_fn` or `debug` is only supported when use_reentrant=False.")
        return CheckpointFunction.apply(function, preserve, *args)
    return _checkpoint_frames(
        function, args, kwargs, preserve, context_fn, determinism_check, debug, early_stop, user_place(2)
    )


@guarded
def checkpoint_sequential(
    functions: Any, segments: int, input: Any, use_reentrant: bool | None = None, **kwargs: Any
) -> Any:
    """Run functions one after another in segments, all but the last of which are checkpointed."""
    if use_reentrant is None:
        warn(
            "torch.utils.checkpoint.checkpoint_sequential: the use_reentrant parameter should be passed "
            "explicitly. In "
            f"version 2.9 we will raise an exception if use_reentrant is not passed. {_PASS_EXPLICITLY}"
        )
        use_reentrant = True
    preserve = kwargs.pop("preserve_rng_state", True)
    if kwargs:
        raise ValueError("Unexpected keyword arguments: " + ",".join(kwargs))
    steps = list(functions.children() if hasattr(functions, "children") else functions)

    def segment(chosen: list[Any]) -> Callable[[Any], Any]:
        def run(value: Any) -> Any:
            for step in chosen:
                value = step(value)
            return value

        return run

    size = len(steps) // segments
    last = 0
    for start in range(0, size * (segments - 1), size):
        last = start + size
        input = checkpoint(segment(steps[start:last]), input, use_reentrant=use_reentrant, preserve_rng_state=preserve)
    return segment(steps[last:])(input)


# ---- random numbers ----
class DefaultDeviceType:
    """The kind of device whose random numbers are kept besides the CPU's."""

    _kind = "cpu"

    @staticmethod
    def set_device_type(device: str = "cuda") -> None:
        DefaultDeviceType._kind = device

    @staticmethod
    def get_device_type() -> str:
        return DefaultDeviceType._kind


def get_device_states(*args: Any) -> tuple[list[int], list[Any]]:
    """Return the devices of the arguments and their random states: none, for all draws are the CPU's."""
    return [], []


def set_device_states(devices: Any, states: Any, *, device_type: str | None = None) -> None:
    """Put back what `get_device_states` returned."""


def _state_now() -> Any:
    """Return where the stream of random numbers stands; while `torch.compile` records, how many numbers were drawn."""
    recording = current_mode().recording
    return get_rng_state() if recording is None else recording.drawn_so_far()


def _random_state(state: Any) -> Any:
    """Draw from a recorded state in a block, and go on where the stream was; None: draw as usual."""
    if state is None:
        return nullcontext()
    recording = current_mode().recording
    return drawing_apart(state) if recording is None else recording.drawing_again(state)


# ---- the reentrant variant ----
def detach_variable(inputs: tuple[Any, ...]) -> tuple[Any, ...]:
    """Make leaves of tensors: same memory, same `requires_grad`, outside the graph."""
    if not isinstance(inputs, tuple):
        raise RuntimeError(f"Only tuple of tensors is supported. Got Unsupported input type: {type(inputs).__name__}")
    detached = []
    for one in inputs:
        if isinstance(one, Tensor):
            required, one = one.requires_grad, one.detach()
            one.requires_grad = required
        detached.append(one)
    return tuple(detached)


def check_backward_validity(inputs: Iterable[Any]) -> None:
    """Warn if no input requires grad: the reentrant variant then cuts the graph."""
    if not any(one.requires_grad for one in inputs if isinstance(one, Tensor)):
        warn("None of the inputs have requires_grad=True. Gradients will be None")


class CheckpointFunction(Function):
    """The reentrant variant: forward keeps the arguments alone, backward runs both on copies of them."""

    @staticmethod
    def forward(ctx: Any, run_function: Any, preserve_rng_state: bool, *args: Any) -> Any:
        check_backward_validity(args)
        ctx.run_function = run_function
        ctx.random = _state_now() if preserve_rng_state else None
        ctx.autocast = current_mode().autocast
        ctx.others = [None if isinstance(one, Tensor) else one for one in args]
        ctx.positions = [i for i, one in enumerate(args) if isinstance(one, Tensor)]
        ctx.save_for_backward(*[args[i] for i in ctx.positions])
        return run_function(*args)

    @staticmethod
    def backward(ctx: Any, *grads: Any) -> Any:
        if engine_state.task is not None and engine_state.task.capture is not None:  # inputs were chosen
            raise RuntimeError(
                "When use_reentrant=True, torch.utils.checkpoint is incompatible with .grad() or passing an "
                "`inputs` parameter to .backward(). To resolve this error, you can either set "
                "use_reentrant=False, or call .backward() without passing the `inputs` argument."
            )
        args = list(ctx.others)
        for i, tensor in zip(ctx.positions, ctx.saved_tensors, strict=True):
            args[i] = tensor
        inputs = detach_variable(tuple(args))
        with _random_state(ctx.random), using(grad=True, autocast=ctx.autocast):
            outputs = ctx.run_function(*inputs)
        outputs = (outputs,) if isinstance(outputs, Tensor) else outputs
        pairs = [
            (out, grad)
            for out, grad in zip(outputs, grads, strict=False)
            if isinstance(out, Tensor) and out.requires_grad
        ]
        if not pairs:
            raise RuntimeError("none of output has requires_grad=True, this checkpoint() is not necessary")
        from ..autograd import backward

        backward([out for out, _ in pairs], [grad for _, grad in pairs])
        return (None, None, *(one.grad if isinstance(one, Tensor) else None for one in inputs))


# ---- the variant without reentrance. See Note [Checkpointing without reentrance] ----
class _Holder:
    """What the graph keeps in place of a saved tensor."""

    __slots__ = ("__weakref__", "number")

    def __init__(self, number: int) -> None:
        self.number = number


class _Run:
    """One recomputation: how many tensors it has seen, and those that a holder still waits for."""

    __slots__ = ("count", "values")

    def __init__(self) -> None:
        self.count = 0
        self.values: weakref.WeakKeyDictionary[_Holder, Any] = weakref.WeakKeyDictionary()


class _Arguments:
    """The arguments of a checkpointed call: tensors as the graph saves them, others as they are."""

    __slots__ = ("kept", "kwargs", "where")

    def __init__(self, args: tuple[Any, ...], kwargs: dict[str, Any], where: Place | None) -> None:
        self.kept = [Saved(one, None) if isinstance(one, Tensor) else one for one in args]
        self.kwargs = kwargs
        self.where = where

    def place(self) -> str | None:
        return None if self.where is None else str(self.where)

    def get(self) -> list[Any]:
        return [one.unpack(self) if isinstance(one, Saved) else one for one in self.kept]


def _metadata(tensor: Any) -> dict[str, Any]:
    return {"shape": tensor.shape, "dtype": tensor.dtype, "device": tensor.device}


_determinism_checks: dict[str, Callable[[Any], Any]] = {"default": _metadata, "none": lambda tensor: None}


_group: ContextVar[GraphExecGroup | None] = ContextVar("graph_exec_group", default=None)


class GraphExecGroup:
    """A block whose backwards share what checkpoints recompute: each is run once, for parts of the graph that do not overlap."""

    def __enter__(self) -> Self:
        if _group.get() is not None:
            raise RuntimeError(f"GraphExecGroup contexts cannot be nested. Already inside group {_group.get()}")
        _group.set(self)
        return self

    def __exit__(self, *exc: object) -> None:
        _group.set(None)

    @classmethod
    def _get_current_group(cls) -> GraphExecGroup | None:
        return _group.get()


_get_graph_exec_group, _set_graph_exec_group = _group.get, _group.set  # torch's names, of its C++ module


class _Frame:
    """One checkpointed call."""

    __slots__ = (
        "arguments", "autocast", "complete", "context", "device", "early_stop", "extract", "function", "holders",
        "ignore_mismatch", "metadata", "random", "runs", "seen", "transforms",
    )  # fmt: skip

    def __init__(
        self,
        function: Any,
        arguments: _Arguments,
        random: Any,
        context: Any,
        extract: Any,
        early_stop: bool,
        seen: bool,
    ) -> None:
        self.function = function
        self.arguments = arguments
        self.random = random
        self.context = context
        self.extract = extract
        self.early_stop = early_stop
        mode = current_mode()
        self.transforms, self.autocast = mode.transforms, mode.autocast
        self.seen = seen
        self.device: AbstractContextManager[Any] = chosen_device() or nullcontext()
        self.complete = False  # whether the first run has returned
        self.ignore_mismatch = False  # a backward inside the first run: more will be saved than is now
        self.holders: list[weakref.ref[_Holder]] = []
        self.metadata: list[Any] = []
        self.runs: weakref.WeakKeyDictionary[Any, _Run] = weakref.WeakKeyDictionary()

    def pack(self, tensor: Any) -> _Holder:
        """Take note of a tensor of the first run."""
        holder = _Holder(len(self.holders))
        self.holders.append(weakref.ref(holder))
        self.metadata.append(self.extract(tensor))
        return holder

    def unpack(self, holder: _Holder) -> Any:
        """Return a tensor, recomputing all of them at the first call of a backward."""
        group = _group.get()
        task = engine_state.task if group is None else group
        run = None if task is None else self.runs.get(task)
        if run is None:
            run = _Run()
            self._recompute(run)
            self._compare(run)
            if task is not None:
                self.runs[task] = run
        if holder not in run.values:
            overlap = (
                "Performing two backward calls that overlap (i.e. require the same saved activation in order to compute "
                "gradients) is not allowed while under the torch.utils.checkpoint.GraphExecGroup context. "
            )
            raise CheckpointError(
                "torch.utils.checkpoint: Unpack is being triggered for a tensor that was already unpacked "
                f"once. {'' if group is None else overlap}If you are calling ctx.saved_tensors in backward, make sure to do so only once."
            )
        tensor = run.values.pop(holder)[0]
        storage_of(tensor)  # versions of its own: its place in the graph belongs to other memory
        return tensor

    def _recompute(self, run: _Run) -> None:
        def pack(tensor: Any) -> Any:
            number = run.count
            run.count += 1
            if number >= len(self.holders):
                if not self.complete:
                    self.ignore_mismatch = True
                    return tensor
                raise CheckpointError(
                    "torch.utils.checkpoint: trying to save more tensors during recomputation than during "
                    f"the original forward pass.\n{_DEBUG_TIP}"
                )
            holder = self.holders[number]()
            if holder is not None:
                run.values[holder] = (tensor, self.extract(tensor))
            if self.early_stop and run.count == len(self.holders):
                raise _StopRecomputationError
            return tensor

        arguments = self.arguments.get()
        mode = current_mode()
        changes: dict[str, Any] = {"grad": True, "inference": False, "saved_hooks": (*mode.saved_hooks, (pack, _same))}
        try:
            with (
                _random_state(self.random),
                using(transforms=self.transforms, autocast=self.autocast, **changes),
                _seen_or_not(self.seen),
                self.context,
                self.device,
            ):
                self.function(*arguments, **self.arguments.kwargs)
        except _StopRecomputationError as stop:
            stop.__traceback__ = None  # its frames hold what was computed

    def _compare(self, run: _Run) -> None:
        """Raise if the second run saved other tensors than the first."""
        if self.ignore_mismatch:
            return
        if run.count != len(self.holders):
            raise CheckpointError(
                "torch.utils.checkpoint: A different number of tensors was saved during the original forward "
                f"and recomputation.\nNumber of tensors saved during forward: {len(self.holders)}\nNumber of "
                f"tensors saved during recomputation: {run.count}.\n{_DEBUG_TIP}"
            )
        different = ""
        for holder in sorted(run.values, key=lambda one: one.number):
            before, now = self.metadata[holder.number], run.values[holder][1]
            if before != now:
                different += (
                    f"tensor at position {holder.number}:\nsaved metadata: {before}\nrecomputed metadata: {now}\n"
                )
        if different:
            raise CheckpointError(
                "torch.utils.checkpoint: Recomputed values for the following tensors have different metadata "
                f"than during the forward pass.\n{different}.\n{_DEBUG_TIP}"
            )


def _same(tensor: Any) -> Any:
    return tensor


def _seen_or_not(seen: bool) -> AbstractContextManager[Any]:
    """Run a block in modes or in none: what modes see saves other values than what none sees, and both runs must save the same."""
    if seen == bool(current_mode().dispatch_modes):
        return nullcontext()
    if not seen:
        return using(dispatch_modes=())
    from ._python_dispatch import BaseTorchDispatchMode

    return BaseTorchDispatchMode()


def _checkpoint_frames(
    function: Any,
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    preserve: bool,
    context_fn: ContextFn,
    determinism_check: str,
    debug: bool,
    early_stop: bool,
    where: Place | None,
) -> Any:
    """Run a function whose saved tensors are recomputed. See Note [Checkpointing without reentrance]."""
    on_error: Any = None
    if _debug.or_else(debug):
        if context_fn is not noop_context_fn:
            raise ValueError("debug=True is incompatible with non-default context_fn")
        context_fn, on_error = debug_contexts()
    if determinism_check not in _determinism_checks:
        raise ValueError(f"determinism_check should be one of {list(_determinism_checks)}, but got {determinism_check}")
    forward_context, recompute_context = context_fn()
    mode = current_mode()
    if not mode.grad:
        return function(*args, **kwargs)
    if mode.saved_hooks_disabled is not None:
        raise RuntimeError(mode.saved_hooks_disabled)
    contexts = forward_context, recompute_context
    seen = bool(mode.dispatch_modes) or any(hasattr(one, "__torch_dispatch__") for one in contexts)
    frame = _Frame(
        function,
        _Arguments(args, kwargs, where),
        _state_now() if preserve else None,
        recompute_context,
        _determinism_checks[determinism_check],
        _early_stop.or_else(early_stop),
        seen,
    )
    unpack = frame.unpack if on_error is None else _explained(frame.unpack, on_error)
    result: Any = _same  # stands for: nothing was returned
    hooks = (*mode.saved_hooks, (frame.pack, unpack))
    with using(saved_hooks=hooks), _seen_or_not(seen), forward_context:
        result = function(*args, **kwargs)
    if result is _same:
        raise RuntimeError(
            "torch.utils.checkpoint: the forward context provided by context_fn suppressed an exception "
            "raised during the checkpointed forward. This is not supported because checkpoint cannot return "
            "a value for a failed forward."
        )
    frame.complete = True
    return result


def _explained(unpack: Callable[[Any], Any], on_error: Callable[[], str]) -> Callable[[Any], Any]:
    """Unpack; on an error, say which operations ran."""

    def explained(holder: Any) -> Any:
        try:
            return unpack(holder)
        except CheckpointError as error:
            raise CheckpointError(on_error()) from error

    return explained


_POLICIES = (
    "CheckpointPolicy",
    "SAC_IGNORED_OPS",
    "SelectiveCheckpointContext",
    "create_selective_checkpoint_contexts",
)
set_all(globals(), *_POLICIES)
