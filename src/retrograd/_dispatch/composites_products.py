"""Products that torch makes of products of matrices: sums over indices, and recurrent layers."""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import partial
from typing import Any

from .composites import FOUND, F, Tensor, composite, torch


# ---- sums over indices ----
@composite()
def tensordot(a: Any, b: Any, dims: Any = 2) -> Any:
    if isinstance(dims, Tensor):
        return NotImplemented
    if isinstance(dims, int):
        left, right = [*range(-dims, 0)], [*range(dims)]
    else:
        left, right = ([one] if isinstance(one, int) else list(one) for one in dims)
    if len(left) != len(right) or not a.dim() or not b.dim():
        return NotImplemented
    for k, (one, other) in enumerate(zip(left, right, strict=True)):
        if a.shape[one] == 1 != b.shape[other]:
            b = b.sum([right[k]], keepdim=True)
        elif b.shape[other] == 1 != a.shape[one]:
            a = a.sum([left[k]], keepdim=True)
        elif a.shape[one] != b.shape[other]:
            return NotImplemented  # an error
    own = [k for k in range(a.dim()) if k not in [d % a.dim() for d in left]]
    others = [k for k in range(b.dim()) if k not in [d % b.dim() for d in right]]
    rows, columns = [a.shape[k] for k in own], [b.shape[k] for k in others]
    inner = math.prod(a.shape[k] for k in left)
    first = a.permute([*own, *left]).reshape(math.prod(rows), inner)
    second = b.permute([*right, *others]).reshape(inner, math.prod(columns))
    return first.mm(second).reshape([*rows, *columns])


@composite()
def inner(input: Any, other: Any) -> Any:
    if not input.dim() or not other.dim():
        return input * other
    if input.shape[-1] != other.shape[-1]:
        return NotImplemented  # an error
    return tensordot(input, other, [[-1], [-1]])


@composite()
def einsum(*args: Any) -> Any:
    equation, *operands = args
    if not isinstance(equation, str):
        return NotImplemented
    operands = list(operands[0]) if len(operands) == 1 and isinstance(operands[0], (list, tuple)) else operands
    left, arrow, result = equation.replace(" ", "").partition("->")
    terms = left.split(",")
    if len(terms) != len(operands):
        return NotImplemented  # an error
    spare = [chr(k) for k in range(0x100, 0x140)]  # letters for the dimensions of an ellipsis
    for k, (term, tensor) in enumerate(zip(terms, operands, strict=True)):
        count = tensor.dim() - len(term.replace("...", ""))
        if count < 0 or (count and "..." not in term):
            return NotImplemented  # an error
        terms[k] = term.replace("...", "".join(spare[64 - count :]))
    most = max(sum(one in spare for one in term) for term in terms)
    if arrow:
        result = result.replace("...", "".join(spare[64 - most :]))
    else:
        once = sorted(one for one in set(left) - set(",.") if left.count(one) == 1)
        result = "".join([*spare[64 - most :], *once])
    order = [*result, *sorted({one for term in terms for one in term} - set(result))]
    if len(set(result)) < len(result) or not all(any(one in term for term in terms) for one in result):
        return NotImplemented  # an error
    spread = [_in_order(tensor, term, order) for term, tensor in zip(terms, operands, strict=True)]
    summed = [*range(len(result), len(order))]
    if len(spread) == 1:
        return spread[0].sum(summed) if summed else spread[0]
    shape = torch.broadcast_shapes(*[one.shape for one in spread])[: len(result)]
    counts = {k: sum(one.shape[k] != 1 for one in spread) for k in summed}
    for i, j in _path(equation, operands):
        second, first = spread.pop(max(i, j)), spread.pop(min(i, j))
        spread.append(_contracted(first, second, counts))
    return spread[0].view(list(shape)) if summed else spread[0]


