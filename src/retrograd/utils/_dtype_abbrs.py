"""torch.utils._dtype_abbrs: short names of dtypes, as logs print them."""

from __future__ import annotations

import sys
from typing import Any

_SHORT = {
    "bfloat16": "bf16", "float64": "f64", "float32": "f32", "float16": "f16", "float8_e4m3fn": "f8e4m3fn", "float8_e5m2": "f8e5m2",
    "float8_e4m3fnuz": "f8e4m3fnuz", "float8_e5m2fnuz": "f8e5m2fnuz", "float8_e8m0fnu": "f8e8m0fnu", "complex32": "c32", "complex64": "c64",
    "complex128": "c128", "int8": "i8", "int16": "i16", "int32": "i32", "int64": "i64", "bool": "b8", "uint8": "u8", "uint16": "u16",
    "uint32": "u32", "uint64": "u64",
}  # fmt: skip
_package: Any = sys.modules[__package__.partition(".")[0]]
dtype_abbrs = {getattr(_package, name): short for name, short in _SHORT.items() if hasattr(_package, name)}
