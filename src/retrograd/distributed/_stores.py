"""Where processes leave each other notes: in memory, in a file, or with a server that one of them runs."""

from __future__ import annotations

import json
import os
import socket
import socketserver
import struct
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

from .._public import set_all
from .._tracebacks import guard_methods as _guard_methods
from ._dist_errors import DistNetworkError, DistStoreError

DEFAULT_TIMEOUT = timedelta(seconds=300)
_COUNT = struct.Struct("!I")


class Store:
    """Notes under names. A subclass says how they are reached, in `_do`."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        self._timeout = DEFAULT_TIMEOUT

    def _do(self, word: str, key: str, *values: bytes, seconds: float = 0.0) -> bytes | None:
        """Do what a word says; None if it could not be done in time."""
        raise NotImplementedError(f"{type(self).__name__} is a base class: use TCPStore, FileStore or HashStore")

    # ---- how long to wait ----
    @property
    def timeout(self) -> timedelta:
        """How long to wait for a note."""
        return self._timeout

    def set_timeout(self, timeout: timedelta) -> None:
        """Say how long to wait for a note."""
        self._timeout = timeout

    # ---- notes ----
    def set(self, key: str, value: str | bytes) -> None:
        """Leave a note."""
        self._do("set", key, _encoded(value))

    def get(self, key: str) -> bytes:
        """Return a note; wait until there is one."""
        found = self._do("get", key, seconds=self._timeout.total_seconds())
        if found is None:
            raise DistStoreError(_late(self._timeout, [key]))
        return found

    def add(self, key: str, amount: int) -> int:
        """Add to the number in a note, and return it."""
        return int(self._do("add", key, str(amount).encode()) or b"0")

    def append(self, key: str, value: str | bytes) -> None:
        """Add text to a note."""
        self._do("append", key, _encoded(value))

    def compare_set(self, key: str, expected_value: str | bytes, desired_value: str | bytes) -> bytes:
        """Change a note if it says what is expected, and return what it says then."""
        return self._do("compare_set", key, _encoded(expected_value), _encoded(desired_value)) or b""

    def check(self, keys: list[str]) -> bool:
        """Tell whether all these notes are there."""
        return all(self._do("check", key) for key in keys)

    def wait(self, keys: list[str], timeout: timedelta | None = None) -> None:
        """Wait until all these notes are there."""
        limit = self._timeout if timeout is None else timeout
        until = time.monotonic() + limit.total_seconds()
        for key in keys:
            if self._do("get", key, seconds=max(until - time.monotonic(), 0.0)) is None:
                raise DistStoreError(_late(limit, keys))

    def delete_key(self, key: str) -> bool:
        """Take a note away; tell whether there was one."""
        return bool(self._do("delete", key))

    def num_keys(self) -> int:
        """Return how many notes there are."""
        return int(self._do("count", "") or b"0")

    def multi_get(self, keys: list[str]) -> list[bytes]:
        """Return several notes."""
        return [self.get(key) for key in keys]

    def multi_set(self, keys: list[str], values: list[str | bytes]) -> None:
        """Leave several notes."""
        for key, value in zip(keys, values, strict=True):
            self.set(key, value)

    def has_extended_api(self) -> bool:
        """Tell whether `append`, `multi_get` and `multi_set` are there."""
        return True


def _encoded(value: str | bytes) -> bytes:
    return value.encode() if isinstance(value, str) else bytes(value)


def _late(limit: timedelta, keys: list[str]) -> str:
    names = ", ".join(f"/{key}" for key in keys)
    return f"wait timeout after {int(limit.total_seconds() * 1000)}ms, keys: {names}"


def _apply(notes: dict[str, bytes], word: str, key: str, values: tuple[bytes, ...]) -> bytes | None:
    """Do what a word says with notes; None if there is nothing yet."""
    match word:
        case "get":
            return notes.get(key)
        case "set":
            notes[key] = values[0]
        case "add":
            notes[key] = str(int(notes.get(key, b"0")) + int(values[0])).encode()
            return notes[key]
        case "append":
            notes[key] = notes.get(key, b"") + values[0]
        case "compare_set":
            expected, desired = values
            if notes.get(key, b"") == expected:
                notes[key] = desired
            return notes.get(key, expected)
        case "check":
            return b"1" if key in notes else b""
        case "delete":
            return b"" if notes.pop(key, None) is None else b"1"
        case "count":
            return str(len(notes)).encode()
    return b""


class HashStore(Store):
    """Notes in the memory of one process, for its threads."""

    def __init__(self) -> None:
        super().__init__()
        self._notes: dict[str, bytes] = {}
        self._changed = threading.Condition()

    def _do(self, word: str, key: str, *values: bytes, seconds: float = 0.0) -> bytes | None:
        with self._changed:
            if word == "get":
                self._changed.wait_for(lambda: key in self._notes, seconds)
            done = _apply(self._notes, word, key, values)
            self._changed.notify_all()
        return done


class FileStore(Store):
    """Notes in a file that all processes can open. The last of `world_size` processes to let go removes it."""

    def __init__(self, file_name: str, world_size: int = -1) -> None:
        super().__init__()
        self._path, self._size = os.path.abspath(file_name), world_size
        self._is_open = True
        self.add("_users", 1)

    @property
    def path(self) -> str:
        """The name of the file."""
        return self._path

    def _do(self, word: str, key: str, *values: bytes, seconds: float = 0.0) -> bytes | None:
        until = time.monotonic() + seconds
        while True:
            with self._opened() as notes:
                done = _apply(notes, word, key, values)
            if done is not None or time.monotonic() >= until:
                return done
            time.sleep(0.01)

    @contextmanager
    def _opened(self) -> Iterator[dict[str, bytes]]:
        import fcntl  # which only POSIX has

        with open(os.open(self._path, os.O_RDWR | os.O_CREAT, 0o600), "r+", encoding="ascii") as file:
            fcntl.flock(file, fcntl.LOCK_EX)
            text = file.read()
            notes = {key: value.encode("latin-1") for key, value in json.loads(text or "{}").items()}
            yield notes
            changed = json.dumps({key: value.decode("latin-1") for key, value in notes.items()})
            if changed != text:
                file.seek(0)
                file.write(changed)
                file.truncate()

    def __del__(self) -> None:
        if getattr(self, "_is_open", False) and os.path.exists(self._path):
            self._is_open = False
            if self.add("_left", 1) == self._size:
                os.unlink(self._path)


class PrefixStore(Store):
    """The notes of another store whose names begin with a word."""

    def __init__(self, prefix: str, store: Store) -> None:
        super().__init__()
        self._prefix, self._store = prefix, store
        self._timeout = store.timeout

    @property
    def underlying_store(self) -> Store:
        """The other store."""
        return self._store

    def _do(self, word: str, key: str, *values: bytes, seconds: float = 0.0) -> bytes | None:
        return self._store._do(word, f"{self._prefix}/{key}" if word != "count" else key, *values, seconds=seconds)


# ---- a server ----
def _read(connection: socket.socket, count: int) -> bytes:
    data = b""
    while len(data) < count:
        more = connection.recv(count - len(data))
        if not more:
            raise EOFError
        data += more
    return data


def _receive(connection: socket.socket) -> list[bytes]:
    fields = _COUNT.unpack(_read(connection, 4))[0]
    return [_read(connection, _COUNT.unpack(_read(connection, 4))[0]) for _ in range(fields)]


def _send(connection: socket.socket, *fields: bytes) -> None:
    message = [_COUNT.pack(len(fields))]
    for field in fields:
        message += [_COUNT.pack(len(field)), field]
    connection.sendall(b"".join(message))


class _Handler(socketserver.BaseRequestHandler):
    server: _Server

    def handle(self) -> None:
        self.request.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        try:
            while True:
                word, key, seconds, *values = _receive(self.request)
                done = self.server.notes._do(word.decode(), key.decode(), *values, seconds=float(seconds))
                _send(self.request, *(() if done is None else (done,)))
        except (EOFError, OSError):
            return  # the process has gone


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    allow_reuse_address = True
    request_queue_size = 4096

    def __init__(self, port: int) -> None:
        self.notes = HashStore()
        super().__init__(("", port), _Handler)
        threading.Thread(target=self.serve_forever, args=(0.1,), daemon=True).start()

    def close(self) -> None:
        """Stop, and give the port back."""
        self.shutdown()
        self.server_close()


class TCPStore(Store):
    """Notes with a server, which the process with `is_master` runs. Processes find it by its address."""

    def __init__(
        self,
        host_name: str,
        port: int,
        world_size: int | None = None,
        is_master: bool = False,
        timeout: timedelta = DEFAULT_TIMEOUT,
        wait_for_workers: bool = True,
        multi_tenant: bool = False,
        master_listen_fd: int | None = None,
        use_libuv: bool = True,
    ) -> None:
        super().__init__()
        self._timeout = timeout
        self._host, self._port = host_name, port
        self._server: _Server | None = None
        if is_master:
            self._server = self._serve(port, multi_tenant)
            if self._server is not None:
                self._port = int(self._server.server_address[1])
        self._lock = threading.Lock()
        self._connection = self._connect()
        if wait_for_workers and world_size and world_size > 0:
            self._wait_for(world_size)

    @staticmethod
    def _serve(port: int, shared: bool) -> _Server | None:
        try:
            return _Server(port)
        except OSError as error:
            if shared:  # a store of this process, or of the program that started it, is there already
                return None
            raise DistNetworkError(
                f"The server socket has failed to listen on any local network address. port: {port}, error: {error}\n"
                "Hint: another program uses this port; set MASTER_PORT to a free one, or 0 where a store is made."
            ) from error

    def _connect(self) -> socket.socket:
        until = time.monotonic() + self._timeout.total_seconds()
        while True:
            try:
                made = socket.create_connection((self._host, self._port), timeout=5)
            except OSError as error:
                if time.monotonic() > until:
                    raise DistNetworkError(
                        "The client socket has timed out after "
                        f"{int(self._timeout.total_seconds() * 1000)}ms while trying to connect to ({self._host}, "
                        f"{self._port}).\nHint: is rank 0 running there? ({error})"
                    ) from error
                self._refused()
                time.sleep(0.02)
                continue
            made.settimeout(None)
            made.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            return made

    def _refused(self) -> None:
        """Look, while nobody answers, whether somebody still will."""

    def _wait_for(self, size: int) -> None:
        came = self.add("_workers", 1)
        if came == size:
            self.set("_all_workers", b"1")
        if self._server is not None and self._do("get", "_all_workers", seconds=self._timeout.total_seconds()) is None:
            there = int(self.get("_workers"))
            raise DistStoreError(
                f"Timed out after {int(self._timeout.total_seconds())} seconds waiting for clients. "
                f"{there}/{size} clients joined."
            )

    @property
    def host(self) -> str:
        """The machine of the server."""
        return self._host

    @property
    def port(self) -> int:
        """The port of the server."""
        return self._port

    def _do(self, word: str, key: str, *values: bytes, seconds: float = 0.0) -> bytes | None:
        with self._lock:
            try:
                _send(self._connection, word.encode(), key.encode(), str(seconds).encode(), *values)
                answer = _receive(self._connection)
            except (OSError, EOFError) as error:
                raise DistNetworkError(
                    f"The store at {self._host}:{self._port} has gone. Hint: the process that ran it, rank 0, has ended."
                ) from error
        return answer[0] if answer else None

    def __del__(self) -> None:
        if (connection := getattr(self, "_connection", None)) is not None:
            connection.close()
        if (server := getattr(self, "_server", None)) is not None and not sys.is_finalizing():
            server.close()  # at the end of the process its thread is gone, and would be waited for

    def clone(self) -> TCPStore:
        """Return another connection to the server."""
        return TCPStore(self._host, self._port, timeout=self._timeout, wait_for_workers=False)


set_all(globals())
for _store in (Store, HashStore, FileStore, PrefixStore, TCPStore):
    _guard_methods(_store)
