"""The checks themselves: derivatives against finite differences, batches against a Python loop.

Each takes a function of retrograd Tensors and NumPy arrays for its inputs, and raises AssertionError.
`floats` says which inputs are differentiated; the others are passed as they are. With complex numbers the
convention is torch's: the gradient of a real L is dL/dRe + i dL/dIm, and a cotangent g stands for
L = Re(conj(g) * out).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

import retrograd as torch
from retrograd import func

STEP = 1e-5  # central differences err by STEP**2 = 1e-10 and by rounding / STEP = 1e-11
RTOL, ATOL = 2e-6, 2e-7
EXACT = {"rtol": 1e-11, "atol": 1e-12}  # the same arithmetic in another order

Arrays = Sequence[np.ndarray]
Function = Callable[..., Any]


@contextmanager
def saying(what: str) -> Iterator[None]:
    """Say of an error where it happened."""
    try:
        yield
    except Exception as error:
        error.add_note(what)
        raise


# ---- between arrays and tensors ----
def tensor(array: Any, requires_grad: bool = False) -> Any:
    """Make a tensor on the memory of an array (or of a copy that may be written to)."""
    array = np.asarray(array)
    result = torch.from_numpy(array if array.flags.writeable else array.copy())
    return result.requires_grad_() if requires_grad else result


def array(value: Any) -> np.ndarray:
    """Return a tensor's values."""
    return np.asarray(value.detach().resolve_conj().resolve_neg().numpy())


def outputs(result: Any) -> list[Any]:
    """Return the tensors of a result that can have a derivative."""
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    return [p for p in parts if p.dtype.is_floating_point or p.dtype.is_complex]


def evaluate(f: Function, arrays: Arrays) -> list[np.ndarray]:
    """Run a function on arrays without gradients."""
    with torch.no_grad():
        return [array(p).copy() for p in outputs(f(*[tensor(a) for a in arrays]))]


def leaves_of(arrays: Arrays, floats: Sequence[bool]) -> list[Any]:
    """Make the inputs: leaves that require grad where differentiated."""
    return [tensor(a, is_float) for a, is_float in zip(arrays, floats, strict=True)]


def weights(arrays: Arrays, seed: int) -> list[np.ndarray]:
    """Return random arrays like others: cotangents or tangents."""
    rng = np.random.default_rng(seed)
    found = []
    for one in arrays:
        values = rng.uniform(0.5, 1.5, one.shape) * rng.choice([-1.0, 1.0], one.shape)
        if one.dtype.kind == "c":
            values = values + 1j * rng.uniform(-1.5, 1.5, one.shape)
        found.append(np.asarray(values).astype(one.dtype))
    return found


def pairing(a: Arrays, b: Arrays) -> float:
    """Return Re(sum(conj(a) * b)): the real inner product, also of complex numbers."""
    return float(sum(np.vdot(x, y).real for x, y in zip(a, b, strict=True)))


def chosen(values: Sequence[Any], floats: Sequence[bool]) -> list[Any]:
    """Keep the values of differentiated inputs."""
    return [v for v, is_float in zip(values, floats, strict=True) if is_float]


def replaced(arrays: Arrays, floats: Sequence[bool], new: Arrays) -> list[np.ndarray]:
    """Put new arrays in the places of the differentiated ones."""
    left = iter(new)
    return [next(left) if is_float else a for a, is_float in zip(arrays, floats, strict=True)]


def close(got: Any, wanted: Any, what: str, rtol: float = RTOL, atol: float = ATOL) -> None:
    """Require equal shapes and values."""
    got, wanted = np.asarray(got), np.asarray(wanted)
    assert got.shape == wanted.shape, f"{what}: shape {got.shape}, wanted {wanted.shape}"
    if got.dtype.kind in "fc" and wanted.dtype.kind in "fc" and np.isfinite(wanted).all():
        with np.errstate(all="ignore"):
            if (abs(got - wanted) <= atol + rtol * abs(wanted)).all():
                return  # what NumPy's function finds, too, in five times the time; it knows NaN and infinities, and tells
    np.testing.assert_allclose(got, wanted, rtol=rtol, atol=atol, err_msg=what)


# ---- finite differences ----
def slopes(scalar: Callable[[list[np.ndarray]], float], arrays: Arrays) -> list[np.ndarray]:
    """Differentiate a real function of arrays by central differences in real and imaginary directions."""
    found = []
    for k, one in enumerate(arrays):
        slope = np.zeros(one.shape, one.dtype)
        for place in np.ndindex(one.shape):
            for unit in (1.0, 1.0j) if one.dtype.kind == "c" else (1.0,):
                values = []
                for sign in (1, -1):
                    moved = [*arrays[:k], one.copy("K"), *arrays[k + 1 :]]
                    moved[k][place] += sign * unit * STEP
                    values.append(scalar(moved))
                slope[place] += unit * (values[0] - values[1]) / (2 * STEP)
        found.append(slope)
    return found


