"""torch.fx.experimental.proxy_tensor: traces at the level of torch's operations.

A mode runs every operation on real tensors (or on ones without numbers) and records it. Tensors are known by their arrays, which views,
writes and `detach` leave as they are: so what autograd and `func.grad` make of a tensor is known, too.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Sequence
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np

from ... import nn, return_types
from ..._absent import finder
from ..._core.arrays import Batched, LevelArray, highest_level, levels_of, raw_leaf
from ..._core.levels import DUAL
from ..._modes import current_mode, using
from ..._public import set_all
from ..._tracebacks import hide as _hide
from ...ops import aten
from ...tensor import Tensor
from ...tensor._base import materialise, signed_types, stored, wrap
from ...utils import _pytree as pytree
from ...utils._python_dispatch import TorchDispatchMode, _disable_current_modes
from .._symbolic_trace import PH, Tracer
from ..graph_module import GraphModule
from ..proxy import Proxy
from ._batched_operations import gives_many, physical, taken_apart, written_at

__getattr__ = finder("torch.fx.experimental.proxy_tensor")


CURRENT_DECOMPOSITION_TABLE: dict[Any, Any] = {}
NO_VALUE = (
    "It appears that you're trying to get value out of a tracing tensor with {op} - erroring out! It's likely that this is caused by "
    "data-dependent control flow or similar.  It may be possible to trace this with dynamic shapes; try setting "
    "tracing_mode='symbolic' in your make_fx call."
)


class PythonKeyTracer(Tracer):
    """Makes nodes of operations; modules are looked through, and tensors that come from outside become attributes."""

    def __init__(self) -> None:
        super().__init__(autowrap_modules=())
        self.known: dict[Any, tuple[Any, Proxy]] = {}  # by the array, which is kept so that no other has its place
        self.unseen: dict[
            Any, tuple[Any, str]
        ] = {}  # what was computed from known tensors beside all operations, and by what

    def call_module(self, m: Any, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        return forward(*args, **kwargs)

    def getattr(self, attr: str, attr_val: Any, parameter_proxy_cache: Any) -> Any:
        return attr_val

    def create_arg(self, a: Any) -> Any:
        if isinstance(a, nn.Parameter):
            for name, own in self.root.named_parameters():
                if a is own:
                    return self.create_node("get_attr", name, (), {})
            return self._constant(a, "_param_constant")
        if isinstance(a, tuple) and type(a).__module__.rpartition(".")[2] == "return_types":
            a = tuple(a)  # as which torch's pass through programs
        return super().create_arg(a)

    def find(self, tensor: Any) -> Proxy | None:
        """Return what stands for a tensor."""
        found = self.known.get(_identity(tensor))
        return None if found is None else found[1]

    def standing_for(self, tensor: Any) -> Any:
        """Return what stands for a tensor, or the tensor: one from outside."""
        found = self.find(tensor)
        if found is None and _identity(tensor) in self.unseen:
            raise NotImplementedError(
                f"make_fx: the program computes a tensor of shape {tuple(tensor.shape)} ({self.unseen[_identity(tensor)][1]}) by no "
                "operation that the trace sees, so it would be a constant of the graph\nHint: trace what comes before and after it."
            )
        return tensor if found is None else found

    def track(self, value: Any, proxy: Any) -> None:
        """Note what stands for a tensor, or for each of a sequence of them."""
        if isinstance(value, Tensor):
            if type(value) not in signed_types:
                materialise(value)  # else it would get another array when somebody shares its memory
            self.known[_identity(value)] = stored(value), proxy
            proxy.node.meta["val"] = value
            proxy.node.meta["tensor_meta"] = None
        elif isinstance(value, (tuple, list)):
            for at, one in enumerate(value):
                self.track(one, proxy[at])


def _identity(tensor: Any) -> Any:
    """Return what tells a tensor from others: its array, and of a view of conjugates or negatives that it is one."""
    return id(stored(tensor)), type(tensor) if type(tensor) in signed_types else None


class _Watch:
    """Looks at what is computed while a trace runs, and notes what no operation stands for. See `_record.run_under`."""

    def __init__(self, tracer: PythonKeyTracer) -> None:
        self.tracer = tracer
        self.by: str | None = None
        self.given: set[Any] = set()

    def __call__(self, primitive: Any, name: str | None, args: Sequence[Any], compute: Callable[[], Any]) -> Any:
        out = compute()
        self.by = None
        if current_mode().dispatch_modes:  # else it is an operation that is being computed
            self.given = {_identity(part) for one in args if isinstance(one, Tensor) for part in _parts(one)}
            if not self.given.isdisjoint(self.tracer.known) or not self.given.isdisjoint(self.tracer.unseen):
                self.by = str(getattr(primitive, "name", primitive))
        return out

    def made(self, tensors: Sequence[Any]) -> None:
        """Note the results of what was computed last, as far as they are no arguments."""
        if self.by is not None:
            for part in (part for one in tensors for part in _parts(one)):
                if _identity(part) not in self.given:
                    self.tracer.unseen[_identity(part)] = stored(part), self.by


class ProxyTorchDispatchMode(TorchDispatchMode):
    """Records every operation."""

    sees_samples = True

    def __init__(
        self,
        tracer: PythonKeyTracer,
        tracing_mode: str = "real",
        pre_dispatch: bool = False,
        _allow_fake_constant: bool = False,
        _error_on_data_dependent_ops: bool = True,
        decomposition_table: Any = None,
    ) -> None:
        super().__init__()
        self.tracer = tracer
        self.tracing_mode = tracing_mode
        self.enable_tracing = True
        self.decomposition_table = decomposition_table or {}
        self._views_of_duals: list[Any] = []
        self._without_numbers: dict[Any, tuple[Any, Any]] = {}

    @property
    def is_fake(self) -> bool:
        return self.tracing_mode != "real"

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        if not self.enable_tracing:
            return func(*args, **kwargs)
        if func in self.decomposition_table:
            with self:
                result = self.decomposition_table[func](*args, **kwargs)
            if result is not NotImplemented:
                return result
        leveled = [one for one in pytree.tree_leaves((args, kwargs)) if _has_level(one)]
        if leveled:
            return self._batched(func, args, kwargs, leveled)
        return self._recorded(func, args, kwargs)

    def _batched(self, func: Any, args: Any, kwargs: Any, leveled: list[Any]) -> Any:
        """Record an operation on the samples of a vmap, or on duals, as one on plain tensors."""
        found = physical(func, args, kwargs, leveled)
        if found is not None:
            level, op, args, kwargs = found
            out = self._recorded(op, args, kwargs)
            return pytree.tree_map_only(Tensor, lambda one: wrap(Batched(level, one._array)), out)
        if func is aten._local_scalar_dense.default:
            raise RuntimeError(NO_VALUE.format(op=func))
        written = [args[written_at(func)]] if func._schema.is_mutable else []
        if any(level.kind == DUAL for one in leveled for level in levels_of(one._array)):
            self._follow_memory(func, args, written)
        op, given, put_back = taken_apart(func, args, kwargs, leveled)
        top = highest_level([one._array for one in leveled])
        if written and getattr(written[0]._array, "level", None) is not top:
            raise NotImplementedError(
                f"make_fx: {func} writes samples of a vmap, or duals, into what is none, which is not recorded\nHint: write it "
                "without writing in place."
            )
        out = self.__torch_dispatch__(op, (), tuple(given))
        if written and isinstance(array := written[0]._array, Batched):
            proxy = self.tracer.find(out[0])
            if proxy is not None:  # it stands for the memory of the batch from now on
                self.tracer.track(wrap(array.array), proxy)
            return written[0]
        if written:
            for part, value in zip((array.primal, array.tangent), (out[0], out[len(out) // 2]), strict=True):
                self.__torch_dispatch__(aten.copy_.default, (), (wrap(part), value))
            return written[0]
        made, is_many = put_back(out), gives_many(func, op)
        named = getattr(return_types, func._overloadpacket.__name__, None)
        if is_many and named is not None and len(named._fields) == len(made):
            return named(*made)
        return made if is_many else made[0]

    def _follow_memory(self, func: Any, args: Any, written: list[Any]) -> None:
        """Refuse a write into duals of which there are views: a view's tangent has memory of its own here."""
        if func.is_view:
            self._views_of_duals.append(raw_leaf(args[0]._array))
        for one in written:
            if any(np.may_share_memory(raw_leaf(one._array), other) for other in self._views_of_duals):
                raise NotImplementedError(
                    f"make_fx: {func} writes into duals of which there are views, which is not recorded\nHint: write it without "
                    "writing in place."
                )

    def _recorded(self, func: Any, args: Any, kwargs: Any) -> Any:
        tracer = self.tracer
        if func is aten._local_scalar_dense.default and tracer.find(args[0]) is not None:
            raise RuntimeError(NO_VALUE.format(op=func))
        if func is aten.lift_fresh.default and tracer.find(args[0]) is None:
            out = args[0]
            proxy = tracer.create_proxy(
                "call_function", aten.lift_fresh_copy.default, (out,), {}, name="lift_fresh_copy"
            )
            tracer.track(out, proxy)
            return out
        own, named = pytree.tree_map_only(Tensor, tracer.standing_for, (args, kwargs))
        proxy = tracer.create_proxy(
            "call_function", func, own, named, name=tracer.graph._target_to_str(func._overloadpacket.__name__)
        )
        out = self._run(func, args, kwargs)
        tracer.track(out, proxy)
        return out

    def _run(self, func: Any, args: Any, kwargs: Any) -> Any:
        if not self.is_fake:
            return func(*args, **kwargs)
        args, kwargs = pytree.tree_map_only(Tensor, self.without_numbers, (args, kwargs))
        if kwargs.get("device") is not None:
            kwargs = {**kwargs, "device": "meta"}
        return func(*args, **kwargs)

    def without_numbers(self, tensor: Any) -> Any:
        """Return a tensor that looks like another."""
        if tensor.is_meta:
            return tensor
        found = self._without_numbers.get(_identity(tensor))
        if found is None:
            found = self._without_numbers[_identity(tensor)] = stored(tensor), tensor.detach().to("meta")
        return found[1]


