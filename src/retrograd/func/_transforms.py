"""grad, vjp, jvp and the Jacobians built from them.

Note [When a transform's result is differentiable]
Inside `grad` and `vjp`, gradients are on, and inference mode is off. A result stays in the graph only if somebody can ask
for its derivative: it depends on a tensor from outside that requires grad (the argument itself, or a captured one), and the
caller had gradients on. Whether that is so is seen in the graph, for each result: its edges lead to a leaf that is neither
one of the transform's own variables nor one of a transform that has ended.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import nullcontext
from typing import Any

import numpy as np

from .._core.arrays import levels_of, raw_leaf
from .._core.levels import DUAL, Level, Transform, running
from .._core.primitive import engine_state, raw_namespace, vocabulary
from .._graph.node import Node, Slot
from .._modes import current_mode, using
from .._places import user_place
from .._progress import steps
from .._tracebacks import guarded, hide
from ..autograd import gradients, make_seeds
from ..autograd.forward_ad import USE_REVERSE, check_dual, dual_of
from ..overrides import refuse_other_torch
from ..tensor import _base
from ..tensor._aliasing.entering import base_of, enter, entered, refuse_wrapper
from ..tensor._aliasing.leaving import out_of_variables, primal_of, tangent_of
from ..tensor._aliasing.views import sync_views
from ..tensor._base import LEAF, edge_of, wrap
from ..tensor._functions.creation import zeros_like
from ..tensor._functions.joining import stack
from ..tensor._functions.shape import alias
from ..tensor._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._vmap import vmap

Argnums = int | tuple[int, ...]


class _Outside:
    """Finds what depends on a tensor outside a transform. See Note [When a transform's result is differentiable]."""

    def __init__(self, transform: Transform, variables: list[Any], differentiable: bool) -> None:
        self.differentiable = differentiable
        self.transform = transform
        self.born = transform.born
        # What leads to a leaf outside, and what does not, by id; kept alive here, or another would get its id.
        self.open: dict[int, Any] = {}
        self.ended = {id(t): t for t in variables if isinstance(t, Tensor) and t._edge is LEAF}

    def needs(self, tensor: Any) -> bool:
        """Tell whether somebody outside can ask for the derivative of a tensor."""
        return self.differentiable and tensor._edge is not None and self._leads_out(edge_of(tensor))

    def _leads_out(self, edge: Any) -> bool:
        path: list[Any] = []  # the nodes from the first one to where the search stands,
        left = [iter((edge,))]  # and of each the edges not followed yet
        while left:
            for edge in left[-1]:
                node = edge.node if type(edge) is Slot else edge
                if node is None or id(node) in self.ended:
                    continue
                if isinstance(node, Node) and id(node) not in self.open:
                    path.append(node)
                    left.append(iter(node._edges))
                    break
                if isinstance(node, Node) or self._is_outside(node):
                    self.open.update((id(one), one) for one in path)
                    return True
                self.ended[id(node)] = node
            else:
                left.pop()
                if path:
                    node = path.pop()
                    self.ended[id(node)] = node
        return False

    def _is_outside(self, leaf: Any) -> bool:
        """Tell whether a leaf may get a gradient: not if it was made inside, or is a variable of an ended transform."""
        extra = leaf._extra
        if extra is None or (extra.transform is None and extra.born < self.born):
            return True
        return extra.transform is not None and bool(extra.transform.alive)

    def release(self, value: Any) -> Any:
        """Return a result outside: cut loose from the transform's own variables unless it needs an outer gradient."""
        if not isinstance(value, Tensor):
            return value
        shown = out_of_variables(value)
        if shown is not value or value._edge is None or base_of(value) is not value or self.needs(value):
            return shown
        return _beside(value, value._array, None, value._storage)

    def release_aux(self, aux: Any) -> Any:
        """Release the tensors of `aux`, which may hold nothing else."""
        _check_aux(aux)
        return tree_map(self.release, aux)


def _arguments(args: tuple[Any, ...], argnums: Argnums) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    settled = []
    for n in numbers:
        if not isinstance(n, int):
            raise RuntimeError(f"argnum must be int, got: {type(n)}")
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        settled.append(n % len(args))
    if len(set(settled)) != len(settled):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(settled)}")
    return tuple(settled)


def _slice_argnums(args: tuple[Any, ...], argnums: Argnums, as_tuple: bool = True) -> Any:
    """Return the arguments with some numbers."""
    numbers = _arguments(args, argnums)
    return args[numbers[0]] if isinstance(argnums, int) and not as_tuple else tuple([args[n] for n in numbers])


