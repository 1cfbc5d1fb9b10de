"""Sequences of different lengths in one batch: padded, or packed step by step."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any, NamedTuple

from ..._ops.recurrent_packing import pack_steps, pad_steps
from ..._public import set_all
from ..._tracebacks import guarded
from ...tensor._functions.creation import as_tensor, empty_like, tensor
from ...tensor._functions.order import sort
from ...tensor._functions.ranges import arange
from ...tensor._functions.shape import transpose
from ...tensor._recording.operands import not_a_tensor
from ...tensor._recording.record import record
from ...tensor._tensor import Tensor


class PackedSequence_(NamedTuple):  # noqa: N801 - torch's name
    """The fields of a PackedSequence."""

    data: Any
    batch_sizes: Any
    sorted_indices: Any
    unsorted_indices: Any


def _cast(name: str, dtype: str) -> Callable[[Any], PackedSequence]:
    """Make the method that casts the data."""

    def cast(self: Any) -> PackedSequence:
        data = getattr(self.data, name)()
        return self if data is self.data else self._replace(data=data)  # type: ignore[no-any-return]

    cast.__name__, cast.__qualname__, cast.__doc__ = name, f"PackedSequence.{name}", f"Cast the data to {dtype}."
    return cast


class PackedSequence(PackedSequence_):
    """A batch of sequences without padding: `data` has, step by step, the entries of those that are long enough.

    `batch_sizes` says how many each step has. The sequences are sorted by length; `sorted_indices` says where they stood before.
    """

    def __new__(
        cls, data: Any, batch_sizes: Any = None, sorted_indices: Any = None, unsorted_indices: Any = None
    ) -> PackedSequence:
        if batch_sizes is None:
            if not isinstance(data, (list, tuple)) or len(data) != 2:
                raise AssertionError("Expected data to be a list or tuple of length 2")
            data, batch_sizes = data
        if batch_sizes.device.type != "cpu":
            raise ValueError(
                "batch_sizes should always be on CPU. Instances of PackedSequence should never be created manually. "
                "They should be instantiated by functions like pack_sequence and pack_padded_sequence in "
                "nn.utils.rnn. https://pytorch.org/docs/stable/nn.html#torch.nn.utils.rnn.pack_sequence"
            )
        if unsorted_indices is None:
            unsorted_indices = invert_permutation(sorted_indices)
        return super().__new__(cls, data, batch_sizes, sorted_indices, unsorted_indices)

    def to(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Cast or move the data; the indices move along, and keep their dtype."""
        for name in ("copy", "memory_format"):
            if name in kwargs:
                raise RuntimeError(f".to() does not accept {name} argument")
        data = self.data.to(*args, **kwargs)
        if data is self.data:
            return self
        moved = [None if one is None else one.to(data.device) for one in (self.sorted_indices, self.unsorted_indices)]
        return type(self)(data, self.batch_sizes, *moved)

    def pin_memory(self) -> PackedSequence:
        """Call Tensor.pin_memory on all parts."""
        return type(self)(*[None if part is None else part.pin_memory() for part in self])

    def cuda(self, *args: Any, **kwargs: Any) -> PackedSequence:
        """Move the data to a CUDA device."""
        return self.to(self.data.cuda(*args, **kwargs).device)

    def cpu(self) -> PackedSequence:
        """Move the data to the CPU."""
        return self.to("cpu")

    double, float, half = _cast("double", "float64"), _cast("float", "float32"), _cast("half", "float16")
    long, int, short = _cast("long", "int64"), _cast("int", "int32"), _cast("short", "int16")
    char, byte = _cast("char", "int8"), _cast("byte", "uint8")

    @property
    def is_cuda(self) -> bool:
        """Whether the data is on a CUDA device."""
        return bool(self.data.is_cuda)

    def is_pinned(self) -> bool:
        """Tell whether the data is in pinned memory."""
        return bool(self.data.is_pinned())


def invert_permutation(permutation: Any) -> Any:
    """Return the permutation that undoes another; None stays None."""
    if permutation is None:
        return None
    output = empty_like(permutation)
    output[permutation] = arange(0, permutation.numel(), device=permutation.device)
    return output


