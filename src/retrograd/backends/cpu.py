"""torch.backends.cpu: what the CPU can do."""

from __future__ import annotations

from importlib import import_module


def get_cpu_capability() -> str:
    """Return the widest instructions of the CPU that torch would have kernels for: "AVX512", "AVX2" or "DEFAULT".

    Libraries choose their way by it: where torch has kernels for AVX2, it resizes images of bytes in whole numbers. So do we.
    """
    found = import_module("numpy._core._multiarray_umath").__cpu_features__
    if all(found.get(name) for name in ("AVX512F", "AVX512BW", "AVX512DQ", "AVX512VL", "FMA3")):
        return "AVX512"
    return "AVX2" if found.get("AVX2") and found.get("FMA3") else "DEFAULT"


__all__ = ["get_cpu_capability"]