def _check_aux(aux: Any) -> None:
    for value in tree_flatten(aux)[0]:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")


def _without_aux(output: Any, has_aux: bool, call: str) -> tuple[Any, Any]:
    """Return the output of a function, and what else it returned, if anything."""
    if not has_aux:
        return output, None
    if not (isinstance(output, tuple) and len(output) == 2):
        raise RuntimeError(f"{call}: output of function f should be a tuple: (output, aux) if has_aux is True")
    return output


def _check_outputs(outs: list[Any], call: str) -> None:
    if not outs or (len(outs) == 1 and outs[0] is None):
        raise RuntimeError(f"{call}: Expected f to be a function that has non-empty output (got output = {outs})")
    for one in outs:
        if not isinstance(one, Tensor):
            raise RuntimeError(f"{call}: expected f(*primals) to return only tensors, got unsupported type {type(one)}")


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function, and its value.

    Args:
        func: a function whose result is a tensor with one element
        argnums: the number of the argument to differentiate by, or several
        has_aux: `func` returns its result and something else

    Example:
        >>> torch.func.grad_and_value(lambda x: x**2)(torch.tensor(3.0))
        (tensor(6.), tensor(9.))
    """

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            differentiable = current_mode().tracks
            place = user_place(1)
            with running("grad", grad=True, inference=False) as transform:
                numbers = _arguments(args, argnums)
                variable, others = _variables_of(transform, differentiable), _Others()
                inner = [tree_map(variable, arg) if n in numbers else others.show(arg) for n, arg in enumerate(args)]
                output = func(*inner, **(others.show(kwargs) if kwargs else kwargs))
                output, aux = _without_aux(output, has_aux, "grad_and_value(f)(*args)")
                _check_scalar(output)
                targets = [leaf for n in numbers for leaf in tree_flatten(inner[n])[0] if isinstance(leaf, Tensor)]
                outside = _Outside(transform, targets, differentiable)
                others.leave(outside)
                grads = _gradients([output], [None], targets, outside, place, retain=False)
                left = iter(grads)
                picked = [tree_map(lambda t: next(left) if isinstance(t, Tensor) else t, inner[n]) for n in numbers]
            result = picked[0] if isinstance(argnums, int) else tuple(picked)
            value = outside.release(output)
            if has_aux:
                return result, (value, outside.release_aux(aux))
            return result, value
        except Exception as error:
            hide(error)
            raise

    return wrapper


def _beside(tensor: Any, array: Any, edge: Any, storage: Any = None) -> Any:
    """Return another tensor with the array of one, and of its class where that computes, at a place in the graph."""
    if type(tensor) not in _base.dispatch_types:
        return wrap(array, edge, storage)
    made = tensor.detach()
    made._edge = edge
    return made


def _alias_edge(tensor: Any) -> Any:
    return (tensor.view(tensor.shape) if type(tensor) in _base.dispatch_types else alias(tensor))._edge


def _variables_of(transform: Transform, differentiable: bool) -> Callable[[Any], Any]:
    """Return what makes a variable of a tensor: an alias in its graph if it needs an outer gradient, else a leaf."""

    def make(tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            refuse_other_torch((tensor,))
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
        if tensor._array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        array = _base.materialise(tensor)
        storage = _base.storage_of(tensor)
        if storage.inference:
            storage = _base.Storage()  # inside, it is a normal tensor
        if differentiable and tensor._edge is not None:
            variable = enter(_beside(tensor, array, _alias_edge(tensor)), tensor, None)
        else:
            variable = enter(_beside(tensor, array, LEAF), tensor, None)
            variable._extra.transform = transform
        variable._storage = storage
        return variable

    return make


class _Others:
    """Arguments of a function that are no variables: inside, they may be written."""

    def __init__(self) -> None:
        self.edges: list[tuple[Any, Any]] = []

    def show(self, value: Any) -> Any:
        """Return what the function gets."""
        return self._enter(value) if isinstance(value, Tensor) else tree_map(self._enter, value)

    def _enter(self, value: Any) -> Any:
        if not isinstance(value, Tensor):
            return value
        edge = None if value._edge is None else _alias_edge(value)
        shown: Any = value
        while shown is not None:  # a write reaches what it shows, and so on
            base = base_of(shown)
            self.edges.append((base, base._edge))
            link = entered(base)
            shown = None if link is None else link.outer
        return enter(_beside(value, _base.materialise(value), edge), value, (vocabulary.alias, {}))

    def beside(self, numbers: tuple[int, ...], variables: Any, args: tuple[Any, ...]) -> list[Any]:
        """Return all arguments, of which some are variables."""
        given = dict(zip(numbers, variables, strict=True))
        return [given[n] if n in given else self.show(arg) for n, arg in enumerate(args)]

    def leave(self, outside: _Outside | None = None) -> None:
        """Cut tensors that were written loose from the transform's variables unless they need an outer gradient."""
        for tensor, edge in self.edges:
            needed = edge is not None if outside is None else outside.needs(tensor)
            if tensor._edge is not edge and not needed:
                tensor._edge = None
                if tensor._storage.views is not None:
                    sync_views(tensor._storage)


