"""torch._export: what classes of tensors say to torch's exporter."""

from __future__ import annotations

from retrograd._absent import finder

__getattr__ = finder("torch._export")
__all__: list[str] = []
