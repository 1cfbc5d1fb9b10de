"""Stores: notes that processes leave each other. They answer as torch's."""

from __future__ import annotations

import threading
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

import retrograd
from retrograd import distributed
from tests.oracle import outcome

SHORT = timedelta(milliseconds=50)


def store_of(library: Any, kind: str, folder: Path) -> Any:
    d = library.distributed
    if kind == "TCPStore":
        return d.TCPStore("127.0.0.1", 0, 1, True)
    if kind == "FileStore":
        return d.FileStore(str(folder / library.__name__), 1)
    if kind == "PrefixStore":
        return d.PrefixStore("first", d.HashStore())
    return d.HashStore()


def asked(library: Any, kind: str, folder: Path) -> list[Any]:
    store = store_of(library, kind, folder)
    store.set("text", "value")
    store.set("bytes", b"\x00\xff\n")
    said = [store.get("text"), store.get("bytes"), store.add("count", 3), store.add("count", -1), store.get("count")]
    said += [store.check(["text", "count"]), store.check(["text", "absent"])]
    said += [store.compare_set("new", "", "one"), store.compare_set("new", "one", "two"), store.get("new")]
    said += [store.compare_set("new", "other", "three")]
    if kind != "FileStore":  # torch's has none
        said += [store.delete_key("text"), store.delete_key("text"), store.check(["text"])]
        store.append("text", "a")
        store.append("text", "b")
        store.multi_set(["p", "q"], ["1", "2"])
        said += [store.get("text"), store.multi_get(["p", "q"])]
    store.wait(["new", "count"])
    store.set_timeout(SHORT)
    said += [store.timeout]
    if kind != "FileStore":  # torch's raises the base class, RuntimeError
        said += [outcome(call).kind for call in (lambda: store.wait(["absent"], SHORT), lambda: store.get("absent"))]
    return said


@pytest.mark.oracle
@pytest.mark.parametrize("kind", ["TCPStore", "FileStore", "HashStore", "PrefixStore"])
def test_stores_answer_as_torchs(kind: str, tmp_path: Path) -> None:
    torch = pytest.importorskip("torch")
    assert asked(retrograd, kind, tmp_path) == asked(torch, kind, tmp_path)


def test_a_note_arrives_from_another_connection() -> None:
    first = distributed.TCPStore("127.0.0.1", 0, is_master=True)
    second = distributed.TCPStore("127.0.0.1", first.port)
    found: list[bytes] = []
    thread = threading.Thread(target=lambda: found.append(second.get("later")))
    thread.start()
    first.set("later", "here")
    thread.join(10)
    assert found == [b"here"]
    assert second.host == "127.0.0.1"
    with pytest.raises(distributed.DistStoreError, match="wait timeout after 50ms, keys: /absent"):
        second.wait(["absent"], SHORT)


def test_workers_that_do_not_come_are_counted() -> None:
    with pytest.raises(distributed.DistStoreError, match="1/2 clients joined"):
        distributed.TCPStore("127.0.0.1", 0, 2, True, timeout=timedelta(seconds=1))


def test_a_server_that_is_not_there_is_named() -> None:
    with pytest.raises(distributed.DistNetworkError, match=r"trying to connect to \(127.0.0.1, 1\)"):
        distributed.TCPStore("127.0.0.1", 1, timeout=timedelta(milliseconds=100))


def test_a_port_that_is_taken_is_named() -> None:
    first = distributed.TCPStore("127.0.0.1", 0, is_master=True)
    with pytest.raises(distributed.DistNetworkError, match=f"port: {first.port}"):
        distributed.TCPStore("127.0.0.1", first.port, is_master=True)