def _in_order(tensor: Any, term: str, order: list[str]) -> Any:
    """Return an operand with a dimension for every letter, in an order; of a letter that comes twice, the diagonal."""
    letters = [*term]
    for letter in dict.fromkeys(term):
        while letters.count(letter) > 1:
            first = letters.index(letter)
            second = letters.index(letter, first + 1)
            tensor = tensor.diagonal(0, first, second).movedim(-1, first)
            del letters[second]
    for _ in range(len(order) - len(letters)):
        tensor = tensor.unsqueeze(tensor.dim())
    letters += [one for one in order if one not in letters]
    return tensor.permute([letters.index(one) for one in order])


def _path(equation: str, operands: Any) -> list[tuple[int, int]]:
    """Return which two operands are multiplied next, and so on: as opt_einsum says, if it is there, else the first two."""
    count = len(operands)
    if count > 2:
        try:
            from opt_einsum import contract_path
        except ImportError:
            return [(0, 1), *[(0, count - 2 - k) for k in range(count - 2)]]
        return [tuple(pair) for pair in contract_path(equation, *[one.shape for one in operands], shapes=True)[0]]
    return [(0, 1)]


def _contracted(left: Any, right: Any, counts: dict[int, int]) -> Any:
    """Multiply two operands, and sum over the dimensions that no other one has."""
    summed: list[int] = []
    left_only: list[int] = []
    right_only: list[int] = []
    for k in counts:
        if left.shape[k] != 1 and right.shape[k] != 1:
            counts[k] -= 1
            if counts[k] == 1:
                summed.append(k)
                counts[k] = 0
        elif counts[k] == 1 and (left.shape[k] != 1 or right.shape[k] != 1):
            (left_only if left.shape[k] != 1 else right_only).append(k)
            counts[k] = 0
    left = left.sum(left_only, keepdim=True) if left_only else left
    right = right.sum(right_only, keepdim=True) if right_only else right
    if not summed:
        return left * right
    kept = [k for k in range(left.dim()) if k not in summed]
    both = [k for k in kept if left.shape[k] != 1 and right.shape[k] != 1]
    only_left = [k for k in kept if right.shape[k] == 1]
    only_right = [k for k in kept if k not in both and k not in only_left]

    def size(tensor: Any, dims: list[int]) -> int:
        return math.prod(tensor.shape[k] for k in dims)

    order = [*both, *only_left, *summed, *only_right]
    first = left.permute(order).reshape(size(left, both), size(left, only_left), size(left, summed))
    second = right.permute([*both, *summed, *only_right, *only_left])
    second = second.reshape(size(right, both), size(right, summed), size(right, only_right))
    shape = [1 if k in summed else max(left.shape[k], right.shape[k]) for k in order]
    return torch.bmm(first, second).view(shape).permute([order.index(k) for k in range(len(order))])


@composite("matrix_power", "linalg_matrix_power")
def matrix_power(input: Any, n: int) -> Any:
    if n == 0 or input.dim() < 2:
        return NotImplemented
    base = input if n > 0 else torch.linalg.inv(input)
    if abs(n) == 3:
        return (base @ base) @ base
    result, left = None, abs(n)
    while True:
        if left % 2:
            result = base if result is None else result @ base
        left //= 2
        if not left:
            return result.clone() if result is input else result
        base = base @ base


@composite()
def cov(input: Any, *, correction: int = 1, fweights: Any = None, aweights: Any = None) -> Any:
    if fweights is not None or aweights is not None or input.dim() > 2:
        return NotImplemented
    rows = input if input.dim() == 2 else input.view(1, -1)
    count = rows.shape[1]
    apart = rows - (rows.sum(1) / count).unsqueeze(1)
    return (torch.mm(apart, apart.t().conj()) / max(count - correction, 0)).squeeze()


# ---- recurrent layers ----
def _step_of_lstm(own: Any, state: Any, weight: Any, bias: Any) -> Any:
    hidden, cell = state
    gates = F.linear(hidden, weight, bias) + own
    keep, forget, new, out = gates.chunk(4, 1)
    cell = forget.sigmoid() * cell + keep.sigmoid() * new.tanh()
    return out.sigmoid() * cell.tanh(), cell


