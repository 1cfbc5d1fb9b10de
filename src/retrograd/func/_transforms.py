"""grad, vjp, jvp and the Jacobians built of them.

Note [When a transform's result is differentiable]
Inside `grad` and `vjp`, gradients are on. The result is recorded in the graph only if somebody can ask for it: the
function read a tensor from outside that requires grad (the argument itself, or a captured one) and the caller had
gradients on. Whether that is so is seen in the graph: a leaf that is not one of the transform's own, or a node older
than the transform.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from .._core.arrays import raw_leaf
from .._core.levels import DUAL, Level, running
from .._core.primitive import ones_beside, raw_namespace, vocabulary
from .._graph.node import Node, Slot
from .._modes import current_mode
from .._places import user_place
from ..tensor import _base
from ..tensor._base import LEAF, edge_of, wrap
from ..tensor._tensor import Tensor
from ..utils._pytree import tree_flatten, tree_map, tree_unflatten
from ._vmap import vmap

Argnums = int | tuple[int, ...]


def _inner(tensor: Any) -> Any:
    """Make the transform's own variable: an alias in the graph of a tensor that needs an outer gradient, else a leaf."""
    if tensor._edge is None or not current_mode().grad:
        return wrap(_base.materialise(tensor), LEAF, _base.storage_of(tensor))
    from ..tensor._shaping import alias

    result = alias(tensor)
    result._extra.forget()
    return result


def _needs_outside(roots: list[Any], own: set[int], born: int) -> bool:
    """Look for anything outside the transform that requires grad. See Note [When a transform's result is ...]."""
    seen: set[int] = set()
    stack = [edge.node if type(edge) is Slot else edge for edge in roots]
    while stack:
        node = stack.pop()
        if id(node) in seen or id(node) in own:
            continue
        seen.add(id(node))
        if not isinstance(node, Node) or node.seq < born:
            return True
        stack += [edge.node if type(edge) is Slot else edge for edge in node._edges if edge is not None]
    return False


def _own_ids(leaves: list[Any]) -> set[int]:
    """Name the leaves that a transform made itself; aliases of outer tensors are not among them."""
    return {id(t) for t in leaves if isinstance(t, Tensor) and t._edge is LEAF}


def _release(value: Any, keep: bool) -> Any:
    """Cut a result loose from the transform's own variables unless it needs an outer gradient."""
    if not isinstance(value, Tensor) or value._edge is None or keep:
        return value
    return wrap(value._array, None, value._storage)


def _release_aux(aux: Any, keep: bool) -> Any:
    def each(value: Any) -> Any:
        if not isinstance(value, Tensor):
            raise RuntimeError(f"Expected tensors, got unsupported type {type(value)}")
        return _release(value, keep)

    return tree_map(each, aux)


def _arguments(args: tuple[Any, ...], argnums: Argnums) -> tuple[int, ...]:
    if not isinstance(argnums, (int, tuple)):
        raise RuntimeError(f"argnums must be int or Tuple[int, ...], got: {type(argnums)}")
    numbers = (argnums,) if isinstance(argnums, int) else argnums
    if not numbers:
        raise RuntimeError("argnums must be non-empty")
    settled = []
    for n in numbers:
        if not -len(args) <= n < len(args):
            raise RuntimeError(f"Got argnum={n}, but only {len(args)} positional inputs")
        settled.append(n % len(args))
    if len(set(settled)) != len(settled):
        raise RuntimeError(f"argnums elements must be unique, got {tuple(settled)}")
    return tuple(settled)


