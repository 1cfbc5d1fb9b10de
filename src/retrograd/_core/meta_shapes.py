"""Shape rules of operations whose implementations want elements: what they make on the meta device. See Note [Meta arrays]."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

shape_rules: dict[str, Callable[..., Any]] = {}


def shape_rule(*names: str) -> Callable[[Callable[..., Any]], Callable[..., Any]]:
    """Declare the shape rule of some primitives or fused operations, by their names."""

    def declare(rule: Callable[..., Any]) -> Callable[..., Any]:
        for name in names:
            shape_rules[name] = rule
        return rule

    return declare