def _has_level(value: Any) -> bool:
    return isinstance(value, Tensor) and isinstance(value._array, LevelArray)


def _parts(tensor: Any) -> list[Any]:
    """Return the plain tensors that a batch, or a dual, is made of."""
    array = tensor._array
    if not isinstance(array, LevelArray):
        return [tensor]
    inner = [array.array] if isinstance(array, Batched) else [array.primal, array.tangent]  # type: ignore[attr-defined]
    return [part for one in inner for part in _parts(wrap(one))]


def get_proxy_mode() -> ProxyTorchDispatchMode | None:
    """Return the trace of operations that is being recorded, None if there is none."""
    for mode in reversed(current_mode().dispatch_modes):
        if isinstance(mode, ProxyTorchDispatchMode):
            return mode
    return None


def get_proxy_slot(
    obj: Any, tracer: PythonKeyTracer, default: Any = ..., transform: Callable[[Any], Any] = lambda x: x
) -> Any:
    """Return what stands for a tensor in a trace."""
    found = tracer.find(obj)
    if found is None:
        if default is ...:
            raise KeyError(f"{obj} is not tracked with proxy for {tracer}")
        return default
    return transform(found)


def track_tensor_tree(inner_res: Any, proxy_res: Any, *, constant: Any = None, tracer: PythonKeyTracer) -> Any:
    """Note what stands for the tensors of a result."""
    tracer.track(inner_res, proxy_res)
    return inner_res