def _check_scalar(output: Any) -> None:
    if not isinstance(output, Tensor):
        raise RuntimeError(f"grad_and_value(f)(*args): Expected f(*args) to return a Tensor, got {type(output)}")
    if output._array.ndim != 0:
        raise RuntimeError(
            "grad_and_value(f)(*args): Expected f(*args) to return a scalar Tensor, got tensor with "
            f"{output._array.ndim} dims. Maybe you wanted to use the vjp or jacrev APIs instead?"
        )
    if output._array.dtype.kind == "c":
        raise RuntimeError(f"grad can be implicitly created only for real scalar outputs but got {output.dtype}")


def _gradients(
    outputs: list[Any], seeds: list[Any], targets: list[Any], outside: _Outside, place: Any, retain: bool
) -> list[Any]:
    """Pull seeds back to the transform's variables; zeros where nothing arrives."""
    followed = [(out, seed) for out, seed in zip(outputs, seeds, strict=True) if out._edge is not None]
    if not followed:
        return [zeros_like(t) for t in targets]
    used, seeds_given = zip(*followed, strict=True)
    roots = [edge_of(out) for out in used]
    given = make_seeds(used, seeds_given, False)
    keep = any(map(outside.needs, outputs)) or any(map(outside.needs, given))
    before, engine_state.asked_by = engine_state.asked_by, outside.transform
    try:
        found = gradients(roots, given, tuple(targets), keep, retain or keep, True, False, place)
    finally:
        engine_state.asked_by = before
    return [zeros_like(t) if g is None else outside.release(g) for t, g in zip(targets, found, strict=True)]


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function.

    Args:
        func: a function whose result is a tensor with one element
        argnums: the number of the argument to differentiate by, or several
        has_aux: `func` returns its result and something else

    Example:
        >>> torch.func.grad(torch.sin)(torch.tensor(0.0))
        tensor(1.)
        >>> torch.func.grad(torch.func.grad(lambda x: x**3))(torch.tensor(2.0))
        tensor(12.)
    """
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        try:
            gradient, value = both(*args, **kwargs)
            return (gradient, value[1]) if has_aux else gradient
        except Exception as error:
            hide(error)
            raise

    return wrapper


@guarded
def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)` and a function that computes vector-Jacobian products.

    Args:
        func: a function of tensors
        *primals: its arguments
        has_aux: `func` returns its result and something else

    Example:
        >>> out, pull_back = torch.func.vjp(lambda x: x**2, torch.tensor([1.0, 2.0]))
        >>> pull_back(torch.ones(2))
        (tensor([2., 4.]),)
    """
    differentiable = current_mode().tracks
    with running("vjp", grad=True, inference=False) as transform:
        inner = tree_map(_variables_of(transform, differentiable), primals)
        output = func(*inner)
        output, aux = _without_aux(output, has_aux, "vjp(f, *primals)")
    flat, spec = tree_flatten(output)
    _check_outputs(flat, "vjp(f, *primals)")
    for one in flat:
        if not (one.is_floating_point() or one.is_complex()):
            raise RuntimeError(
                f"vjp(f, ...): All outputs of f must be floating-point or complex Tensors, got Tensor with dtype {one.dtype}"
            )
    targets, in_spec = tree_flatten(inner)
    outside = _Outside(transform, targets, differentiable)

    @guarded
    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            from ..utils._pytree import treespec_pprint

            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {treespec_pprint(given_spec)}, primal output: {treespec_pprint(spec)}"
            )
        with using(inference=False) if current_mode().inference else nullcontext():
            now = _Outside(transform, targets, current_mode().tracks)
            grads = _gradients(flat, given, targets, now, user_place(2), retain=True)
        return tree_unflatten(grads, in_spec)

    released = tree_map(outside.release, output)
    if has_aux:
        return released, pull_back, outside.release_aux(aux)
    return released, pull_back


