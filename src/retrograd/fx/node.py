"""`Node`: one step of a graph, with its arguments and those who use it."""

from __future__ import annotations

import builtins
import inspect
import types
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from .._signatures import signature
from .._tracebacks import guard_methods
from ..overrides import resolve_name
from .immutable_collections import immutable_dict, immutable_list

if TYPE_CHECKING:
    from .graph import Graph

Target = Callable[..., Any] | str
Argument = Any
BaseArgumentTypes = Any
OPERATIONS = ("placeholder", "call_method", "call_module", "call_function", "get_attr", "output", "root")

_side_effectful_functions: set[Callable[..., Any]] = set()
base_types = (str, int, float, bool, complex)


def has_side_effect(fn: Callable[..., Any]) -> Callable[..., Any]:
    """Declare that calls of a function stay, even if nobody uses what they give."""
    _side_effectful_functions.add(fn)
    return fn


def map_aggregate(a: Any, fn: Callable[[Any], Any]) -> Any:
    """Apply a function to each leaf of nested tuples, lists, dictionaries and slices; keep their kinds, immutable."""
    if isinstance(a, tuple):
        mapped = [map_aggregate(each, fn) for each in a]
        return type(a)(*mapped) if hasattr(a, "_fields") else tuple(mapped)
    if isinstance(a, list):
        return immutable_list([map_aggregate(each, fn) for each in a])
    if isinstance(a, dict):
        return immutable_dict({key: map_aggregate(value, fn) for key, value in a.items()})
    if isinstance(a, slice):
        return slice(map_aggregate(a.start, fn), map_aggregate(a.stop, fn), map_aggregate(a.step, fn))
    return fn(a)


def map_arg(a: Any, fn: Callable[[Node], Any]) -> Any:
    """Apply a function to each node among nested arguments."""
    if not callable(fn):
        raise AssertionError("torch.fx.map_arg(a, fn): fn must be a callable")
    return map_aggregate(a, lambda x: fn(x) if isinstance(x, Node) else x)


def boundary(nodes: list[Node]) -> tuple[list[Node], list[Node]]:
    """Return the nodes that some take from elsewhere, each once, and those among them that others use."""
    inside = set(nodes)
    inputs = dict.fromkeys(given for node in nodes for given in node.all_input_nodes if given not in inside)
    return list(inputs), [node for node in nodes if any(user not in inside for user in node.users)]


