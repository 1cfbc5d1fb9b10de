"""The table of modules: every module of torch is in it, or a reason why not."""

from __future__ import annotations

import warnings

import pytest

import retrograd

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")
pytestmark = pytest.mark.oracle

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.moduledb import entries


def test_every_module_has_an_entry() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        names = [entries.name(info) for info in entries.counted()]
    assert len(names) == len(set(names))
    assert {*names, *entries.LEFT_OUT} == set(torch.nn.modules.__all__)
    assert [name for name in names if not hasattr(retrograd.nn, name)] == []
