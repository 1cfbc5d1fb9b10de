"""Every composition of the table against the values recorded with JAX (record_jax.py).

COMPOSITIONS_LIB=torch runs the table on torch instead, where the rows marked `torch_fails` must fail.
"""

from __future__ import annotations

import importlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.transforms.compositions import TABLE, Row

NAME = os.environ.get("COMPOSITIONS_LIB", "retrograd")
LIBRARY = importlib.import_module(NAME)
EXPECTED = json.loads(Path(__file__).with_name("jax_values.json").read_text())


def check(got: Any, expected: Any, where: str) -> None:
    """Same tree, same shapes, same kind (real or complex), and 1e-10 relative in every entry."""
    if isinstance(expected, list):
        assert isinstance(got, (tuple, list)), where
        assert len(got) == len(expected), where
        for i, (item, wanted) in enumerate(zip(got, expected, strict=True)):
            check(item, wanted, f"{where}[{i}]")
    elif "tree" in expected:
        assert isinstance(got, dict), where
        assert got.keys() == expected["tree"].keys(), where
        for key, wanted in expected["tree"].items():
            check(got[key], wanted, f"{where}[{key!r}]")
    else:
        wanted = np.array(expected["real"])
        if "imag" in expected:
            wanted = wanted + 1j * np.array(expected["imag"])
        if hasattr(got, "detach"):
            assert tuple(got.shape) == wanted.shape, where
            assert str(got.dtype).endswith(str(wanted.dtype)), where
            got = got.detach().tolist()
        assert np.iscomplexobj(got) == np.iscomplexobj(wanted), where
        floor = 1e-13 * max(1.0, float(np.abs(wanted).max(initial=0.0)))
        np.testing.assert_allclose(got, wanted, rtol=1e-10, atol=floor, err_msg=where)


def case(row: Row) -> Any:
    refused = bool(row.torch_fails) and NAME == "torch"
    marks = [pytest.mark.xfail(strict=True, raises=RuntimeError, reason=row.torch_fails)] if refused else []
    return pytest.param(row, id=row.name, marks=marks)


@pytest.mark.filterwarnings("ignore:.torch.jit.script. is deprecated:DeprecationWarning")
@pytest.mark.parametrize("row", [case(row) for row in TABLE])
def test_composition(row: Row) -> None:
    check(row.program(LIBRARY), EXPECTED[row.name], row.name)


def test_every_recorded_value_has_its_row() -> None:
    assert EXPECTED.keys() == {row.name for row in TABLE}
