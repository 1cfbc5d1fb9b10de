"""torch.onnx: no exporter is here yet, and nothing is being exported.

What libraries register for an exporter, when they are imported, is taken and never asked for.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from enum import Enum, IntEnum
from typing import Any

from retrograd._absent import finder

__getattr__ = finder("torch.onnx")


class OnnxExporterError(RuntimeError):
    """An export to ONNX failed."""


def is_in_onnx_export() -> bool:
    """Tell whether a program is being exported: never."""
    return False


def register_custom_op_symbolic(symbolic_name: str, symbolic_fn: Callable[..., Any], opset_version: int) -> None:
    """Take what would write an operation into a file."""
    if not re.fullmatch(r"[a-zA-Z0-9-_]+::[a-zA-Z-_]+[a-zA-Z0-9-_]*", symbolic_name):
        raise OnnxExporterError(
            f"Failed to register operator {symbolic_name}. The symbolic name must match the format domain::name, and should "
            "start with a letter and contain only alphanumeric characters"
        )


def unregister_custom_op_symbolic(symbolic_name: str, opset_version: int) -> None:
    """Forget what would write an operation into a file."""


def parse_args(*arg_descriptors: str) -> Callable[[Any], Any]:
    """Mark a function for the exporter with the kinds of its arguments."""

    def mark(function: Any) -> Any:
        function._arg_descriptors = arg_descriptors
        return function

    return mark


class OperatorExportTypes(Enum):
    """What becomes of operations that ONNX does not have."""

    ONNX, ONNX_ATEN, ONNX_ATEN_FALLBACK, ONNX_FALLTHROUGH = range(4)


class TrainingMode(Enum):
    """In which mode a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(IntEnum):
    """The numbers of ONNX's dtypes."""

    UNDEFINED, FLOAT, UINT8, INT8, UINT16, INT16, INT32, INT64, STRING, BOOL, FLOAT16, DOUBLE = range(12)
    UINT32, UINT64, COMPLEX64, COMPLEX128, BFLOAT16 = range(12, 17)


__all__ = [
    "OnnxExporterError",
    "OperatorExportTypes",
    "TensorProtoDataType",
    "TrainingMode",
    "is_in_onnx_export",
    "register_custom_op_symbolic",
    "unregister_custom_op_symbolic",
]
