"""How distributions of two libraries are made alike and compared."""

from __future__ import annotations

from typing import Any

import numpy as np

from tests.distributions.cases import parameters


def made(library: Any, program: str, dtype: str = "float64") -> tuple[Any, dict[str, Any]]:
    """Make a distribution of parameters that require gradients."""
    dtype = "float32" if "GeneralizedPareto" in program else dtype  # torch's has no other
    scope = {name: library.tensor(value, requires_grad=True) for name, value in parameters(dtype).items()}
    return eval(program, {"D": library.distributions, **scope}), scope


def plain(value: Any) -> Any:
    return value.detach().numpy() if hasattr(value, "detach") else str(value).replace("retrograd", "torch")


def same(ours: Any, theirs: Any, rtol: float = 1e-7, atol: float = 1e-9) -> None:
    ours, theirs = plain(ours), plain(theirs)
    if isinstance(theirs, np.ndarray):
        assert isinstance(ours, np.ndarray), ours
        assert ours.dtype == theirs.dtype
        rtol, atol = (rtol, atol) if ours.dtype != np.float32 else (max(rtol, 1e-5), max(atol, 1e-5))
        np.testing.assert_allclose(ours, theirs, rtol, atol)
    else:
        assert ours == theirs
