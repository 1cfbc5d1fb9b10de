"""An output layer for very many classes of unequal frequency."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from ...tensor._functions.creation import empty_like, zeros
from .. import functional as F  # noqa: N812 - torch's name
from .container import ModuleList, Sequential
from .linear import Linear
from .module import Module


class _ASMoutput(NamedTuple):
    """The log-probabilities of the targets, and their mean, negative."""

    output: Any
    loss: Any


class AdaptiveLogSoftmaxWithLoss(Module):
    """Frequent classes and the clusters of rarer ones share a head; each cluster has a smaller layer of its own."""

    in_features: int
    n_classes: int
    cutoffs: list[int]
    div_value: float
    head_bias: bool
    head: Linear
    tail: ModuleList

    def __init__(
        self,
        in_features: int,
        n_classes: int,
        cutoffs: Sequence[int],
        div_value: float = 4.0,
        head_bias: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        cutoffs = list(cutoffs)
        if not cutoffs:
            raise ValueError("cutoffs should be a sequence of length larger than 0")
        if (
            cutoffs != sorted(cutoffs)
            or min(cutoffs) <= 0
            or max(cutoffs) > n_classes - 1
            or len(set(cutoffs)) != len(cutoffs)
            or any(int(one) != one for one in cutoffs)
        ):
            raise ValueError(
                "cutoffs should be a sequence of unique, positive integers sorted in an increasing order, where each value is "
                "between 1 and n_classes-1"
            )
        self.in_features = in_features
        self.n_classes = n_classes
        self.cutoffs = [*cutoffs, n_classes]
        self.div_value = div_value
        self.head_bias = head_bias
        self.shortlist_size = self.cutoffs[0]
        self.n_clusters = len(self.cutoffs) - 1
        self.head_size = self.shortlist_size + self.n_clusters
        self.head = Linear(in_features, self.head_size, bias=head_bias, device=device, dtype=dtype)
        self.tail = ModuleList()
        for k in range(self.n_clusters):
            inner = int(in_features // (div_value ** (k + 1)))
            outer = self.cutoffs[k + 1] - self.cutoffs[k]
            self.tail.append(
                Sequential(
                    Linear(in_features, inner, bias=False, device=device, dtype=dtype),
                    Linear(inner, outer, bias=False, device=device, dtype=dtype),
                )
            )

    def reset_parameters(self) -> None:
        """Draw all weights again."""
        self.head.reset_parameters()
        for cluster in self.tail:
            for layer in cluster.children():
                layer.reset_parameters()

    def forward(self, input_: Any, target_: Any) -> _ASMoutput:
        rank = target_.dim()
        if rank > 1:
            raise RuntimeError("0D or 1D target tensor expected, multi-target not supported")
        if rank == 1 and input_.shape[0] != target_.shape[0]:
            raise RuntimeError("Input and target should have the same size in the batch dimension.")
        if input_.dim() != rank + 1:
            expected = "2D" if rank == 1 else "1D"
            raise RuntimeError(
                f"{rank}D target tensor expects {expected} input tensors, but found inputs with size {input_.size()}"
            )
        input, target = (input_, target_) if rank else (input_.unsqueeze(0), target_.unsqueeze(0))
        output = self._of_targets(input, target)
        if not rank:
            output = output.squeeze(0)
        return _ASMoutput(output, (-output).mean())

    def _of_targets(self, input: Any, target: Any) -> Any:
        """Return the log-probability of each target."""
        used = 0
        count = target.size(0)
        output = zeros(count, dtype=input.dtype, device=input.device)
        places = empty_like(target)
        edges = [0, *self.cutoffs]
        for k in range(len(edges) - 1):
            low, high = edges[k], edges[k + 1]
            mask = (target >= low) & (target < high)
            rows = mask.nonzero().squeeze()
            if rows.numel() == 0:
                continue
            if k == 0:
                places.index_copy_(0, rows, target[mask])
            else:
                relative = target[mask] - low
                cluster = self.tail[k - 1](input.index_select(0, rows))
                places.index_fill_(0, rows, self.shortlist_size + k - 1)
                log_probability = F.log_softmax(cluster, dim=1)
                local = log_probability.gather(1, relative.unsqueeze(1))
                output.index_copy_(0, rows, local.squeeze(1))
            used += rows.numel()
        if used != count:
            raise RuntimeError(
                f"Target values should be in [0, {self.n_classes - 1}], but values in range [{target.min().item()}, "
                f"{target.max().item()}] were found. "
            )
        head = F.log_softmax(self.head(input), dim=1)
        return output + head.gather(1, places.unsqueeze(1)).squeeze()

    def _get_full_log_prob(self, input: Any, head_output: Any) -> Any:
        out = input.new_empty((head_output.size(0), self.n_classes))
        head = F.log_softmax(head_output, dim=1)
        out[:, : self.shortlist_size] = head[:, : self.shortlist_size]
        for k, (start, stop) in enumerate(zip(self.cutoffs, self.cutoffs[1:], strict=False)):
            cluster = F.log_softmax(self.tail[k](input), dim=1)
            out[:, start:stop] = cluster + head[:, self.shortlist_size + k].unsqueeze(1)
        return out

    def log_prob(self, input: Any) -> Any:
        """Return the log-probabilities of all classes."""
        return self._get_full_log_prob(input, self.head(input))

    def predict(self, input: Any) -> Any:
        """Return the likeliest class of each row, without computing clusters that are not chosen."""
        head = self.head(input)
        output = head.argmax(dim=1)
        outside = output >= self.shortlist_size
        if not outside.any():
            return output
        if outside.all():
            return self._get_full_log_prob(input, head).argmax(dim=1)
        output[outside] = self._get_full_log_prob(input[outside], head[outside]).argmax(dim=1)
        return output


__all__ = ["AdaptiveLogSoftmaxWithLoss"]
