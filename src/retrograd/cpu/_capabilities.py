"""What the processor can do, as Linux reports it."""

from __future__ import annotations

import os
import platform
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType
from typing import Any

# torch's names, which are Linux's except for these
_NAMES = """aes amx_bf16 amx_fp16 amx_int8 amx_tile avx avx10_1 avx10_2 avx2 avx512_4fmaps avx512_4vnniw avx512_bf16 avx512_bitalg
avx512_bw avx512_cd avx512_dq avx512_f avx512_fp16 avx512_ifma avx512_vbmi avx512_vbmi2 avx512_vl avx512_vnni avx512_vp2intersect
avx512_vpopcntdq avx_ne_convert avx_vnni avx_vnni_int16 avx_vnni_int8 bmi bmi2 clflush clflushopt clwb f16c fma3 fma4 lzcnt popcnt sha
sse sse2 sse3 sse4_1 sse4_2 sse4a ssse3"""
_LINUX = {
    name: name.replace("_", "")
    for name in ["avx512_bw", "avx512_cd", "avx512_dq", "avx512_f", "avx512_ifma", "avx512_vl"]
}
_LINUX |= {"avx512_vbmi": "avx512vbmi", "bmi": "bmi1", "fma3": "fma", "lzcnt": "abm", "sha": "sha_ni", "sse3": "pni"}


@cache
def capabilities() -> Mapping[str, Any]:
    """Return the facts; flags are known on Linux alone."""
    facts = _facts()
    flags = set(facts.get("flags", "").split())
    found: dict[str, Any] = {name: _LINUX.get(name, name) in flags for name in _NAMES.split()} if flags else {}
    cores = os.cpu_count() or 1
    siblings, own = int(facts.get("siblings", 1)), int(facts.get("cpu cores", 1))
    found |= {
        "architecture": platform.machine(),
        "cpu_name": facts.get("model name", platform.processor()),
        "num_logical_cores": cores,
        "num_physical_cores": max(1, cores * own // max(siblings, 1)),
        "num_sockets": max(1, cores // max(siblings, 1)),
    }
    return MappingProxyType(found)


def _facts() -> dict[str, str]:
    """Read what Linux says of the first processor."""
    try:
        with open("/proc/cpuinfo", encoding="utf-8") as lines:
            text = lines.read().partition("\n\n")[0]
    except OSError:
        return {}
    pairs = (line.partition(":") for line in text.splitlines())
    return {name.strip(): value.strip() for name, _, value in pairs}
