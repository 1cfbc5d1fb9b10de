"""What books and tutorials say about torch.autograd, held in retrograd and, with the marker `oracle`, in torch itself."""

from __future__ import annotations

from typing import Any

import pytest


@pytest.fixture(params=["retrograd", pytest.param("torch", marks=pytest.mark.oracle)])
def torch(request: pytest.FixtureRequest) -> Any:
    """Return the library that a claim is about."""
    library = pytest.importorskip(request.param)
    library.manual_seed(0)
    return library
