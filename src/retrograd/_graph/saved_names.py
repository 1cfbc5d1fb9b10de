"""What torch calls the values a node saved, where it differs from the general rule.

node name -> {torch's name: our attribute, or a function of the node}
"""

from __future__ import annotations

from typing import Any

SAVED_NAMES: dict[str, dict[str, Any]] = {}
