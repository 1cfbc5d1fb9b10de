"""torch.optim.lbfgs: quasi-Newton steps from the last gradients, with or without a line search."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from ..tensor._functions.complex_views import view_as_real
from ..tensor._functions.joining import cat
from ._step import check_lr
from .optimizer import Optimizer, ParamsT, _get_value, _to_scalar, _use_grad_for_differentiable, loss_of

LEAST_CURVATURE = 1e-10
MEMORY = ("d", "t", "old_dirs", "old_stps", "ro", "H_diag", "prev_flat_grad", "prev_loss")  # from step to step


class Point(NamedTuple):
    """Where a line search has looked: the step, and the loss, the gradient and the slope along the line there.

    Slopes are Tensors, and so are steps computed from them: torch's line search rounds as its tensors do.
    """

    t: Any
    loss: float
    gradient: Any
    slope: Any


def cubic_minimum(a: Point, b: Point, bounds: tuple[Any, Any] | None = None) -> Any:
    """Return where the cubic through two points has its minimum, within bounds; their middle if it has none."""
    low, high = bounds if bounds is not None else (min(a.t, b.t), max(a.t, b.t))
    if a.t > b.t:
        a, b = b, a
    width = b.t - a.t
    if width:
        bend = a.slope + b.slope - 3 * (b.loss - a.loss) / width
        square = bend * bend - a.slope * b.slope
        if square >= 0:
            root = square.sqrt()
            below = b.slope - a.slope + 2 * root
            if below:
                return min(max(b.t - width * ((b.slope + root - bend) / below), low), high)
    return (low + high) / 2.0


def strong_wolfe(
    look: Callable[[Any], Point],
    start: Point,
    t: Any,
    largest: Any,
    most: int,
    c1: float = 1e-4,
    c2: float = 0.9,
    tolerance_change: float = 1e-9,
) -> tuple[Point, int]:
    """Search a line for a point that satisfies the strong Wolfe conditions; return it and how often it looked.

    `largest` is the largest element of the direction: brackets narrower than the tolerance end the search, and so do `most`
    looks after the first.
    """

    def too_high(point: Point) -> bool:
        return bool(point.loss > start.loss + c1 * point.t * start.slope)

    def flat(point: Point) -> bool:
        return bool(abs(point.slope) <= -c2 * start.slope)

    before, here = start, look(t)
    evaluations, rounds = 1, 0
    bracket: list[Point] | None = None
    while rounds < most:
        if too_high(here) or (rounds > 1 and here.loss >= before.loss):
            bracket = [before, here]
            break
        if flat(here):
            return here, evaluations
        if here.slope >= 0:
            bracket = [before, here]
            break
        t = cubic_minimum(before, here, (here.t + 0.01 * (here.t - before.t), here.t * 10))
        before, here = here, look(t)
        evaluations += 1
        rounds += 1
    if bracket is None:
        bracket = [start, here]
    low = 0 if bracket[0].loss <= bracket[1].loss else 1
    stuck = False
    while rounds < most:
        left, right = sorted((bracket[0].t, bracket[1].t))
        if (right - left) * largest < tolerance_change:
            break
        t = cubic_minimum(bracket[0], bracket[1])
        margin = 0.1 * (right - left)
        if min(right - t, t - left) < margin:
            if stuck or t >= right or t <= left:
                t = right - margin if abs(t - right) < abs(t - left) else left + margin
                stuck = False
            else:
                stuck = True
        else:
            stuck = False
        here = look(t)
        evaluations += 1
        rounds += 1
        if too_high(here) or here.loss >= bracket[low].loss:
            bracket[1 - low] = here
            low = 0 if bracket[0].loss <= bracket[1].loss else 1
            continue
        if flat(here):
            return here, evaluations
        if here.slope * (bracket[1 - low].t - bracket[low].t) >= 0:
            bracket[1 - low] = bracket[low]
        bracket[low] = here
    return bracket[low], evaluations


def _number(loss: Any) -> float:
    """Return a loss as a number: that of the whole if it lies on a mesh, or processes would go different ways."""
    return float(loss._replicated() if hasattr(loss, "_replicated") else loss)


class LBFGS(Optimizer):
    """Quasi-Newton steps; `closure` is called several times a step.

    Example:
        >>> w = torch.tensor([3.0, -4.0], requires_grad=True)
        >>> optimizer = torch.optim.LBFGS([w], line_search_fn="strong_wolfe")
        >>> def closure():
        ...     optimizer.zero_grad()
        ...     loss = (w - 1).square().sum()
        ...     loss.backward()
        ...     return loss
        >>> _ = optimizer.step(closure)
        >>> torch.allclose(w, torch.ones(2), atol=1e-4)
        True
    """

    def __init__(
        self,
        params: ParamsT,
        lr: Any = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_lr(lr)
        defaults = {
            "lr": lr,
            "max_iter": max_iter,
            "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
            "tolerance_grad": tolerance_grad,
            "tolerance_change": tolerance_change,
            "history_size": history_size,
            "line_search_fn": line_search_fn,
        }
        super().__init__(params, defaults)
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")
        self._params = self.param_groups[0]["params"]

    def __getstate__(self) -> dict[str, Any]:
        return {**super().__getstate__(), "_params": self._params}

    # ---- all parameters as one vector ----
    def _gather_flat_grad(self) -> Any:
        parts = []
        for p in self._params:
            g = p.new_zeros(p.shape) if p.grad is None else p.grad
            parts.append((view_as_real(g) if p.is_complex() else g).reshape(-1))
        return cat(parts)

    def _move(self, t: Any, direction: Any) -> None:
        at, t = 0, _get_value(t)
        for p in self._params:
            target = view_as_real(p) if p.is_complex() else p
            target.add_(direction[at : at + target.numel()].view_as(target), alpha=t)
            at += target.numel()

    def _clone_param(self) -> list[Any]:
        return [p.clone() for p in self._params]

    def _set_param(self, values: list[Any]) -> None:
        for p, value in zip(self._params, values, strict=True):
            p.copy_(value)

    # ---- one step ----
    def _direction(self, state: dict[str, Any], memory: dict[str, Any], gradient: Any, history_size: int) -> Any:
        """Return where to go: downhill at first, then as the last gradients have bent."""
        if state["n_iter"] == 1:
            memory.update(old_dirs=[], old_stps=[], ro=[], H_diag=1)
            return gradient.neg()
        changes, steps, ro = memory["old_dirs"], memory["old_stps"], memory["ro"]
        change = gradient.sub(memory["prev_flat_grad"])
        step = memory["d"].mul(memory["t"])
        curvature = change.dot(step)
        if curvature.item() > LEAST_CURVATURE:
            if len(changes) == history_size:
                for kept in (changes, steps, ro):
                    kept.pop(0)
            changes.append(change)
            steps.append(step)
            ro.append(1.0 / curvature)
            memory["H_diag"] = curvature / change.dot(change)
        weights = state.setdefault("al", [None] * history_size)
        q = gradient.neg()
        for at in range(len(changes) - 1, -1, -1):
            weights[at] = steps[at].dot(q) * ro[at]
            q.add_(changes[at], alpha=-weights[at].item())
        r = q.mul_(memory["H_diag"])
        for at in range(len(changes)):
            r.add_(steps[at], alpha=(weights[at] - changes[at].dot(r) * ro[at]).item())
        return r

    @_use_grad_for_differentiable
    def step(self, closure: Callable[[], Any]) -> Any:
        """Take up to `max_iter` steps; `closure` clears the gradients, computes the loss and calls backward."""
        group = self.param_groups[0]
        rate = _to_scalar(group["lr"])
        state = self.state[self._params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        def evaluate() -> Any:
            return loss_of(closure)

        first_loss = evaluate()
        loss, evaluations = _number(first_loss), 1
        state["func_evals"] += 1
        gradient = self._gather_flat_grad()
        if _largest(gradient) <= group["tolerance_grad"]:
            return first_loss
        memory = {name: state.get(name) for name in MEMORY}
        for round_ in range(1, group["max_iter"] + 1):
            state["n_iter"] += 1
            direction = self._direction(state, memory, gradient, group["history_size"])
            previous_loss = loss
            t = min(1.0, 1.0 / gradient.abs().sum()) * rate if state["n_iter"] == 1 else rate
            memory.update(d=direction, t=t, prev_flat_grad=gradient.clone(), prev_loss=previous_loss)
            slope = gradient.dot(direction)
            if slope > -group["tolerance_change"]:
                break
            looked, last = 0, round_ == group["max_iter"]
            if group["line_search_fn"] is not None:
                if group["line_search_fn"] != "strong_wolfe":
                    raise RuntimeError("only 'strong_wolfe' is supported")
                start, most = Point(0, loss, gradient, slope), group["max_eval"] - evaluations
                found, looked = self._search(evaluate, direction, t, start, most)
                loss, gradient, t = found.loss, found.gradient, found.t
                memory["t"] = t
                self._move(t, direction)
            else:
                self._move(t, direction)
                if not last:
                    loss, gradient, looked = _number(evaluate()), self._gather_flat_grad(), 1
            evaluations += looked
            state["func_evals"] += looked
            if (
                last
                or evaluations >= group["max_eval"]
                or _largest(gradient) <= group["tolerance_grad"]
                or _largest(direction.mul(t)) <= group["tolerance_change"]
                or abs(loss - previous_loss) < group["tolerance_change"]
            ):
                break
        state.update(memory)
        return first_loss

    def _search(
        self, evaluate: Callable[[], Any], direction: Any, t: Any, start: Point, most: int
    ) -> tuple[Point, int]:
        origin = self._clone_param()

        def look(t: Any) -> Point:
            self._move(t, direction)
            loss = _number(evaluate())
            gradient = self._gather_flat_grad()
            self._set_param(origin)
            return Point(t, loss, gradient, gradient.dot(direction))

        return strong_wolfe(look, start, t, direction.abs().max(), most)


def _largest(vector: Any) -> float:
    return vector.abs().max().item()  # type: ignore[no-any-return]


__all__ = ["LBFGS"]
