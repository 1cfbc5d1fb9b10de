"""torch.onnx: no exporter is here yet, and nothing is being exported."""

from __future__ import annotations

from enum import Enum, IntEnum

from retrograd._absent import finder

__getattr__ = finder("torch.onnx")


class OnnxExporterError(RuntimeError):
    """An export to ONNX failed."""


def is_in_onnx_export() -> bool:
    """Tell whether a program is being exported: never."""
    return False


class OperatorExportTypes(Enum):
    """What becomes of operations that ONNX does not have."""

    ONNX = 0
    ONNX_ATEN = 1
    ONNX_ATEN_FALLBACK = 2
    ONNX_FALLTHROUGH = 3


class TrainingMode(Enum):
    """In which mode a module is exported."""

    EVAL = 0
    PRESERVE = 1
    TRAINING = 2


class TensorProtoDataType(IntEnum):
    """The numbers of ONNX's dtypes."""

    UNDEFINED = 0
    FLOAT = 1
    UINT8 = 2
    INT8 = 3
    UINT16 = 4
    INT16 = 5
    INT32 = 6
    INT64 = 7
    STRING = 8
    BOOL = 9
    FLOAT16 = 10
    DOUBLE = 11
    UINT32 = 12
    UINT64 = 13
    COMPLEX64 = 14
    COMPLEX128 = 15
    BFLOAT16 = 16


__all__ = ["OnnxExporterError", "OperatorExportTypes", "TensorProtoDataType", "TrainingMode", "is_in_onnx_export"]
