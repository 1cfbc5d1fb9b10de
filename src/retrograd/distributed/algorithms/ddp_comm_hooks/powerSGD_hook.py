"""torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook: gradients sent as products of two narrow matrices.

A gradient M is approximated by P Qᵗ: P = M Q is summed and made orthonormal, then Q = Mᵗ P is averaged. What is lost is added to the next
gradient (Vogels, Karimireddy, Jaggi: PowerSGD, 2019).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from ...._absent import finder
from ...._dtypes import bfloat16, float16
from ....futures import Future
from ....linalg import qr
from ....random import fork_rng, manual_seed
from ....tensor._functions.joining import cat
from ....tensor._functions.random_tensors import randn
from ..._collectives import all_reduce
from ..._groups import _get_default_group, need_group
from .default_hooks import allreduce_hook


class PowerSGDState:
    """The choices of the hook, and what it keeps from step to step: errors, and the matrices to begin with."""

    def __init__(
        self,
        process_group: Any,
        matrix_approximation_rank: int = 1,
        start_powerSGD_iter: int = 1000,  # noqa: N803 - torch's name
        min_compression_rate: float = 2,
        use_error_feedback: bool = True,
        warm_start: bool = True,
        orthogonalization_epsilon: float = 0,
        random_seed: int = 0,
        compression_stats_logging_frequency: int = 10_000,
        batch_tensors_with_same_shape: bool = False,
    ) -> None:
        if (use_error_feedback or warm_start) and start_powerSGD_iter <= 1:
            raise ValueError(
                "Expect `start_powerSGD_iter` > 1 if `use_error_feedback` or `warm_start` is enabled, because PowerSGD can only "
                "be applied after the first two iterations in DDP."
            )
        self.process_group = process_group
        self.matrix_approximation_rank = matrix_approximation_rank
        self.start_powerSGD_iter = start_powerSGD_iter
        self.min_compression_rate = min_compression_rate
        self.use_error_feedback, self.warm_start = use_error_feedback, warm_start
        self.orthogonalization_epsilon = orthogonalization_epsilon
        self.rng = np.random.RandomState(random_seed)
        self.error_dict: dict[int, Any] = {}
        self.q_memory_dict: dict[int, list[Any]] = {}
        self.iter = 0
        self.total_numel_before_compression = self.total_numel_after_compression = 0
        self.compression_stats_logging_frequency = max(1, compression_stats_logging_frequency)
        self.batch_tensors_with_same_shape = batch_tensors_with_same_shape

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in self.__dict__.items() if name != "process_group"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, process_group=_get_default_group())

    def maybe_increase_iter(self, bucket: Any) -> None:
        """Count a step when its last bucket comes."""
        self.iter += bool(bucket.is_last())

    def compression_stats(self) -> tuple[float, int, int]:
        """Return how many times less is sent, and how many numbers there were and were sent."""
        before, after = self.total_numel_before_compression, self.total_numel_after_compression
        return before / after if after else 0, before, after


def powerSGD_hook(state: PowerSGDState, bucket: Any) -> Any:  # noqa: N802 - torch's name
    """Average a bucket approximately. Its collectives follow each other at once: so all processes start them in one order."""
    group = need_group(state.process_group)
    if state.iter < state.start_powerSGD_iter:
        state.maybe_increase_iter(bucket)
        return allreduce_hook(group, bucket)
    buffer, index = bucket.buffer(), bucket.index()
    given = None
    if state.use_error_feedback:
        if index in state.error_dict:
            buffer.add_(state.error_dict[index])
        given = buffer.clone()
    matrices, whole = _divided(state, bucket)
    starts = _starts(state, index, matrices)
    _sum_together(whole, group, group.size())
    products = [matrix @ q for matrix, q in zip(matrices, starts, strict=True)]
    _sum_together(products, group)
    for p in products:
        _orthogonalize(p, state.orthogonalization_epsilon)
    factors = [matrix.t() @ p for matrix, p in zip(matrices, products, strict=True)]
    _sum_together(factors, group, group.size())
    for matrix, p, q in zip(matrices, products, factors, strict=True):
        matrix.copy_(p @ q.t())
    if given is not None:
        state.error_dict[index] = given - buffer
    if state.warm_start:
        state.q_memory_dict[index] = factors
    state.maybe_increase_iter(bucket)
    done: Any = Future()
    done.set_result(buffer)
    return done


def _divided(state: PowerSGDState, bucket: Any) -> tuple[list[Any], list[Any]]:
    """Return the gradients of a bucket that are worth approximating, as matrices, and the others."""
    matrices: list[Any] = []
    whole: list[Any] = []
    for gradient in bucket.gradients():
        matrix = gradient.view(gradient.shape[0], -1) if gradient.dim() else gradient.view(1, 1)
        n, m = matrix.shape
        sent = (n + m) * min(n, m, state.matrix_approximation_rank)
        worth = sent * state.min_compression_rate < n * m
        state.total_numel_before_compression += n * m
        state.total_numel_after_compression += sent if worth else n * m
        (matrices if worth else whole).append(matrix)
    return matrices, whole


def _starts(state: PowerSGDState, index: int, matrices: list[Any]) -> list[Any]:
    """Return the matrices Q to begin with: those of the last step, or random ones, the same in all processes."""
    starts = state.q_memory_dict.get(index)
    if starts is None:
        with fork_rng(devices=[]):
            manual_seed(state.rng.randint(1_000_000_000))
            ranks = [min(*one.shape, state.matrix_approximation_rank) for one in matrices]
            starts = [
                randn(one.shape[1], rank, dtype=one.dtype).to(one.device)
                for one, rank in zip(matrices, ranks, strict=True)
            ]
    for q in starts:
        _orthogonalize(q, state.orthogonalization_epsilon)
    return starts


def _sum_together(tensors: list[Any], group: Any, divisor: int = 1) -> None:
    """Sum tensors over the processes, in place, as one row, and divide."""
    if not tensors:
        return
    row = cat([one.reshape(-1) for one in tensors])
    all_reduce(row, group=group)
    if divisor != 1:
        row.div_(divisor)
    for one, part in zip(tensors, row.split([one.numel() for one in tensors]), strict=True):
        one.copy_(part.view(one.shape))


def _orthogonalize(matrix: Any, epsilon: float) -> None:
    """Make the columns of a matrix orthonormal, in place. A column of zeros stays one where `epsilon` is positive."""
    rank = matrix.shape[1]
    if rank > 2 and matrix.dtype not in (float16, bfloat16):
        matrix.copy_(qr(matrix)[0])
        return
    for at in range(rank):
        column = matrix[:, at : at + 1]
        column.div_(column.norm() + epsilon)
        if at + 1 < rank:
            rest = matrix[:, at + 1 :]
            rest.sub_((column * rest).sum(0, keepdim=True) * column)


__getattr__ = finder("torch.distributed.algorithms.ddp_comm_hooks.powerSGD_hook")
__all__ = ["PowerSGDState", "powerSGD_hook"]