@guarded
def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute `func(*primals)` and the Jacobian times the tangents, in forward mode.

    Args:
        func: a function of tensors
        primals: a tuple of its arguments
        tangents: a tuple of directions, one for each
        strict: raise an error where the result does not depend on the arguments
        has_aux: `func` returns its result and something else

    Example:
        >>> torch.func.jvp(torch.sin, (torch.tensor(0.0),), (torch.tensor(1.0),))
        (tensor(0.), tensor(1.))
    """
    if not isinstance(primals, tuple):
        raise RuntimeError(
            "jvp(f, primals, tangents): Expected primals to be a tuple. E.g. it should be valid to call f(*primals)."
        )
    flat, spec = tree_flatten(primals)
    flat_t, spec_t = tree_flatten(tangents)
    if spec != spec_t:
        raise RuntimeError(
            f"jvp(f, primals, tangents): Expected primals and tangents to have the same python structure. For example, "
            f"if primals is a tuple of 3 tensors, tangents also must be. Got primals with structure {spec} and tangents "
            f"with structure {spec_t}"
        )
    for what, leaves in (("primals", flat), ("tangents", flat_t)):
        if not leaves:
            raise RuntimeError(f"jvp(f, primals, tangents): Expected {what} to contain at least one Tensor.")
        for one in leaves:
            if not isinstance(one, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): Expected {what} to only contain Tensors, got {type(one)}"
                )
    for p, t in zip(flat, flat_t, strict=True):
        check_dual(p, t)
    level = Level(DUAL)
    with running("jvp", level, grad=current_mode().tracks, inference=False) as transform:
        inside = [dual_of(p, t, level) for p, t in zip(flat, flat_t, strict=True)]
        output = func(*tree_unflatten(inside, spec))
        output, aux = _without_aux(output, has_aux, "jvp(f, primals, tangents)")
        outs, out_spec = tree_flatten(output)
        _check_outputs(outs, "jvp(f, primals, tangents)")
        for one in outs:
            refuse_wrapper(one, "jvp of a function that returns", USE_REVERSE)
        if strict:
            _check_strict(outs, level)
        outside = _Outside(transform, [], True)

        def released(value: Any, part: Any) -> Any:
            return outside.release(part(value, level)) if isinstance(value, Tensor) else value

        plain = tree_unflatten([released(o, primal_of) for o in outs], out_spec)
        tangent = tree_unflatten([released(o, tangent_of) for o in outs], out_spec)
        if has_aux:
            _check_aux(aux)
            aux = tree_map(lambda t: released(t, primal_of), aux)
    return (plain, tangent, aux) if has_aux else (plain, tangent)


def _check_strict(outs: list[Any], level: Level) -> None:
    for one in outs:
        if level not in levels_of(one._array):
            raise RuntimeError(
                "jvp(f, primals, tangents, strict=True): The output of f is independent of the inputs. This is not "
                "allowed with strict=True."
            )


# ---- Jacobians ----
def _basis(tensors: list[Any]) -> list[Any]:
    """Return, for each tensor, its part of the standard basis of all of them together."""
    counts = [t.numel() for t in tensors]
    total = sum(counts)
    basis, start = [], 0
    for tensor, count in zip(tensors, counts, strict=True):
        xp = raw_namespace(raw_leaf(tensor._array))
        part = xp.zeros(shape=(total, count), dtype=tensor._array.dtype)
        part[np.arange(start, start + count), np.arange(count)] = 1
        basis.append(wrap(part.reshape(total, *tensor._array.shape)))
        start += count
    return basis


def _rows(matrix: Any, outs: list[Any]) -> list[Any]:
    """Cut a stack of rows into one block for each tensor, in its shape."""
    blocks, start = [], 0
    for out in outs:
        count = out.numel()
        part = matrix.narrow(0, start, count)
        blocks.append(part.reshape((*out._array.shape, *matrix._array.shape[1:])))
        start += count
    return blocks


def jacrev(
    func: Callable[..., Any],
    argnums: Argnums = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
    _preallocate_and_copy: bool = False,
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian in reverse mode, one row at a time by vmap.

    Args:
        func: a function of tensors
        argnums: the number of the argument to differentiate by, or several
        has_aux: `func` returns its result and something else
        chunk_size: how many rows are computed at once

    Example:
        >>> torch.func.jacrev(lambda x: x**2)(torch.tensor([1.0, 2.0]))
        tensor([[2., 0.],
                [0., 4.]])
    """
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any) -> Any:
        try:
            numbers = _arguments(args, argnums)

            others = _Others()

            def of_arguments(*chosen: Any) -> Any:
                return func(*others.beside(numbers, chosen, args))

            chosen = tuple(args[n] for n in numbers)
            _refuse_complex(tree_flatten(args)[0], "jacrev", "inputs")
            pulled = vjp(of_arguments, *chosen, has_aux=has_aux)
            others.leave()
            output, pull_back = pulled[0], pulled[1]
            outs, out_spec = tree_flatten(output)
            _refuse_complex(outs, "jacrev", "outputs")
            for one in outs:
                refuse_wrapper(one, "jacrev of a function that returns", "vjp takes wrappers: call it for each row.")
            basis = _basis(outs)
            in_spec = tree_flatten(chosen)[1]

            def row(*cotangents: Any) -> Any:
                return tuple(tree_flatten(pull_back(tree_unflatten(cotangents, out_spec)))[0])

            if chunk_size == 1:  # no vmap, which would refuse some functions
                seeds = list(zip(*[one.unbind() for one in basis], strict=True))
                rows = [row(*one) for one in steps(seeds, "jacrev: rows")]
                stacked = tuple([stack(parts) for parts in zip(*rows, strict=True)])
            else:
                stacked = vmap(row, chunk_size=chunk_size)(*basis)
            # by_output[i][j]: Jacobian of output i with respect to input j
            columns = [_rows(matrix, outs) for matrix in stacked]
            by_output = [
                _pick(tree_unflatten([column[i] for column in columns], in_spec), argnums) for i in range(len(outs))
            ]
            result = tree_unflatten(by_output, out_spec)
            return (result, pulled[2]) if has_aux else result
        except Exception as error:
            hide(error)
            raise

    return wrapper


