"""Storages: the memory under tensors, with and without a dtype, and tensors that take over a memory."""

from __future__ import annotations

import warnings
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import _warnings
from tests.oracle import answer

PROGRAMS = """
[x.untyped_storage().nbytes(), len(x.untyped_storage()), x.untyped_storage().element_size(), x.untyped_storage().type()]
[x.untyped_storage().device, x.untyped_storage().is_cuda, x.untyped_storage().is_shared(), x.untyped_storage().is_pinned()]
repr(x.untyped_storage())
x.untyped_storage() is x.untyped_storage()
x[2:].untyped_storage().data_ptr() == x.data_ptr()
[x.untyped_storage()[0], x.untyped_storage()[-1], x.untyped_storage()[3:6].tolist(), x.untyped_storage().tolist()]
x.untyped_storage()[99]
x.untyped_storage()['a']
x.untyped_storage()[::2]
(x.untyped_storage().__setitem__(3, 64), x)
(x.untyped_storage().__setitem__(slice(4, 8), 0), x)
(x.untyped_storage().__setitem__(0, 300), x.untyped_storage()[0])
(x.untyped_storage().fill_(0), x)[1]
(x.untyped_storage().copy_(torch.ones(4).untyped_storage()), x)[1]
x.untyped_storage().copy_(torch.ones(2).untyped_storage())
x.untyped_storage().copy_(torch.ones(2))
x.untyped_storage().clone().data_ptr() == x.data_ptr()
x.untyped_storage().float().tolist()
x.untyped_storage().byteswap(torch.float32)
[x.untyped_storage().cpu() is x.untyped_storage(), x.untyped_storage().untyped() is x.untyped_storage()]
torch.UntypedStorage([1, 2, 300]).tolist()
torch.UntypedStorage(range(2)).tolist()
[torch.UntypedStorage().nbytes(), torch.UntypedStorage(3).nbytes(), torch.UntypedStorage(2, device="cpu").device]
torch.UntypedStorage([1.5])
torch.UntypedStorage("abc")
torch.UntypedStorage(torch.ones(2))
torch.UntypedStorage(1, 2)
torch.UntypedStorage(3, dtype=torch.float32)
[torch.UntypedStorage(2).resize_(5).nbytes(), torch.UntypedStorage([1, 2]).resize_(1).tolist()]
torch.UntypedStorage.from_buffer(b"abcd", dtype=torch.uint8).tolist()
torch.UntypedStorage.from_buffer(b"abcdefgh", "big", dtype=torch.int32).tolist()
torch.UntypedStorage.from_buffer(b"abc", dtype=torch.int16, byte_order="native")
torch.UntypedStorage.from_buffer(b"abcd", offset=1, count=2, dtype=torch.uint8).tolist()
torch.UntypedStorage.from_buffer(b"abcd")
repr(x.storage())
[x.storage().size(), x.storage().nbytes(), x.storage().element_size(), x.storage().dtype, x.storage().type()]
[x.storage()[0], x.storage()[-1], x.storage().tolist(), x.storage().pickle_storage_type()]
x.storage()[9]
x.storage()[1:3]
(x.storage().fill_(2), x)[1]
(x.storage().__setitem__(1, 7), x)[1]
(x.storage().__setitem__(slice(1, 3), 5), x)[1]
[x.storage().double().tolist(), x.storage().int().tolist(), x.storage().bool().tolist(), str(x.storage().half().dtype)]
x.storage().untyped().data_ptr() == x.data_ptr()
[isinstance(x.storage(), torch.FloatStorage), isinstance(x.storage(), torch.DoubleStorage), torch.is_storage(x.storage())]
[torch.is_storage(x.untyped_storage()), torch.is_storage(x)]
[torch.FloatStorage(3).size(), torch.FloatStorage([1, 2]).tolist(), torch.BoolStorage([True]).tolist(), torch.LongStorage().size()]
[torch.FloatStorage, torch.FloatStorage.dtype, torch.Storage]
torch.ByteStorage.from_buffer(b"abc").tolist()
torch.FloatStorage(wrap_storage=torch.UntypedStorage([0, 0, 128, 63])).tolist()
torch.FloatStorage(1, 2)
torch.FloatStorage(2, device="cpu")
torch.TypedStorage([1, 2], dtype=torch.int32).tolist()
torch.TypedStorage(wrap_storage=5, dtype=torch.int32)
[torch.HalfStorage([1.5])[0], torch.BFloat16Storage([1.5])[0], torch.ComplexFloatStorage([1 + 2j])[0]]
torch.FloatTensor(torch.FloatStorage([1, 2]))
torch.ByteTensor(torch.ByteStorage.from_buffer(b"abc"))
torch.zeros(2).set_(x)
(lambda a: (a.set_(x).add_(1), x, a._version, x._version))(torch.zeros(2))
(lambda a: (a.set_(x.untyped_storage(), 1, (1, 2), (2, 1)), a.storage_offset()))(torch.zeros(2))
torch.zeros(2).set_()
torch.zeros(2).set_(x.storage())
torch.zeros(2).set_(x.untyped_storage())
torch.zeros(2).set_(x.untyped_storage(), 2, (2,))
torch.zeros(2).set_(x.untyped_storage(), 3, (2,), (1,))
torch.zeros(2).set_(x.int())
torch.zeros(2).set_(x.int().storage())
torch.zeros(2).set_(x.int().untyped_storage(), 0, (2,))
torch.zeros(2).set_(x, 1, (2,), (2,))
torch.zeros(2).set_(source=x.untyped_storage(), storage_offset=1, size=(2,), stride=(1,))
torch.zeros(2, requires_grad=True).set_(x)
(torch.zeros(2, requires_grad=True) * 2).set_(x)
torch.zeros(2).set_(torch.ones(3, requires_grad=True))
(torch.zeros(2, requires_grad=True) * 2).set_(x).sum().backward()
torch.from_dlpack(torch.to_dlpack(x))
torch.to_dlpack(5)
torch.from_file(file, size=2)
torch.from_file(file, size=2, dtype=torch.int32)
torch.from_file(file, False, 2, requires_grad=True)
torch.from_file(file, False, 2, dtype=torch.int32, requires_grad=True)
torch.from_file(file, shared=False, size=2, dtype=torch.uint8).fill_(7)
torch.from_file(file)
torch.from_file(5, size=2)
torch.from_file(file, size=99)
torch.from_file(file + "no", size=2)
torch.UntypedStorage.from_file(file, False, 3).tolist()
""".strip().splitlines()


