"""What torch shows of a node: the values it saved, under torch's names, and which of its edges.

A node's rules read names of our own (`x`, `out`, `axis`, `x_shape`). `SAVED_NAMES` gives torch's names for them:
node name -> {torch's name: our attribute, or a function of the node}. What no rule reads, such as the dim as the caller
gave it, is put into the node's `shown` by the operation.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any


def unsigned(value: Any) -> Any:
    """Show a number as torch's nodes do: a negative int64 as uint64."""
    if isinstance(value, (tuple, list)):
        return tuple(unsigned(one) for one in value)
    return value + (1 << 64) if isinstance(value, int) and not isinstance(value, bool) and value < 0 else value


def shown(name: str) -> Callable[[Any], Any]:
    """Read what the operation left in the node's `shown`; nodes that a rule recorded have none."""

    def read(node: Any) -> Any:
        values = getattr(node, "shown", None)
        return None if values is None else unsigned(values[name])

    return read


def index_tensors(node: Any) -> Any:
    """Read the index tensors as they were given, masks included, None for dimensions not indexed."""
    node.check_freed()
    values = getattr(node, "shown", None)
    if values is None:
        return None
    node.check_saved()
    if node.guard is None or "indices" not in node.guard.packed:
        return values["indices"]
    unpacked = iter(node.saved_tensor("indices"))
    return tuple(one if one is None else next(unpacked) for one in values["indices"])


def alpha(node: Any) -> Any:
    """Read the factor of the second operand of add and sub."""
    return getattr(node, "alpha", 1)


def indices(node: Any) -> Any:
    """Read the second output of max, min and sort."""
    node.check_saved(("out",))
    return node.saved_tensor("out")[1]


def numel(node: Any) -> int:
    """Count the elements of the input."""
    count = 1
    for n in node.x_shape:
        count *= n
    return count


SIZES = {"self_sym_sizes": "x_shape"}
DIM = {"dim": shown("dim")}
EXTREME = {**DIM, "keepdim": "keepdims", "result": "out", "self": "x"}
EXTREME_AT = {**DIM, "indices": indices, "keepdim": "keepdims", **SIZES}
OPERANDS = {"other": "y", "self": "x"}
STRIDED = {name: shown(name) for name in ("size", "storage_offset", "stride")}
DIAGONAL = {name: shown(name) for name in ("dim1", "dim2", "offset")}