def gradients(f: Function, arrays: Arrays, floats: Sequence[bool], cotangents: Arrays) -> list[np.ndarray]:
    """Return the gradients of the differentiated inputs in reverse mode."""
    inputs = leaves_of(arrays, floats)
    return [array(g) for g in pulled(outputs(f(*inputs)), inputs, floats, [tensor(c) for c in cotangents], False)]


def pulled(
    outs: list[Any],
    inputs: list[Any],
    floats: Sequence[bool],
    cotangents: list[Any],
    graph: bool,
    keep: bool | None = None,
) -> list[Any]:
    """Return the gradients of the differentiated inputs as tensors."""
    wanted = chosen(inputs, floats)
    pairs = [(o, c) for o, c in zip(outs, cotangents, strict=True) if o.requires_grad]
    if not pairs:
        return [torch.zeros_like(w) for w in wanted]
    return list(
        torch.autograd.grad(
            [o for o, _ in pairs],
            wanted,
            [c for _, c in pairs],
            create_graph=graph,
            retain_graph=keep,
            allow_unused=True,
            materialize_grads=True,
        )
    )


def check_vjp(f: Function, arrays: Arrays, floats: Sequence[bool]) -> None:
    """Reverse mode against finite differences of the function."""
    cotangents = weights(evaluate(f, arrays), 1)
    got = gradients(f, arrays, floats, cotangents)
    wanted = slopes(
        lambda moved: pairing(cotangents, evaluate(f, replaced(arrays, floats, moved))),
        chosen(arrays, floats),
    )
    for k, (g, w) in enumerate(zip(got, wanted, strict=True)):
        close(g, w, f"gradient of input {k}")


def pushed(f: Function, arrays: Arrays, floats: Sequence[bool], tangents: Arrays) -> list[np.ndarray]:
    """Return the tangents of the outputs in forward mode."""
    moving = tuple(tensor(a) for a in chosen(arrays, floats))

    def of_floats(*given: Any) -> Any:
        left = iter(given)
        full = [next(left) if is_float else tensor(a) for a, is_float in zip(arrays, floats, strict=True)]
        return tuple(outputs(f(*full)))

    _, out = func.jvp(of_floats, moving, tuple(tensor(t) for t in tangents))
    return [array(o) for o in out]


def check_jvp(f: Function, arrays: Arrays, floats: Sequence[bool]) -> None:
    """Forward mode against finite differences of the function, all inputs moving and each alone."""
    moving = chosen(arrays, floats)
    tangents = weights(moving, 2)
    patterns = [[True] * len(moving)]
    if len(moving) > 1:
        patterns += [[k == one for k in range(len(moving))] for one in range(len(moving))]
    for pattern in patterns:
        t = [one * on for one, on in zip(tangents, pattern, strict=True)]
        ends = []
        for sign in (1, -1):
            moved = [np.asarray(a + sign * STEP * one) for a, one in zip(moving, t, strict=True)]
            ends.append(evaluate(f, replaced(arrays, floats, moved)))
        if all(pattern):
            got = pushed(f, arrays, floats, t)
        else:  # the others carry no tangent at all, not a zero one
            alone = [is_float and on for is_float, on in _along(floats, pattern)]
            got = pushed(f, arrays, alone, chosen(t, pattern))
        for k, (g, up, down) in enumerate(zip(got, *ends, strict=True)):
            close(g, (up - down) / (2 * STEP), f"tangent of output {k}, inputs moving {pattern}")


def _along(floats: Sequence[bool], pattern: Sequence[bool]) -> list[tuple[bool, bool]]:
    left = iter(pattern)
    return [(is_float, next(left) if is_float else False) for is_float in floats]


def check_adjoint(f: Function, arrays: Arrays, floats: Sequence[bool]) -> None:
    """<g, J t> = <J^T g, t>: forward and reverse mode are one linear map."""
    tangents = weights(chosen(arrays, floats), 3)
    cotangents = weights(evaluate(f, arrays), 4)
    forward = pairing(cotangents, pushed(f, arrays, floats, tangents))
    reverse = pairing(gradients(f, arrays, floats, cotangents), tangents)
    close(forward, reverse, "<g, J t> against <J^T g, t>", rtol=1e-10, atol=1e-10)


