"""Tables of vectors that are looked up by index."""

from __future__ import annotations

from typing import Any, Self

from ..._modes import using
from ...tensor._functions.creation import empty
from ...tensor._tensor import Tensor
from .. import functional as F  # noqa: N812 - torch's name
from .. import init
from ..parameter import make_parameter
from .module import Module


class _Table(Module):
    """What Embedding and EmbeddingBag have in common."""

    num_embeddings: int
    embedding_dim: int
    padding_idx: int | None
    max_norm: float | None
    norm_type: float
    scale_grad_by_freq: bool
    sparse: bool
    weight: Tensor

    def _hold(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None,
        weight: Any,
        device: Any,
        dtype: Any,
        freeze: bool = False,
    ) -> None:
        """Take a table, or draw one."""
        self.num_embeddings = num_embeddings
        self.embedding_dim = embedding_dim
        if padding_idx is not None:
            if not -num_embeddings <= padding_idx < num_embeddings:
                raise AssertionError("Padding_idx must be within num_embeddings")
            padding_idx %= num_embeddings
        self.padding_idx = padding_idx
        if weight is not None and list(weight.shape) != [num_embeddings, embedding_dim]:
            raise AssertionError("Shape of weight does not match num_embeddings and embedding_dim")
        table = empty((num_embeddings, embedding_dim), device=device, dtype=dtype) if weight is None else weight
        self.weight = make_parameter(table, requires_grad=not freeze)
        if weight is None:
            self.reset_parameters()

    def _options_shown(self) -> str:
        """Return what both kinds say of the options that are not as they are by default."""
        shown = {
            "max_norm": self.max_norm is not None,
            "norm_type": self.norm_type != 2,
            "scale_grad_by_freq": self.scale_grad_by_freq is not False,
        }
        return "".join([f", {name}={getattr(self, name)}" for name, there in shown.items() if there])

    def reset_parameters(self) -> None:
        """Draw the table again; the padding is 0."""
        init.normal_(self.weight)
        self._fill_padding_idx_with_zero()

    def _fill_padding_idx_with_zero(self) -> None:
        if self.padding_idx is not None:
            with using(grad=False):
                self.weight[self.padding_idx].fill_(0)


def _refuse_other_ranks(embeddings: Any) -> None:
    if embeddings.dim() != 2:
        raise AssertionError("Embeddings parameter is expected to be 2-dimensional")


class Embedding(_Table):
    """Looks up rows of a learned table by their indices.

    Args:
        num_embeddings: how many rows
        embedding_dim: how long they are
        padding_idx: a row of zeros that gets no gradient
        max_norm: shorten rows that are used and longer than this
        norm_type: the order of that norm
        scale_grad_by_freq: divide gradients by how often a row is used
        sparse: refused where a gradient is needed: gradients are dense
        _weight: the table, if there is one
        _freeze: whether the table is learned
        device: where the parameters are
        dtype: their dtype

    Shape:
        indices (...) to (..., embedding_dim).

    Example:
        >>> nn.Embedding(10, 3)(torch.tensor([[1, 2, 4]])).shape
        torch.Size([1, 3, 3])
    """

    __constants__ = ["num_embeddings", "embedding_dim", "padding_idx", "max_norm", "norm_type", "scale_grad_by_freq", "sparse"]  # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
        _weight: Any = None,
        _freeze: bool = False,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self._hold(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype, _freeze)
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self.sparse = sparse

    def forward(self, input: Any) -> Any:
        return F.embedding(
            input,
            self.weight,
            self.padding_idx,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.sparse,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}"
        if self.padding_idx is not None:
            text += f", padding_idx={self.padding_idx}"
        text += self._options_shown()
        return f"{text}, sparse=True" if self.sparse is not False else text

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        padding_idx: int | None = None,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        sparse: bool = False,
    ) -> Self:
        """Make a module of a table that exists."""
        _refuse_other_ranks(embeddings)
        count, size = embeddings.shape
        return cls(
            num_embeddings=count,
            embedding_dim=size,
            _weight=embeddings,
            _freeze=freeze,
            padding_idx=padding_idx,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            sparse=sparse,
        )


class EmbeddingBag(_Table):
    """A table of vectors: returns sums, means or maxima of bags of them."""

    __constants__ = ["num_embeddings", "embedding_dim", "max_norm", "norm_type", "scale_grad_by_freq", "mode", "sparse", "include_last_offset", "padding_idx"]  # noqa: E501 # fmt: skip

    def __init__(
        self,
        num_embeddings: int,
        embedding_dim: int,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        _weight: Any = None,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
        device: Any = None,
        dtype: Any = None,
    ) -> None:
        super().__init__()
        self.max_norm = max_norm
        self.norm_type = norm_type
        self.scale_grad_by_freq = scale_grad_by_freq
        self._hold(num_embeddings, embedding_dim, padding_idx, _weight, device, dtype)
        self.mode = mode
        self.sparse = sparse
        self.include_last_offset = include_last_offset

    def forward(self, input: Any, offsets: Any = None, per_sample_weights: Any = None) -> Any:
        return F.embedding_bag(
            input,
            self.weight,
            offsets,
            self.max_norm,
            self.norm_type,
            self.scale_grad_by_freq,
            self.mode,
            self.sparse,
            per_sample_weights,
            self.include_last_offset,
            self.padding_idx,
        )

    def extra_repr(self) -> str:
        text = f"{self.num_embeddings}, {self.embedding_dim}{self._options_shown()}, mode={self.mode!r}"
        return text if self.padding_idx is None else f"{text}, padding_idx={self.padding_idx}"

    @classmethod
    def from_pretrained(
        cls,
        embeddings: Any,
        freeze: bool = True,
        max_norm: float | None = None,
        norm_type: float = 2.0,
        scale_grad_by_freq: bool = False,
        mode: str = "mean",
        sparse: bool = False,
        include_last_offset: bool = False,
        padding_idx: int | None = None,
    ) -> Self:
        """Make a module of a table that exists."""
        _refuse_other_ranks(embeddings)
        count, size = embeddings.shape
        bag = cls(
            num_embeddings=count,
            embedding_dim=size,
            _weight=embeddings,
            max_norm=max_norm,
            norm_type=norm_type,
            scale_grad_by_freq=scale_grad_by_freq,
            mode=mode,
            sparse=sparse,
            include_last_offset=include_last_offset,
            padding_idx=padding_idx,
        )
        bag.weight.requires_grad = not freeze
        return bag


__all__ = ["Embedding", "EmbeddingBag"]
