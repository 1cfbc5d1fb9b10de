"""Check devices, layouts and memory formats against known values and the oracle."""

from __future__ import annotations

import copy
import pickle
import threading
from collections.abc import Iterator

import numpy as np
import pytest

from retrograd import _device as rv
from tests.oracle import outcome, typed


@pytest.fixture(autouse=True)
def _restore_defaults() -> Iterator[None]:
    yield
    rv.set_default_device(None)
    rv.register_accelerator(None)


def test_known_values() -> None:
    first = rv.device("cuda:1")
    assert repr(first) == "device(type='cuda', index=1)"
    assert str(first) == "cuda:1"
    assert (first.type, first.index) == ("cuda", 1)
    assert rv.device("cpu").index is None
    assert first == rv.device("cuda", 1) == rv.device(first)
    assert len({first, rv.device("cuda", 1), rv.device("cuda")}) == 2
    assert rv.device("cuda") != rv.device("cuda:0")
    assert rv.device("cpu") != "cpu"


def test_copies_and_pickles() -> None:
    for each in (rv.device("cpu"), rv.device("cuda:1")):
        assert copy.copy(each) == copy.deepcopy(each) == pickle.loads(pickle.dumps(each)) == each
    for single in (
        rv.strided,
        rv.contiguous_format,
        rv.preserve_format,
        rv.channels_last,
        rv.channels_last_3d,
    ):
        assert copy.copy(single) is copy.deepcopy(single) is pickle.loads(pickle.dumps(single)) is single


def test_numbers_name_the_registered_accelerator() -> None:
    with pytest.raises(RuntimeError, match="Cannot access accelerator device when none is available"):
        rv.device(0)
    rv.register_accelerator("cuda")
    assert rv.device(1) == rv.device("cuda:1")


def test_blocks_nest_over_the_default() -> None:
    assert rv.get_default_device() == rv.device("cpu")
    rv.set_default_device("meta")
    with rv.device("cuda") as entered:
        assert entered == rv.device("cuda")
        assert rv.get_default_device() == rv.device("cuda:0")
        with rv.device("cpu"):
            assert rv.get_default_device() == rv.device("cpu")
        assert rv.get_default_device() == rv.device("cuda:0")
    assert rv.get_default_device() == rv.device("meta")
    rv.set_default_device(None)
    assert rv.get_default_device() == rv.device("cpu")


def test_one_device_can_be_entered_twice() -> None:
    meta = rv.device("meta")
    with meta, meta:
        assert rv.get_default_device() == meta
    assert rv.get_default_device() == rv.device("cpu")


def test_defaults_belong_to_their_thread() -> None:
    seen = []
    with rv.device("meta"):
        worker = threading.Thread(target=lambda: seen.append(rv.get_default_device()))
        worker.start()
        worker.join()
    assert seen == [rv.device("cpu")]


EXPRESSIONS = [
    "device()", "device('cpu')", "device('cpu:0')", "device('cpu:1')", "device('cpu', 0)", "device('cuda')",
    "device('cuda:0')", "device('cuda', 1)", "device('cuda:1', 1)", "device('cuda:1', None)",
    "device('cuda', -1)", "device('cuda', -2)", "device('cuda', 127)", "device('cuda:-1')", "device('cuda:')",
    "device(':')", "device('cuda:01')", "device('cuda:00')", "device('cuda:a')", "device('cuda:1a')",
    "device('cuda:1:2')", "device('')", "device('foo')", "device('foo:0')", "device('foo', 1)",
    "device('CPU')", "device(' cpu')", "device('cuda0')", "device(-1)", "device(None)", "device(1.5)",
    "device(True)", "device(b'cpu')", "device(device('cuda:1'))", "device(device('cuda'), 1)",
    "device(type='cuda')", "device(type='cuda', index=2)", "device(index=2)", "device(index=2, type='cuda')",
    "device(device='cuda')", "device(device=device('cuda:1'))", "device('cuda', index=None)",
    "device('cuda', None)", "device('cuda', '1')", "device('cuda', 1, 2)", "device('cuda', 1.5)",
    "device('cuda', True)", "device('cuda', np.int64(1))", "device('cuda', foo=1)", "device(0, 0)",
    "device(type=0)", "device(type=device('cuda'))", "device(3, type='cuda')", "device('mps:0')",
    "device('meta:3')", "device('xpu')", "device('cpu:12345678901234567890')", "device('cuda:2147483648')",
    "str(device('cuda:1'))", "str(device('cuda'))", "device('cuda') == device('cuda:0')",
    "device('cpu') == 'cpu'", "device('cpu') == None", "device('cpu') < device('cpu')",
    "device('cpu') >= device('cpu')", "device('cpu') != device('cuda')", "device('cuda:1').index",
    "device('cpu').index", "device('cuda:1').type", "device('cuda:1').__reduce__()[1]",
    "device('cuda').__reduce__()[1]", "setattr(device('cpu'), 'index', 3)",
    "setattr(device('cpu'), 'foo', 3)", "type('Mine', (device,), {})", "strided", "str(strided)",
    "contiguous_format", "preserve_format", "channels_last", "str(channels_last_3d)", "layout()",
    "memory_format()", "isinstance(strided, layout)", "isinstance(channels_last, memory_format)",
    "set_default_device('foo')", "set_default_device(1.5)", "get_default_device()",
]  # fmt: skip


@pytest.mark.oracle
@pytest.mark.parametrize("expression", EXPRESSIONS)
def test_behaves_as_the_oracle(expression: str) -> None:
    torch = pytest.importorskip("torch")
    own = outcome(lambda: typed(eval(expression, {"np": np, **vars(rv)})))
    assert own == outcome(lambda: typed(eval(expression, {"np": np, **vars(torch)})))