class Node:
    """One step of a `Graph`.

    `op` is one of placeholder, get_attr, call_function, call_method, call_module and output; `target` is what is called or read;
    `args` and `kwargs` hold nodes and constants. `users` has the nodes that take this one as an argument.
    """

    def __init__(
        self,
        graph: Graph,
        name: str,
        op: str,
        target: Target,
        args: tuple[Argument, ...],
        kwargs: dict[str, Argument],
        return_type: Any = None,
    ) -> None:
        if op not in OPERATIONS:
            raise AssertionError(f"Unknown op: {op}")
        if op == "call_function":
            if not callable(target):
                raise ValueError(
                    f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a Callable is expected"
                )
        elif not isinstance(target, str):
            raise ValueError(
                f"Node [graph = {graph}, name = '{name}'] target {target} has type {type(target)} but a str is expected"
            )
        self.graph = graph
        self.name = name
        self.op = op
        self.target: Any = target
        self.users: dict[Node, None] = {}
        self._input_nodes: dict[Node, None] = {}
        self._prev: Node = self
        self._next: Node = self
        self._erased = False
        self._repr_fn: Callable[[Node], str] | None = None
        self.type = return_type
        self.meta: dict[str, Any] = {}
        self._args: tuple[Argument, ...] = ()
        self._kwargs: dict[str, Argument] = {}
        self._update_args_kwargs(args, kwargs)

    # Where it stands

    @property
    def next(self) -> Node:
        """The node after this one."""
        return self._next

    @property
    def prev(self) -> Node:
        """The node before this one."""
        return self._prev

    def prepend(self, x: Node) -> None:
        """Move a node to the place before this one."""
        if self.graph is not x.graph:
            raise AssertionError("Attempting to move a Node into a different Graph")
        if self is x:
            return  # torch says so only in its log
        x._remove_from_list()
        x._prev, x._next = self._prev, self
        self._prev._next = x
        self._prev = x

    def append(self, x: Node) -> None:
        """Move a node to the place after this one."""
        if self._next is not x:
            self._next.prepend(x)

    def _remove_from_list(self) -> None:
        self._prev._next, self._next._prev = self._next, self._prev

    def _is_before(self, other: Node) -> bool:
        node = self._next
        while node.op != "root":
            if node is other:
                return True
            node = node._next
        return False

    def __lt__(self, other: Node) -> bool:
        return self._is_before(other)

    def __gt__(self, other: Node) -> bool:
        return other._is_before(self)

    def __le__(self, other: Node) -> bool:
        return self is other or self < other

    def __ge__(self, other: Node) -> bool:
        return self is other or self > other

    # What it takes

    @property
    def args(self) -> tuple[Argument, ...]:
        """The positional arguments."""
        return self._args

    @args.setter
    def args(self, args: tuple[Argument, ...]) -> None:
        self._update_args_kwargs(args, self._kwargs)

    @property
    def kwargs(self) -> dict[str, Argument]:
        """The arguments by keyword."""
        return self._kwargs

    @kwargs.setter
    def kwargs(self, kwargs: dict[str, Argument]) -> None:
        self._update_args_kwargs(self._args, kwargs)

    def _update_args_kwargs(self, args: tuple[Argument, ...], kwargs: dict[str, Argument]) -> None:
        """Take new arguments; who uses whom follows."""
        for old in self._input_nodes:
            old.users.pop(self, None)
        self._input_nodes = {}

        def note(node: Node) -> Node:
            self._input_nodes.setdefault(node)
            node.users.setdefault(self)
            return node

        self._args = map_arg(tuple(args), note)
        self._kwargs = map_arg(dict(kwargs), note)

    @property
    def all_input_nodes(self) -> list[Node]:
        """The nodes among the arguments, each once."""
        return list(self._input_nodes)

    def update_arg(self, idx: int, arg: Argument) -> None:
        """Replace one positional argument."""
        args = list(self.args)
        args[idx] = arg
        self.args = tuple(args)

    def insert_arg(self, idx: int, arg: Argument) -> None:
        """Put an argument before the one at `idx`."""
        if not 0 <= idx <= len(self.args):
            raise AssertionError("insert_args index must be between 0 and len(self.args)")
        self.args = (*self.args[:idx], arg, *self.args[idx:])

    def update_kwarg(self, key: str, arg: Argument) -> None:
        """Replace one argument by keyword."""
        self.kwargs = {**self.kwargs, key: arg}

    def replace_input_with(self, old_input: Node, new_input: Node) -> None:
        """Take another node wherever one stands among the arguments."""

        def choose(node: Node) -> Node:
            return new_input if node is old_input else node

        _announce_replacement(self, old_input, new_input)
        self._update_args_kwargs(map_arg(self.args, choose), map_arg(self.kwargs, choose))

    def replace_all_uses_with(
        self,
        replace_with: Node,
        delete_user_cb: Callable[[Node], bool] = lambda user: True,
        *,
        propagate_meta: bool = False,
    ) -> list[Node]:
        """Let all users of this node take another one; return those users."""
        if propagate_meta:
            if replace_with.meta:
                raise AssertionError(
                    "Called node.replace_all_uses_with(replace_with, propagate_meta=True), but replace_with already has .meta keys"
                )
            replace_with.meta.update(self.meta)
        changed = [user for user in list(self.users) if delete_user_cb(user)]
        for user in changed:
            user.replace_input_with(self, replace_with)
        return changed

    def is_impure(self, impure_random: bool = True) -> bool:
        """Whether the node stays even if nobody uses it."""
        if self.op in ("placeholder", "output"):
            return True
        if self.op == "call_function":
            name = getattr(self.target, "__name__", "")
            is_random = impure_random and name in RANDOM_FUNCTIONS
            return is_random or name in ALWAYS_KEPT or self.target in _side_effectful_functions
        if self.op == "call_module":
            module = self.graph.owning_module
            if module is None:
                raise AssertionError("self.graph.owning_module not set for purity check")
            called = module.get_submodule(str(self.target))
            if called is None:
                raise AssertionError(f"Did not find expected submodule target {self.target}")
            return getattr(called, "_is_impure", False)
        return False

    def normalized_arguments(
        self,
        root: Any,
        arg_types: tuple[Any, ...] | None = None,
        kwarg_types: dict[str, Any] | None = None,
        normalize_to_only_use_kwargs: bool = False,
    ) -> Any:
        """Return the arguments in the order and by the names of the signature, or None if nobody knows it."""
        from .operator_schemas import normalize_function, normalize_module

        if self.op == "call_function":
            return normalize_function(
                self.target, self.args, self.kwargs, arg_types, kwarg_types, normalize_to_only_use_kwargs
            )
        if self.op == "call_module":
            return normalize_module(root, self.target, self.args, self.kwargs, normalize_to_only_use_kwargs)
        return None

    @property
    def stack_trace(self) -> str | None:
        """Where the user's program made this node, if the tracer recorded it."""
        return self.meta.get("stack_trace")

    @stack_trace.setter
    def stack_trace(self, trace: str | None) -> None:
        self.meta["stack_trace"] = trace

    def _rename(self, candidate: str) -> None:
        if candidate == self.name:
            return
        self.name = self.graph._graph_namespace.create_name(candidate, None)
        self.graph._graph_namespace._rename_object(self, self.name)

    # Words

    def __repr__(self) -> str:
        return self._repr_fn(self) if self._repr_fn else self.name

    @staticmethod
    def _pretty_print_target(target: Any) -> str:
        if isinstance(target, str):
            return target
        if getattr(target, "__module__", None) == "builtins":
            return f"builtins.{target.__name__}"
        if getattr(target, "__module__", None) == "_operator":
            return f"operator.{target.__name__}"
        return _get_qualified_name(target)

    def format_node(
        self,
        placeholder_names: list[str] | None = None,
        maybe_return_typename: list[str] | None = None,
        *,
        include_tensor_metadata: bool = False,
    ) -> str | None:
        """Write the node as a line of the graph's text."""
        if self.op == "placeholder" and placeholder_names:
            placeholder_names.append(f"{self.target}{'' if self.type is None else f': {_type_repr(self.type)}'}")
            return None
        if self.op == "output":
            if self.type and maybe_return_typename:
                maybe_return_typename[0] = f" -> {_type_repr(self.type)}"
            return f"return {self.args[0]}"
        kind = "" if self.type is None else f"{_type_repr(self.type)} "
        target = self._pretty_print_target(self.target)
        line = f"%{self.name} : {kind}[num_users={len(self.users)}] = {self.op}[target={target}]"
        if self.op == "placeholder":
            return f"{line}(default={self.args[0]})" if self.args else line
        if self.op == "get_attr":
            return line
        return f"{line}(args = {_format_arg(self.args)}, kwargs = {_format_arg(self.kwargs)})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_repr_fn": None}