@guarded
def pack_padded_sequence(
    input: Any, lengths: Any, batch_first: bool = False, enforce_sorted: bool = True
) -> PackedSequence:
    """Pack a padded batch; without `enforce_sorted` the sequences may have any order of lengths.

    Args:
        input: (L, N, *), or (N, L, *)
        lengths: the length of each sequence
        batch_first: which of the two
        enforce_sorted: the sequences come with the longest first; False sorts them

    Example:
        >>> packed = nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        >>> packed.data, packed.batch_sizes
        (tensor([1, 3, 2]), tensor([2, 1]))
    """
    lengths = lengths.long() if isinstance(lengths, Tensor) else as_tensor(lengths, device="cpu").long()
    sorted_indices = None
    if not enforce_sorted:
        lengths, sorted_indices = sort(lengths, descending=True)
        sorted_indices = sorted_indices.to(input.device)
        input = input.index_select(0 if batch_first else 1, sorted_indices)
    if not isinstance(input, Tensor):
        raise TypeError(not_a_tensor("_pack_padded_sequence", 1, input, "input"))
    sizes = _sizes_of(input, lengths, batch_first)
    steps = transpose(input, 0, 1) if batch_first else input
    if len(sizes) > steps.shape[0]:
        raise RuntimeError(
            f"Expected lengths of at most {steps.shape[0]}, which is the number of steps in the input, but got "
            f"{len(sizes)}"
        )
    data = record(pack_steps, (steps,), {"sizes": tuple(sizes)}, "PackPaddedSequenceBackward0")
    return PackedSequence(data, tensor(sizes, device="cpu"), sorted_indices, None)


def _sizes_of(input: Any, lengths: Any, batch_first: bool) -> list[int]:
    """Return how many sequences each step has."""
    if not input.numel():
        raise RuntimeError("Cannot pack empty tensors.")
    if lengths.ndim != 1:
        raise RuntimeError(
            f"'lengths' argument should be a 1D CPU int64 tensor, but got {lengths.ndim}D {lengths.device} Long tensor"
        )
    if input.ndim < 2:
        raise IndexError("Dimension out of range (expected to be in range of [-1, 0], but got 1)")
    batch = input.shape[0 if batch_first else 1]
    counts = lengths.tolist()
    if len(counts) != batch:
        raise RuntimeError(
            f"Expected `len(lengths)` to be equal to batch_size, but got {len(counts)} (batch_size={batch})"
        )
    if min(counts) <= 0:
        raise RuntimeError(
            "Length of all samples has to be greater than 0, but found an element in 'lengths' that is <= 0"
        )
    if counts != sorted(counts, reverse=True):
        raise RuntimeError(
            "`lengths` array must be sorted in decreasing order when `enforce_sorted` is True. You can pass "
            "`enforce_sorted=False` to pack_padded_sequence and/or pack_sequence to sidestep this requirement if you "
            "do not need ONNX exportability."
        )
    sizes, step = [], 0
    for size in range(batch, 0, -1):
        sizes += [size] * (counts[size - 1] - step)
        step = counts[size - 1]
    return sizes