def check_second_order(f: Function, arrays: Arrays, floats: Sequence[bool]) -> None:
    """The gradient of the gradient, for inputs and cotangent, against finite differences of the gradient and of the function."""
    moving = chosen(arrays, floats)
    cotangents = weights(evaluate(f, arrays), 5)
    directions = weights(moving, 6)
    inputs = leaves_of(arrays, floats)
    outs = outputs(f(*inputs))
    seeds = [tensor(c, True) for c in cotangents]
    first = pulled(outs, inputs, floats, seeds, True)
    targets = [*chosen(inputs, floats), *seeds]
    pairs = [(g, tensor(d)) for g, d in zip(first, directions, strict=True) if g.requires_grad]
    if pairs:
        second = torch.autograd.grad(
            [g for g, _ in pairs], targets, [d for _, d in pairs], allow_unused=True, materialize_grads=True
        )
    else:
        second = [torch.zeros_like(t) for t in targets]

    def paired(moved: list[np.ndarray]) -> float:
        return pairing(directions, gradients(f, replaced(arrays, floats, moved), floats, cotangents))

    # The gradient is linear in the cotangent. Its slope there is that of the function along the directions, which two runs give.
    ends = [
        evaluate(f, replaced(arrays, floats, [a + sign * STEP * d for a, d in zip(moving, directions, strict=True)]))
        for sign in (1, -1)
    ]
    along = [(up - down) / (2 * STEP) * out.requires_grad for up, down, out in zip(*ends, outs, strict=True)]
    for k, (g, w) in enumerate(zip(second, [*slopes(paired, moving), *along], strict=True)):
        what = f"input {k}" if k < len(moving) else f"cotangent {k - len(moving)}"
        close(array(g), w, f"second derivative, {what}")


def check_forward_over_reverse(f: Function, arrays: Arrays, floats: Sequence[bool]) -> None:
    """Forward mode through the gradient, and the gradient of forward mode, against finite differences."""
    moving = chosen(arrays, floats)
    cotangents = weights(evaluate(f, arrays), 7)
    tangents = weights(moving, 8)

    def gradient_of(*given: Any) -> Any:
        left = iter(given)
        full = [next(left) if is_float else tensor(a) for a, is_float in zip(arrays, floats, strict=True)]

        def of_floats(*inner: Any) -> Any:
            return tuple(outputs(f(*replaced(full, floats, inner))))

        _, pull = func.vjp(of_floats, *given)
        return pull(tuple(tensor(c) for c in cotangents))

    _, got = func.jvp(gradient_of, tuple(tensor(a) for a in moving), tuple(tensor(t) for t in tangents))
    ends = []
    for sign in (1, -1):
        moved = [np.asarray(a + sign * STEP * t) for a, t in zip(moving, tangents, strict=True)]
        ends.append(gradients(f, replaced(arrays, floats, moved), floats, cotangents))
    for k, (g, up, down) in enumerate(zip(got, *ends, strict=True)):
        close(array(g), (up - down) / (2 * STEP), f"forward over reverse, input {k}")

    inputs = leaves_of(arrays, floats)

    def of_floats(*given: Any) -> Any:
        return tuple(outputs(f(*replaced(inputs, floats, given))))

    _, along = func.jvp(of_floats, tuple(chosen(inputs, floats)), tuple(tensor(t) for t in tangents))
    reverse = pulled(list(along), inputs, floats, [tensor(c) for c in cotangents], False)
    wanted = slopes(
        lambda values: pairing(cotangents, pushed(f, replaced(arrays, floats, values), floats, tangents)),
        moving,
    )
    for k, (g, w) in enumerate(zip(reverse, wanted, strict=True)):
        close(array(g), w, f"reverse over forward, input {k}")


# ---- batches ----
def in_dims_to_try(count: int, batchable: Sequence[bool]) -> list[tuple[int | None, ...]]:
    """Return all first, all last, and each input alone batched or alone not."""
    tries = [tuple(0 if b else None for b in batchable), tuple(-1 if b else None for b in batchable)]
    for k in range(count):
        if count > 1 and batchable[k]:
            tries.append(tuple(0 if j == k else None for j in range(count)))
            tries.append(tuple(None if j == k or not batchable[j] else 0 for j in range(count)))
    return [t for t in dict.fromkeys(tries) if any(d is not None for d in t)]


def stacked(rows: Sequence[Arrays], dims: Sequence[int | None]) -> list[np.ndarray]:
    """Stack the rows of every input along its batch dimension; one without it is that of the first row."""
    return [
        rows[0][k] if dim is None else np.moveaxis(np.stack([row[k] for row in rows]), 0, dim)
        for k, dim in enumerate(dims)
    ]