def _step_of_gru(own: Any, state: Any, weight: Any, bias: Any) -> Any:
    (hidden,) = state
    of_input, of_state = own.chunk(3, 1), F.linear(hidden, weight, bias).chunk(3, 1)
    reset, keep = (of_state[0] + of_input[0]).sigmoid(), (of_state[1] + of_input[1]).sigmoid()
    new = (of_input[2] + of_state[2] * reset).tanh()
    return ((hidden - new) * keep + new,)


def _plain_step(own: Any, state: Any, weight: Any, bias: Any, function: Any) -> Any:
    return (function(F.linear(state[0], weight, bias) + own),)


def _cell(step: Callable[..., Any]) -> Callable[..., Any]:
    def cell(input: Any, hx: Any, w_ih: Any, w_hh: Any, b_ih: Any = None, b_hh: Any = None) -> Any:
        if input.dim() != 2:
            return NotImplemented
        state = tuple(hx) if isinstance(hx, (list, tuple)) else (hx,)
        made = step(F.linear(input, w_ih, b_ih), state, w_hh, b_hh)
        return made if len(made) > 1 else made[0]

    return cell


def _layers(step: Callable[..., Any]) -> Callable[..., Any]:
    def layers(
        input: Any, hx: Any, params: Any, has_biases: Any, num_layers: Any, dropout: Any, train: Any, bidirectional: Any = False,
        batch_first: Any = False,
    ) -> Any:  # fmt: skip
        several = isinstance(hx, (list, tuple))
        if (
            not isinstance(has_biases, bool)
            or (several and any(one.shape != hx[0].shape for one in hx))
            or len(params) % 2
        ):
            return NotImplemented  # packed steps, or projections
        is_projected = several and hx[0].shape[-1] != hx[1].shape[-1]
        per, ways = (4 if has_biases else 2) + is_projected, (2 if bidirectional else 1)
        if len(params) != per * ways * num_layers:
            return NotImplemented
        states = [one.unbind(0) for one in (hx if several else [hx])]
        x, last = input.transpose(0, 1) if batch_first else input, []
        for layer in range(num_layers):
            sides = []
            for way in range(ways):
                at = layer * ways + way
                w_ih, w_hh, *rest = params[per * at : per * at + per]
                projection = rest.pop() if is_projected else None
                b_ih, b_hh = rest or (None, None)
                state = tuple(one[at] for one in states)
                steps = F.linear(x, w_ih, b_ih).unbind(0)
                made = []
                for own in reversed(steps) if way else steps:
                    state = step(own, state, w_hh, b_hh)
                    state = state if projection is None else (F.linear(state[0], projection), *state[1:])
                    made.append(state[0])
                sides.append(torch.stack(made[::-1] if way else made, 0))
                last.append(state)
            x = sides[0] if ways == 1 else torch.cat(sides, -1)
            if dropout and train and layer + 1 < num_layers:
                x = F.dropout(x, dropout)
        out = x.transpose(0, 1) if batch_first else x
        return out, *[torch.stack(parts, 0) for parts in zip(*last, strict=True)]

    return layers


_STEPS: dict[str, Callable[..., Any]] = {
    "lstm": _step_of_lstm,
    "gru": _step_of_gru,
    "rnn_tanh": partial(_plain_step, function=torch.tanh),
    "rnn_relu": partial(_plain_step, function=torch.relu),
}
for _name, _step in _STEPS.items():
    FOUND[_name] = _layers(_step)
    FOUND[f"{_name}_cell"] = _cell(_step)


# Functions that are made of products inside of transforms, too, where somebody counts these.
PRODUCTS = frozenset(
    """linear matmul __matmul__ __rmatmul__ linalg_matmul tensordot inner einsum lstm gru rnn_tanh rnn_relu lstm_cell gru_cell rnn_tanh_cell
    rnn_relu_cell conv1d conv2d conv3d conv_transpose1d conv_transpose2d conv_transpose3d""".split()  # noqa: SIM905
)
