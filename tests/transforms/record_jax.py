"""Record the expected values with JAX in float64: python -m tests.transforms.record_jax (needs only jax).

With names as arguments, only those rows are recorded again and the others are kept.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np

from tests.transforms.compositions import TABLE

VALUES = Path(__file__).with_name("jax_values.json")


def encode(value: Any) -> Any:
    """Trees stay trees; an array becomes {"real": nested lists} and, where complex, "imag" too."""
    if isinstance(value, dict):
        return {"tree": {key: encode(item) for key, item in value.items()}}
    if isinstance(value, (tuple, list)):
        return [encode(item) for item in value]
    array = np.asarray(value)
    if not np.isfinite(array).all():
        raise ValueError("not finite")
    real = {"real": array.real.tolist()}
    return {**real, "imag": array.imag.tolist()} if np.iscomplexobj(array) else real


def main(names: list[str]) -> None:
    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_platforms", "cpu")
    old = json.loads(VALUES.read_text()) if names else {}
    lines = []
    for row in TABLE:
        if row.reference is None:
            raise ValueError(f"{row.name} has no reference")
        keep = row.name in old and row.name not in names
        value = old[row.name] if keep else encode(row.reference(jax, jnp))
        lines.append(f"{json.dumps(row.name)}: {json.dumps(value)}")
    VALUES.write_text("{\n" + ",\n".join(lines) + "\n}\n")
    print(len(lines), "rows")


if __name__ == "__main__":
    main(sys.argv[1:])