SAVED_NAMES: dict[str, dict[str, Any]] = {
    "AddBackward0": {"alpha": alpha},
    "SubBackward0": {"alpha": alpha},
    "RsubBackward1": {"alpha": alpha},
    "MulBackward0": OPERANDS,
    "DivBackward0": OPERANDS,
    "WhereBackward0": {"condition": "x"},
    "PowBackward0": {"exponent": "exponent", "self": "x"},
    "PowBackward1": {"exponent": "y", "result": "out", "self": "x"},
    "PowBackward2": {"exponent": "x", "result": "out", "self": "base"},
    "ClampBackward1": {"max": "high", "min": "low", "self": "x"},
    "SumBackward0": SIZES,
    "SumBackward1": {**DIM, "keepdim": "keepdims", **SIZES},
    "MeanBackward0": {"self_sym_numel": numel, **SIZES},
    "MeanBackward1": {**DIM, "keepdim": "keepdims", "self_sym_numel": numel, **SIZES},
    "AmaxBackward0": EXTREME,
    "AminBackward0": EXTREME,
    "MaxBackward1": {"result": "out", "self": "x"},
    "MinBackward1": {"result": "out", "self": "x"},
    "MaxBackward0": EXTREME_AT,
    "MinBackward0": EXTREME_AT,
    "ProdBackward0": {"self": "x"},
    "ProdBackward1": {**DIM, "keepdim": "keepdims", "self": "x"},
    "LogsumexpBackward0": EXTREME,
    "SoftmaxBackward0": {**DIM, "result": "out"},
    "LogSoftmaxBackward0": {**DIM, "result": "out"},
    "CumsumBackward0": DIM,
    "SortBackward0": {**DIM, "indices": indices, **SIZES},
    "SortBackward1": {**DIM, "indices": indices, **SIZES},
    "TopkBackward0": {**DIM, "indices": indices, **SIZES},
    "KthvalueBackward0": EXTREME_AT,
    "MedianBackward0": {"result": "out", "self": "x"},
    "NanmedianBackward0": {"result": "out", "self": "x"},
    "MedianBackward1": EXTREME_AT,
    "NanmedianBackward1": EXTREME_AT,
    "ModeBackward0": EXTREME_AT,
    "NansumBackward0": {**DIM, "keepdim": "keepdims", "self": "x"},
    "CumprodBackward0": {**DIM, "result": "out", "self": "x"},
    "LogcumsumexpBackward0": {**DIM, "result": "out", "self": "x"},
    "CummaxBackward0": {**DIM, "indices": indices},
    "CumminBackward0": {**DIM, "indices": indices},
    "RenormBackward0": {**DIM, "maxnorm": "limit", "p": "p", "self": "x"},
    "MmBackward0": {
        "mat2": "y",
        "mat2_sym_sizes": "y_shape",
        "mat2_sym_strides": lambda node: shown("mat2_sym_strides")(node) if node._edges[1] is not None else (),
        "self": "x",
        "self_sym_sizes": "x_shape",
        "self_sym_strides": lambda node: shown("self_sym_strides")(node) if node._edges[0] is not None else (),
    },
    "MvBackward0": {"self": "x", "vec": "y"},
    "DotBackward0": {"self": "x", "tensor": "y"},
    "BmmBackward0": {"mat2": "y", "self": "x"},
    "CatBackward0": DIM,
    "StackBackward0": DIM,
    "ViewBackward0": SIZES,
    "ReshapeAliasBackward0": SIZES,
    "UnsafeViewBackward0": SIZES,
    "ExpandBackward0": SIZES,
    "PermuteBackward0": {"dims": shown("dims")},
    "TransposeBackward0": {"dim0": shown("dim0"), "dim1": shown("dim1")},
    "TransposeBackward1": {"dim0": shown("dim0"), "dim1": shown("dim1")},
    "TBackward0": {},
    "TBackward1": {},
    "SqueezeBackward0": SIZES,
    "SqueezeBackward1": {**DIM, **SIZES},
    "SqueezeBackward2": {**DIM, **SIZES},
    "SqueezeBackward3": SIZES,
    "SqueezeBackward4": {**DIM, **SIZES},
    "UnsqueezeBackward0": DIM,
    "UnsqueezeBackward1": DIM,
    "SelectBackward0": {**DIM, "index": shown("index"), **SIZES},
    "SliceBackward0": {
        **DIM,
        "end": shown("end"),
        **SIZES,
        "start": shown("start"),
        "step": shown("step"),
    },
    "DiagonalBackward0": {"dim1": shown("dim1"), "dim2": shown("dim2"), "offset": shown("offset"), **SIZES},
    "UnbindBackward0": DIM,
    "SplitBackward0": {**DIM, "self_sym_sizes": lambda node: node.facts[0], "split_size": shown("split_size")},
    "SplitWithSizesBackward0": {
        **DIM,
        "self_sym_sizes": lambda node: node.facts[0],
        "split_sizes": shown("split_sizes"),
    },
    "IndexBackward0": {"indices": index_tensors, **SIZES},
    "IndexSelectBackward0": {**DIM, "index": lambda node: (index_tensors(node) or (None,))[0], **SIZES},
    "GatherBackward0": {**DIM, "index": "indices", "self": "x", "sparse_grad": lambda node: False},
    "ScatterBackward0": {**DIM, "index": "indices"},
    "ScatterBackward1": {**DIM, "index": "indices"},
    "IndexPutBackward0": {"accumulate": shown("accumulate"), "indices": index_tensors},
    "MaskedFillBackward0": {"mask": "y"},
    "MaskedFillBackward1": {"mask": "y"},
    "MaskedScatterBackward0": {"mask": "mask"},
    "TakeBackward0": {"index": "indices"},
    "PutBackward0": {"accumulate": "accumulate", "index": "indices"},
    "ScatterReduceBackward0": {
        "dim": "axis",
        "include_self": "include_self",
        "index": "indices",
        "reduce": "reduce",
        "result": "out",
        "self": "x",
        "src": "src",
    },
    "UnsafeSplitBackward0": {**DIM, "self_sym_sizes": lambda node: node.facts[0], "split_size": shown("split_size")},
    "UnsafeSplitWithSizesBackward0": {
        **DIM,
        "self_sym_sizes": lambda node: node.facts[0],
        "split_sizes": shown("split_sizes"),
    },
    "AsStridedBackward0": STRIDED,
    "AsStridedBackward1": STRIDED,
    "UnfoldBackward0": {"dimension": shown("dimension"), **SIZES, "size": "size", "step": "step"},
    "RollBackward0": {"dims": shown("dims"), "shifts": "shifts"},
    "Rot90Backward0": {"dims": shown("dims"), "k": shown("k")},
    "RepeatBackward0": {"repeats": "counts", **SIZES},
    "ConstantPadNdBackward0": {"pad": shown("pad")},
    "DiagEmbedBackward0": DIAGONAL,
    "BlockDiagBackward0": {},
    "SelectScatterBackward0": {**DIM, "index": shown("index")},
    "SliceScatterBackward0": {**DIM, "end": shown("end"), "start": shown("start"), "step": shown("step")},
    "DiagonalScatterBackward0": DIAGONAL,
    "AsStridedScatterBackward0": STRIDED,
    "FlipBackward0": {"dims": shown("dims")},
    "TrilBackward0": {"diagonal": "k"},
    "TriuBackward0": {"diagonal": "k"},
    "CloneBackward0": {},
    "ToCopyBackward0": {},
}