def rows_seen(rows: Sequence[Arrays], dims: Sequence[int | None]) -> list[list[np.ndarray]]:
    """Return what each row's function gets."""
    return [[rows[0][k] if dim is None else row[k] for k, dim in enumerate(dims)] for row in rows]


def check_vmap(f: Function, rows: Sequence[Arrays], batchable: Sequence[bool]) -> None:
    """vmap against a Python loop."""
    for dims in in_dims_to_try(len(batchable), batchable):
        wanted = [_all_arrays(f(*[tensor(a) for a in row])) for row in rows_seen(rows, dims)]
        batched = [tensor(a) for a in stacked(rows, dims)]
        with saying(f"vmap, in_dims={dims}"):
            got = _all_arrays(torch.vmap(f, in_dims=dims)(*batched))
        _same_rows(got, wanted, f"vmap, in_dims={dims}")


def _all_arrays(result: Any) -> list[np.ndarray]:
    parts = list(result) if isinstance(result, (tuple, list)) else [result]
    return [array(p) for p in parts]


def _same_rows(got: list[np.ndarray], wanted: list[list[np.ndarray]], what: str) -> None:
    assert len(got) == len(wanted[0]), what
    for k, out in enumerate(got):
        column = np.stack([row[k] for row in wanted])
        assert out.dtype == column.dtype, f"{what}: output {k} is {out.dtype}, in the loop {column.dtype}"
        close(out, column, f"{what}: output {k}", **EXACT)


def check_vmap_of_grad(f: Function, rows: Sequence[Arrays], batchable: Sequence[bool], floats: Sequence[bool]) -> None:
    """The gradient inside vmap, and of vmap, against a loop of gradients."""
    cotangents = [weights(evaluate(f, row), 9) for row in rows]
    seeds = [np.stack(column) for column in zip(*cotangents, strict=True)]
    for dims in in_dims_to_try(len(batchable), batchable):
        seen = rows_seen(rows, dims)
        wanted = [gradients(f, row, floats, c) for row, c in zip(seen, cotangents, strict=True)]

        def gradient(given: Any, cots: Any) -> Any:
            def of_floats(*inner: Any) -> Any:
                return tuple(outputs(f(*replaced(given, floats, inner))))

            _, pull = func.vjp(of_floats, *chosen(given, floats))
            return pull(tuple(cots))

        inputs = [tensor(a) for a in stacked(rows, dims)]
        with saying(f"grad in vmap, in_dims={dims}"):
            got = torch.vmap(gradient, in_dims=(list(dims), 0))(inputs, [tensor(s) for s in seeds])
        _same_rows([array(g) for g in got], wanted, f"grad in vmap, in_dims={dims}")

        outside = leaves_of(stacked(rows, dims), floats)
        with saying(f"grad of vmap, in_dims={dims}"):
            outs = torch.vmap(lambda *given: tuple(outputs(f(*given))), in_dims=dims)(*outside)
            totals = pulled(list(outs), outside, floats, [tensor(s) for s in seeds], False)
            totals = [array(total) for total in totals]
        for k, (total, dim) in enumerate(zip(totals, chosen(dims, floats), strict=True)):
            column = np.stack([row[k] for row in wanted])
            expected = column.sum(0) if dim is None else np.moveaxis(column, 0, dim)
            close(total, expected, f"grad of vmap, in_dims={dims}, input {k}", **EXACT)


def check_vmap_of_jvp(f: Function, rows: Sequence[Arrays], batchable: Sequence[bool], floats: Sequence[bool]) -> None:
    """Forward mode inside vmap against a loop."""
    dims = tuple(0 if b else None for b in batchable)
    seen = rows_seen(rows, dims)
    tangents = [weights(chosen(row, floats), 10 + k) for k, row in enumerate(seen)]
    wanted = [pushed(f, row, floats, t) for row, t in zip(seen, tangents, strict=True)]

    def push(given: Any, t: Any) -> Any:
        def of_floats(*inner: Any) -> Any:
            return tuple(outputs(f(*replaced(given, floats, inner))))

        return func.jvp(of_floats, tuple(chosen(given, floats)), tuple(t))[1]

    inputs = [tensor(a) for a in stacked(rows, dims)]
    stacked_tangents = [tensor(np.stack(column)) for column in zip(*tangents, strict=True)]
    got = torch.vmap(push, in_dims=(list(dims), 0))(inputs, stacked_tangents)
    _same_rows([array(g) for g in got], wanted, "jvp in vmap")