def grad_and_value(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function, and its value."""

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        differentiable = current_mode().grad
        place = user_place(1)
        with running("grad", grad=True) as transform:
            numbers = _arguments(args, argnums)
            inner = list(args)
            with_grad = _alias_mode(differentiable)
            for n in numbers:
                inner[n] = tree_map(with_grad, args[n])
            output = func(*inner, **kwargs)
            aux = None
            if has_aux:
                if not (isinstance(output, tuple) and len(output) == 2):
                    raise RuntimeError(
                        "grad_and_value(f)(*args): output of function f should be a tuple: (output, aux) if "
                        "has_aux is True"
                    )
                output, aux = output
            _check_scalar(output)
            targets = [leaf for n in numbers for leaf in tree_flatten(inner[n])[0] if isinstance(leaf, Tensor)]
            grads, keep = _gradients([output], [None], targets, transform.born, differentiable, place, retain=False)
            left = iter(grads)
            picked = [tree_map(lambda t: next(left) if isinstance(t, Tensor) else t, inner[n]) for n in numbers]
        result = picked[0] if isinstance(argnums, int) else tuple(picked)
        value = _release(output, keep)
        if has_aux:
            return result, (value, _release_aux(aux, keep))
        return result, value

    return wrapper


def _alias_mode(differentiable: bool) -> Callable[[Any], Any]:
    def make(tensor: Any) -> Any:
        if not isinstance(tensor, Tensor):
            raise ValueError(f"Thing passed to transform API must be Tensor, got {type(tensor)}")
        if tensor._array.dtype.kind not in "fcV":
            raise RuntimeError("only Tensors of floating point dtype can require gradients")
        if not differentiable and tensor._edge is not None:
            return _inner(wrap(tensor._array, None, tensor._storage))
        return _inner(tensor)

    return make


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
    outputs: list[Any], seeds: list[Any], targets: list[Any], born: int, differentiable: bool, place: Any, retain: bool
) -> tuple[list[Any], bool]:
    """Pull seeds back to the transform's variables; zeros where nothing arrives."""
    from ..autograd import gradients
    from ..tensor._creation import zeros_like

    roots, given = [], []
    for out, seed in zip(outputs, seeds, strict=True):
        if out._edge is None:
            continue
        roots.append(edge_of(out))
        given.append(wrap(ones_beside(out._array)) if seed is None else seed)
    if not roots:
        return [zeros_like(t) for t in targets], False
    outside = _needs_outside(roots, _own_ids(targets), born)
    keep = differentiable and (outside or any(seed._edge is not None for seed in given))
    found = gradients(roots, given, tuple(targets), keep, retain or keep, True, True, place)
    return list(found), keep


def grad(func: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that computes the gradient of a scalar function."""
    both = grad_and_value(func, argnums, has_aux)

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any, **kwargs: Any) -> Any:
        gradient, value = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return wrapper


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> Any:
    """Return `func(*primals)` and a function that computes vector-Jacobian products."""
    differentiable = current_mode().grad
    with running("vjp", grad=True) as transform:
        make = _alias_mode(differentiable)
        inner = tuple(tree_map(make, p) for p in primals)
        output = func(*inner)
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "vjp(f, *primals): output of function f should be a tuple: (output, aux) if has_aux is True"
                )
            output, aux = output
    flat, spec = tree_flatten(output)
    if not flat or flat == [None]:
        raise RuntimeError(
            f"vjp(f, *primals): Expected f to be a function that has non-empty output (got output = {flat})"
        )
    for one in flat:
        if not isinstance(one, Tensor):
            raise RuntimeError(
                f"vjp(f, *primals): expected f(*primals) to return only tensors, got unsupported type {type(one)}"
            )
    targets, in_spec = tree_flatten(inner)
    roots = [edge_of(o) for o in flat if o._edge is not None]
    keep = differentiable and _needs_outside(roots, _own_ids(targets), transform.born)

    def pull_back(cotangents: Any, retain_graph: bool = True, create_graph: bool | None = None) -> Any:
        given, given_spec = tree_flatten(cotangents)
        if given_spec != spec:
            raise RuntimeError(
                f"Expected pytree structure of cotangents to be the same as pytree structure of outputs to the function. "
                f"cotangents: {given_spec}, primal output: {spec}"
            )
        for out, one in zip(flat, given, strict=True):
            if not isinstance(one, Tensor):
                raise TypeError(f"gradients can be either Tensors or None, but got {type(one).__name__}")
            if tuple(out._array.shape) != tuple(one._array.shape):
                raise RuntimeError(
                    f"Mismatch in shape: grad_output[0] has a shape of {one.shape} and output[0] has a shape of "
                    f"{out.shape}."
                )
        grads, _ = _gradients(flat, given, targets, transform.born, current_mode().grad, user_place(2), retain=True)
        result = tree_unflatten(grads, in_spec)
        return result

    released = tree_map(lambda t: _release(t, keep), output)
    if has_aux:
        return released, pull_back, _release_aux(aux, keep)
    return released, pull_back


def jvp(func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False) -> Any:
    """Compute `func(*primals)` and the Jacobian times the tangents, in forward mode."""
    from ..autograd.forward_ad import check_dual, dual_of

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
    with running("jvp", level):
        inside = [dual_of(p, t, level) for p, t in zip(flat, flat_t, strict=True)]
        output = func(*tree_unflatten(inside, spec))
        aux = None
        if has_aux:
            if not (isinstance(output, tuple) and len(output) == 2):
                raise RuntimeError(
                    "jvp(f, primals, tangents): output of function f should be a tuple: (output, aux) if has_aux "
                    "is True"
                )
            output, aux = output
        outs, out_spec = tree_flatten(output)
        if not outs or outs == [None]:
            raise RuntimeError(
                f"jvp(f, primals, tangents): Expected f to be a function that has non-empty output (got output = {outs})"
            )
        for one in outs:
            if not isinstance(one, Tensor):
                raise RuntimeError(
                    f"jvp(f, primals, tangents): expected f(*primals) to return only tensors, got unsupported type "
                    f"{type(one)}"
                )
        if strict:
            _check_strict(outs, level)
        plain = tree_unflatten([vocabulary.dual_plain(o, level=level) for o in outs], out_spec)
        tangent = tree_unflatten([vocabulary.dual_eps(o, level=level) for o in outs], out_spec)
        if has_aux:
            aux = tree_map(lambda t: vocabulary.dual_plain(t, level=level) if isinstance(t, Tensor) else t, aux)
    return (plain, tangent, aux) if has_aux else (plain, tangent)


def _check_strict(outs: list[Any], level: Level) -> None:
    from .._core.arrays import levels_of

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
        blocks.append(part.reshape(*out._array.shape, *matrix._array.shape[1:]))
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
    """Return a function that computes the Jacobian in reverse mode, one row at a time by vmap."""
    if chunk_size is not None and chunk_size <= 0:
        raise ValueError("jacrev: `chunk_size` should be greater than 0.")

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any) -> Any:
        numbers = _arguments(args, argnums)

        def of_arguments(*chosen: Any) -> Any:
            full = list(args)
            for n, value in zip(numbers, chosen, strict=True):
                full[n] = value
            return func(*full)

        chosen = tuple(args[n] for n in numbers)
        _refuse_complex(tree_flatten(chosen)[0], "jacrev", "inputs")
        pulled = vjp(of_arguments, *chosen, has_aux=has_aux)
        output, pull_back = pulled[0], pulled[1]
        outs, out_spec = tree_flatten(output)
        _refuse_complex(outs, "jacrev", "outputs")
        basis = _basis(outs)
        flat_in, in_spec = tree_flatten(chosen)

        def row(*cotangents: Any) -> Any:
            return tuple(tree_flatten(pull_back(tree_unflatten(cotangents, out_spec)))[0])

        stacked = vmap(row, chunk_size=chunk_size)(*basis)
        # by_output[i][j]: Jacobian of output i with respect to input j
        columns = [_rows(matrix, outs) for matrix in stacked]
        by_output = [
            _pick(tree_unflatten([column[i] for column in columns], in_spec), argnums) for i in range(len(outs))
        ]
        result = tree_unflatten(by_output, out_spec)
        del flat_in
        return (result, pulled[2]) if has_aux else result

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
    """Return a function that computes the Jacobian in forward mode, one column at a time by vmap."""

    @functools.wraps(func, assigned=("__name__", "__doc__", "__module__"), updated=())
    def wrapper(*args: Any) -> Any:
        numbers = _arguments(args, argnums)
        chosen = tuple(args[n] for n in numbers)
        flat, spec = tree_flatten(chosen)
        _refuse_complex(flat, "jacfwd", "inputs")

        def push(*tangents: Any) -> Any:
            def of_arguments(*values: Any) -> Any:
                full = list(args)
                for n, value in zip(numbers, values, strict=True):
                    full[n] = value
                return func(*full)

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
                blocks.append(part.reshape(*part._array.shape[:-1], *one._array.shape))
                start += count
            per_output.append(_pick(tree_unflatten(blocks, spec), argnums))
        result = tree_unflatten(per_output, out_spec)
        if has_aux:
            return result, tree_map(lambda t: t.select(0, 0) if isinstance(t, Tensor) else t, aux)
        return result

    return wrapper


def hessian(func: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Return a function that computes the Hessian, forward over reverse."""
    return jacfwd(jacrev(func, argnums), argnums)