# Calls that draw random numbers, check something or change what is not a tensor mean something even if nobody uses the result.
RANDOM_FUNCTIONS = frozenset(
    """rand randn randint randperm rand_like randn_like randint_like bernoulli multinomial normal poisson dropout
    alpha_dropout feature_dropout feature_alpha_dropout native_dropout rrelu""".split()  # noqa: SIM905
)
ALWAYS_KEPT = frozenset(
    ["_assert", "_assert_async", "_set_grad_enabled", "_enter_autocast", "_exit_autocast", "setitem", "_assert_is_none"]
)


def _announce_replacement(user: Node, old: Node, new: Node) -> None:
    module = user.graph.owning_module
    for hook in getattr(module, "_replace_hooks", ()):
        hook(old=old, new=new.name, user=user)


def _type_repr(obj: Any) -> str:
    """Return the name of a type as it stands in an annotation."""
    if isinstance(obj, type) and not isinstance(obj, types.GenericAlias):
        return _class_name(obj)
    if obj is ...:
        return "..."
    if isinstance(obj, types.FunctionType):
        return obj.__name__
    return repr(obj)


def _class_name(kind: type) -> str:
    if kind.__module__ == "builtins":
        return kind.__qualname__
    return f"{_torchs(kind.__module__)}.{kind.__qualname__}"