# Positions of the inputs that torch counts as differentiable, where our primitive has rules for more.
VISIBLE: dict[str, tuple[int, ...]] = {
    "MulBackward1": (0,),
    "DivBackward1": (0,),
    "RsubBackward1": (1,),
    "MaskedFillBackward0": (0,),
    "IndexFillBackward0": (0,),
    "FillBackward0": (0,),
    "LerpBackward0": (0, 1),
    "ScatterBackward1": (0,),
    "MaskedSelectBackward0": (0,),
    **{f"{name}Backward0": (0,) for name in ("Eq", "Ne", "Lt", "Le", "Gt", "Ge")},
    "ClampMinBackward1": (0, 1),
    "ClampMaxBackward1": (0, 2),
    "CopysignBackward1": (0,),
    "XlogyBackward1": (1,),
    "XlogyBackward2": (0,),
    "SpecialXlog1PyBackward1": (1,),
    "SpecialXlog1PyBackward2": (0,),
    "SpecialZetaBackward1": (1,),
    "SpecialZetaBackward2": (0,),
    "RemainderBackward0": (0,),
    "FmodBackward0": (0,),
    **{f"{name}Backward0": (0,) for name in ("NllLoss", "NllLoss2D", "SoftMarginLoss", "MultiMarginLoss", "CtcLoss")},
    "MultilabelMarginLossBackward0": (0,),
    "BinaryCrossEntropyBackward0": (0, 1),
    "BinaryCrossEntropyWithLogitsBackward0": (0, 1),
}
# torch's own names for the classes that are written by hand in C++.
QUALIFIED = frozenset({"AccumulateGrad", "CopyBackwards", "CopySlices", "NotImplemented"})