@pytest.fixture
def file(tmp_path: Path) -> str:
    path = tmp_path / "bytes"
    path.write_bytes(bytes(range(16)))
    return str(path)


@pytest.mark.oracle
@pytest.mark.parametrize("program", PROGRAMS)
def test_answers_as_torch(program: str, file: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (answer(library, program, x=library.arange(4.0), file=file) for library in (retrograd, torch))
    assert ours == theirs


def quietly(make: Any) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return make()


def test_writes_go_into_a_shared_file(file: str) -> None:
    retrograd.from_file(file, shared=True, size=2, dtype=retrograd.int16).add_(1)
    assert Path(file).read_bytes()[:6] == b"\x01\x01\x03\x03\x04\x05"
    assert retrograd.from_file(f"{file}.new", shared=True, size=2).tolist() == [0, 0]
    assert Path(f"{file}.new").stat().st_size == 8


def test_memory_with_tensors_is_not_resized() -> None:
    with pytest.raises(NotImplementedError, match="cannot resize memory that tensors use"):
        retrograd.ones(2).untyped_storage().resize_(0)


def test_saved_values_know_of_new_memory() -> None:
    x, weight = retrograd.ones(2, requires_grad=True), retrograd.ones(2)
    loss = (x * weight).sum()
    weight.set_(retrograd.zeros(2))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        loss.backward()


def test_typed_storages_warn_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_warnings, "_said", set())
    with pytest.warns(UserWarning, match="TypedStorage is deprecated"):
        retrograd.ones(1).storage()
    retrograd.ones(1).storage()


def test_public_module() -> None:
    from retrograd import storage

    assert storage.UntypedStorage is retrograd.UntypedStorage
    assert isinstance(quietly(lambda: retrograd.ones(1).storage()), storage.TypedStorage)