def _pick(values: Any, argnums: Argnums) -> Any:
    return values[0] if isinstance(argnums, int) else values


def _refuse_complex(tensors: list[Any], name: str, what: str) -> None:
    for i, t in enumerate(tensors):
        if isinstance(t, Tensor) and t._array.dtype.kind == "c":
            raise RuntimeError(
                f"{name}: Expected all {what} to be real but received complex tensor at flattened input idx: {i}"
            )


def jacfwd(
    func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, *, randomness: str = "error"
) -> Callable[..., Any]:
    """Return a function that computes the Jacobian in forward mode, one column at a time by vmap.

    Args:
        func: a function of tensors
        argnums: the number of the argument to differentiate by, or several
        has_aux: `func` returns its result and something else
        randomness: "error", "different" or "same" random numbers in all columns

    Example:
        >>> torch.func.jacfwd(lambda x: x.sum() * x)(torch.tensor([1.0, 2.0]))
        tensor([[4., 1.],
                [2., 5.]])
    """

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any) -> Any:
        try:
            numbers = _arguments(args, argnums)
            chosen = tuple(args[n] for n in numbers)
            flat, spec = tree_flatten(chosen)
            _refuse_complex(tree_flatten(args)[0], "jacfwd", "inputs")

            def push(*tangents: Any) -> Any:
                def of_arguments(*values: Any) -> Any:
                    return func(*_Others().beside(numbers, values, args))

                result = jvp(of_arguments, chosen, tree_unflatten(tangents, spec), has_aux=has_aux)
                return (result[1], result[2]) if has_aux else result[1]

            pushed = vmap(push, randomness=randomness)(*_basis(flat))
            jacobian, aux = pushed if has_aux else (pushed, None)
            columns, out_spec = tree_flatten(jacobian)
            _refuse_complex(columns, "jacfwd", "outputs")
            per_output = []
            for matrix in columns:
                blocks, start = [], 0
                for one in flat:
                    count = one.numel()
                    part = matrix.narrow(0, start, count).movedim(0, -1)
                    blocks.append(part.reshape((*part._array.shape[:-1], *one._array.shape)))
                    start += count
                per_output.append(_pick(tree_unflatten(blocks, spec), argnums))
            result = tree_unflatten(per_output, out_spec)
            if has_aux:
                return result, tree_map(lambda t: t.select(0, 0) if isinstance(t, Tensor) else t, aux)
            return result
        except Exception as error:
            hide(error)
            raise

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian, forward over reverse.

    Args:
        func: a function whose result is a tensor with one element
        argnums: the number of the argument to differentiate by, or several

    Example:
        >>> torch.func.hessian(lambda x: (x**3).sum())(torch.tensor([1.0, 2.0]))
        tensor([[ 6.,  0.],
                [ 0., 12.]])
    """
    return jacfwd(jacrev(func, argnums), argnums)