class _ProxyTensor(NamedTuple):
    """What stands for a tensor, and its value if it is a constant."""

    proxy: Any
    constant: Any = None


_SymNodeDict = dict  # by symbols, of which there are none


def fetch_object_proxy(tracer: PythonKeyTracer, t: Any) -> Any:
    """Return what stands for a tensor in a trace, or the value itself."""
    found = tracer.find(t) if isinstance(t, Tensor) else None
    return t if found is None else _ProxyTensor(found)


def fetch_sym_proxy(tracer: PythonKeyTracer) -> Callable[[Any], Any]:
    """Return what gives the symbol of a size: the size itself."""
    return lambda size: size


@contextmanager
def disable_proxy_modes_tracing(enable_current: bool = False) -> Any:
    """Run a block that is not recorded."""
    mode = get_proxy_mode()
    if mode is None:
        yield None
        return
    before, mode.enable_tracing = mode.enable_tracing, False
    try:
        yield mode
    finally:
        mode.enable_tracing = before


@contextmanager
def maybe_disable_fake_tensor_mode() -> Any:
    """Run a block on tensors with numbers: here nothing is to be switched."""
    yield


@contextmanager
def decompose(decomposition_table: Any) -> Any:
    """Run a block in which traces replace operations by others."""
    global CURRENT_DECOMPOSITION_TABLE
    before, CURRENT_DECOMPOSITION_TABLE = CURRENT_DECOMPOSITION_TABLE, decomposition_table or {}
    try:
        yield CURRENT_DECOMPOSITION_TABLE
    finally:
        CURRENT_DECOMPOSITION_TABLE = before