@guarded
def pad_packed_sequence(
    sequence: PackedSequence, batch_first: bool = False, padding_value: float = 0.0, total_length: int | None = None
) -> tuple[Any, Any]:
    """Undo packing: the padded batch in its first order, and the lengths.

    Args:
        sequence: packed sequences
        batch_first: (N, L, *) instead of (L, N, *)
        padding_value: what fills the rest
        total_length: the smallest L

    Returns:
        The padded sequences, and their lengths.

    Example:
        >>> packed = nn.utils.rnn.pack_padded_sequence(torch.tensor([[1, 2], [3, 0]]), [2, 1], batch_first=True)
        >>> nn.utils.rnn.pad_packed_sequence(packed, batch_first=True)
        (tensor([[1, 2],
                [3, 0]]), tensor([2, 1]))
    """
    sizes = sequence.batch_sizes.tolist()
    if total_length is not None and total_length < len(sizes):
        raise ValueError(
            "Expected total_length to be at least the length of the longest sequence in input, but got "
            f"total_length={total_length} and max sequence length being {len(sizes)}"
        )
    lengths = tensor([sum(size > k for size in sizes) for k in range(sizes[0])], device="cpu")
    data = sequence.data
    steps = len(sizes) if total_length is None else total_length
    shape = (steps, sizes[0], *data.shape[1:])
    padded = record(pad_steps, (data,), {"sizes": tuple(sizes), "shape": shape}, "PadPackedSequenceBackward0")
    if padding_value:
        beyond = arange(steps).unsqueeze(1) >= lengths
        beyond = beyond.to(data.device).reshape(*shape[:2], *(1,) * (data.ndim - 1))
        padded = padded.masked_fill(beyond, padding_value)
    if batch_first:
        padded = transpose(padded, 0, 1)
    unsorted = sequence.unsorted_indices
    if unsorted is None:
        return padded, lengths
    return padded.index_select(0 if batch_first else 1, unsorted), lengths[unsorted.cpu()]


@guarded
def pad_sequence(
    sequences: Any, batch_first: bool = False, padding_value: float = 0.0, padding_side: str = "right"
) -> Any:
    """Stack sequences of different lengths, padded at the end or at the beginning.

    Args:
        sequences: tensors (L, *) of different lengths L
        batch_first: (N, L, *) instead of (L, N, *)
        padding_value: what fills the rest
        padding_side: "right" or "left"

    Example:
        >>> nn.utils.rnn.pad_sequence([torch.tensor([1, 2, 3]), torch.tensor([4])], batch_first=True)
        tensor([[1, 2, 3],
                [4, 0, 0]])
    """
    if not isinstance(sequences, Iterable):
        raise RuntimeError(
            f"pad_sequence: Expected iterable for input sequences, but got arg of type: {type(sequences)}"
        )
    sequences = tuple(sequences)
    if not sequences:
        raise RuntimeError("received an empty list of sequences")
    if padding_side not in ("left", "right"):
        raise RuntimeError(f"Expected padding_side to be one of left or right, but got {padding_side}.")
    for k, one in enumerate(sequences):
        if not isinstance(one, Tensor):
            raise TypeError(f"expected Tensor as element {k} in argument 0, but got {type(one).__name__}")
        if not one.ndim:
            raise RuntimeError("ArrayRef: invalid slice, N = 1; size = 0")
    longest, trailing = max(one.shape[0] for one in sequences), tuple(sequences[0].shape[1:])
    lead = (len(sequences), longest) if batch_first else (longest, len(sequences))
    out = sequences[0].new_full((*lead, *trailing), padding_value)
    for k, one in enumerate(sequences):
        length = one.shape[0]
        where = slice(longest - length, longest) if padding_side == "left" else slice(length)
        (out[k, where] if batch_first else out[where, k]).copy_(one)
    return out


@guarded
def unpad_sequence(padded_sequences: Any, lengths: Any, batch_first: bool = False) -> list[Any]:
    """Cut a padded batch into its sequences."""
    if not batch_first:
        padded_sequences = padded_sequences.transpose(0, 1)
    positions = arange(padded_sequences.shape[1], device=lengths.device)
    return [one[positions < length] for one, length in zip(padded_sequences, lengths, strict=False)]


@guarded
def pack_sequence(sequences: Any, enforce_sorted: bool = True) -> PackedSequence:
    """Pack sequences of different lengths."""
    lengths = tensor([one.shape[0] for one in sequences], device="cpu")
    return pack_padded_sequence(pad_sequence(sequences), lengths, enforce_sorted=enforce_sorted)


@guarded
def unpack_sequence(packed_sequences: PackedSequence) -> list[Any]:
    """Return the sequences that were packed, in their first order."""
    padded, lengths = pad_packed_sequence(packed_sequences, batch_first=True)
    return unpad_sequence(padded, lengths, batch_first=True)


set_all(globals(), but="PackedSequence_")
