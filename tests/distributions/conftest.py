"""torch's compiler switches the validation of torch's distributions off for the whole process; here it is on."""

from __future__ import annotations

import sys

import pytest


@pytest.fixture(autouse=True)
def _validating() -> None:
    theirs = sys.modules.get("torch.distributions")
    if theirs is not None:
        theirs.Distribution.set_default_validate_args(True)