def dispatch_trace(root: Callable[..., Any], tracer: PythonKeyTracer, concrete_args: Any = None) -> GraphModule:
    """Record a function, and make a module of what it did."""
    graph = tracer.trace(root, concrete_args)
    name = root.__class__.__name__ if isinstance(root, nn.Module) else getattr(root, "__name__", "GraphModule")
    return GraphModule(tracer.root, graph, name)


def _traced(f: Callable[..., Any], args: tuple[Any, ...], tracing_mode: str, decomposition_table: Any) -> GraphModule:
    """Run a function on arguments and record it."""
    tracer = PythonKeyTracer()
    table = {**CURRENT_DECOMPOSITION_TABLE, **(decomposition_table or {})}
    mode = ProxyTorchDispatchMode(tracer, tracing_mode, decomposition_table=table)
    values, spec = pytree.tree_flatten(args)
    if mode.is_fake:
        values = [_like(one, mode) if isinstance(one, Tensor) else one for one in values]
        args = pytree.tree_unflatten(values, spec)

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__", "__module__"), updated=())
    def wrapped(*proxies: Any) -> Any:
        for one, proxy in zip(values, pytree.tree_leaves(proxies), strict=True):
            if isinstance(one, Tensor):
                tracer.track(one, proxy)
        with mode, using(dispatch=_Watch(tracer)):
            out = f(*args)
        return pytree.tree_map_only(Tensor, tracer.standing_for, out)

    standing = pytree.tree_map(lambda _: PH, args)
    with _disable_current_modes():
        return dispatch_trace(_with_names(wrapped, f, len(args)), tracer, tuple(standing))


def _like(tensor: Any, mode: ProxyTorchDispatchMode) -> Any:
    made = mode.without_numbers(tensor)
    return made.requires_grad_() if tensor.requires_grad else made


def _with_names(wrapped: Callable[..., Any], f: Any, count: int) -> Callable[..., Any]:
    """Give a function the parameters of the one that is traced, as far as they are one for each argument."""
    try:
        parameters = list(inspect.signature(f).parameters.values())
    except (TypeError, ValueError):
        parameters = []
    names = [one.name for one in parameters if one.kind in (one.POSITIONAL_ONLY, one.POSITIONAL_OR_KEYWORD)][:count]
    if len(names) != count or any(one.kind is one.VAR_POSITIONAL for one in parameters):
        names = [f"arg{k}" for k in range(count)]
    from ..._generated import emit

    text = f"def forward({', '.join(names)}):\n    return wrapped({', '.join(names)})"
    return emit("a traced function", text, {"wrapped": wrapped})["forward"]  # type: ignore[no-any-return]


def make_fx(
    f: Callable[..., Any],
    decomposition_table: Any = None,
    tracing_mode: str = "real",
    _allow_non_fake_inputs: bool = False,
    *,
    pre_dispatch: bool = False,
    record_module_stack: bool = False,
    _allow_fake_constant: bool = False,
    _error_on_data_dependent_ops: bool = True,
    record_stack_traces: bool = False,
    **_: Any,
) -> Callable[..., GraphModule]:
    """Return a function that runs `f` on arguments and returns a module of the operations it did.

    `tracing_mode` "real" computes, "fake" only follows shapes; "symbolic" does as "fake": sizes are numbers here.
    """
    if tracing_mode not in ("real", "fake", "symbolic"):
        raise AssertionError(f"Unexpected tracing type: {tracing_mode}")

    @functools.wraps(f, assigned=("__name__", "__doc__"), updated=())
    def wrapped(*args: Any) -> GraphModule:
        try:
            return _traced(f, args, tracing_mode, decomposition_table)
        except Exception as error:
            _hide(error)
            raise

    return wrapped


def get_isolated_graphmodule(
    func: Callable[..., Any], args: Sequence[Any], kwargs: Any, tracing_mode: str = "real"
) -> GraphModule:
    """Trace a function by itself, whatever is being traced."""
    values, spec = pytree.tree_flatten((tuple(args), kwargs))

    def alone(*flat: Any) -> Any:
        own, named = pytree.tree_unflatten(list(flat), spec)
        return func(*own, **named)

    return make_fx(alone, tracing_mode=tracing_mode)(*values)


set_all(globals(), but="fetch_object_proxy fetch_sym_proxy")