def _torchs(module: str) -> str:
    """Return a module's name as torch's programs write it: classes of ours are torch's, by their public home."""
    first, _, rest = module.partition(".")
    if first != "retrograd":
        return module
    public = []
    for part in rest.split("."):
        if part.startswith("_") or part == "tensor":
            break
        public.append(part)
    return ".".join(["torch", *filter(None, public)])


def _format_arg(arg: Any, max_list_len: float = float("inf")) -> str:
    if hasattr(arg, "_custom_fx_repr_fn"):
        return str(arg._custom_fx_repr_fn())
    if isinstance(arg, (list, tuple)):
        opening, closing = ("[", "]") if isinstance(arg, list) else ("(", ")")
        shown = [_format_arg(each) for each in arg[: int(min(len(arg), max_list_len))]]
        if len(arg) > max_list_len:
            shown.append(f"...[total_len={len(arg)}]")
        comma = "," if isinstance(arg, tuple) and len(arg) == 1 else ""
        return f"{opening}{', '.join(shown)}{comma}{closing}"
    if isinstance(arg, dict):
        return "{" + ", ".join(f"{key}: {_format_arg(value)}" for key, value in arg.items()) + "}"
    return f"%{arg}" if isinstance(arg, Node) else str(arg)


def _as_written_in_c(public: str) -> str:
    """Return where torch has a function of nn.functional that is not written in Python."""
    space, _, name = public.rpartition(".")
    known = signature(name) if space == "torch.nn.functional" and signature(public[len("torch.") :]) is None else None
    return public if known is None or known.binder == "python" else f"torch._C._nn.{known.name}"


def _get_qualified_name(func: Callable[..., Any]) -> str:
    """Return the dotted name by which a program reaches a function."""
    name = getattr(func, "__name__", None)
    if name is not None and getattr(builtins, name, None) is func:
        return str(name)
    if getattr(func, "namespace", None) == "higher_order":
        return f"torch.ops.higher_order.{name}"
    if isinstance(func, (types.MethodDescriptorType, types.WrapperDescriptorType)):
        return f"{func.__objclass__.__module__}.{func.__objclass__.__name__}.{name}"
    first = (getattr(func, "__module__", None) or "").split(".")[0]
    public = resolve_name(func) if first in ("retrograd", "torch") else None
    if public is not None:
        return _as_written_in_c(public)
    if name is None:
        raise RuntimeError(f"Attempted to get the name of {func!r}, which has none")
    module = inspect.getmodule(func)
    home = func.__module__ if getattr(func, "__module__", None) else (module.__name__ if module else "")
    if home in ("retrograd._checks", "retrograd.fx._symbolic_trace"):
        return f"torch.{'' if home.endswith('_checks') else 'fx._symbolic_trace.'}{name}"
    return f"{_torchs(home).replace('torch._ops', 'torch.ops')}.{name}"  # as programs name operations


guard_methods(Node)
