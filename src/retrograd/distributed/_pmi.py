"""A program of its own that lets processes which nobody started with mpiexec become one MPI job.

    python _pmi.py size

MPICH's processes meet by asking a process manager, over a socket, in the words of PMI 1: they leave their addresses (`put`), wait for
each other (`barrier_in`), and read those of the others (`get`). mpiexec is such a manager; this is another, for processes that come by
themselves, from several machines too. It is a process because it must outlive rank 0: the others ask it who has died. It prints its
port, ends with the last connection, and imports nothing of this package.

Each process first says who and where it is, `hello rank=1 host=name`, and hears `welcome` when all have come. `who` is answered
with the numbers of those who have; `dead` with the numbers of those who went without a farewell (PMI's `finalize`, or `cmd=leave`),
after a bar those who had said before that another's death stopped them (`cmd=stopped`): they are not the cause. After a second bar
come those who have begun to leave (`cmd=leaving 1:0.0=7 ...`), with what they said then: `2/1:0.0=7`.
"""

from __future__ import annotations

import contextlib
import os
import selectors
import socket
import sys
import time

FIXED = {
    "init": "cmd=response_to_init pmi_version=1 pmi_subversion=1 rc=0",
    "get_maxes": "cmd=maxes kvsname_max=256 keylen_max=64 vallen_max=4096",
    "get_appnum": "cmd=appnum appnum=0",
    "finalize": "cmd=finalize_ack",
}


class Manager:
    """What is known of the processes of a job."""

    def __init__(self, size: int) -> None:
        self.size = size
        self.name = f"retrograd_{os.getpid()}_{time.time_ns()}"  # MPICH also names its shared memory so: no two jobs may have one name
        self.hosts: dict[int, str] = {}  # by rank
        self.ranks: dict[socket.socket, int] = {}  # by connection
        self.values: dict[str, str] = {}
        self.barred: list[socket.socket] = []  # connections at the barrier
        self.gone: set[int] = set()  # ranks that have said farewell
        self.leaving: dict[int, list[str]] = {}  # what ranks that have come to their end said then
        self.stopped: set[int] = set()  # ranks that another's death has stopped
        self.dead: set[int] = set()

    def hear(self, connection: socket.socket, line: str) -> None:
        """Answer a line."""
        said = dict(word.split("=", 1) for word in line.split() if "=" in word)
        word = said.get("cmd", line.partition(" ")[0])
        if word == "hello":
            self.welcome(connection, int(said["rank"]), said["host"])
        elif word == "who":
            _say(connection, _listed(set(self.hosts)))
        elif word == "dead":
            left = " ".join(f"{rank}/{words}" for rank, every in sorted(self.leaving.items()) for words in every)
            _say(connection, f"{_listed(self.dead - self.stopped)} | {_listed(self.dead & self.stopped)} | {left}")
        elif word == "get_my_kvsname":
            _say(connection, f"cmd=my_kvsname kvsname={self.name}")
        elif word == "get_universe_size":
            _say(connection, f"cmd=universe_size size={self.size}")
        elif word == "put":
            self.values[said["key"]] = line.partition(" value=")[2]
            _say(connection, "cmd=put_result rc=0 msg=success")
        elif word == "get":
            value = self.values.get(said["key"])
            found = "rc=-1 msg=key_not_found value=unknown" if value is None else f"rc=0 msg=success value={value}"
            _say(connection, f"cmd=get_result {found}")
        elif word == "barrier_in":
            self.barred.append(connection)
            self.open_barrier()
        elif word in FIXED:
            _say(connection, FIXED[word])
        if word in ("finalize", "leave") and connection in self.ranks:
            self.gone.add(self.ranks[connection])
        elif word == "stopped" and connection in self.ranks:
            self.stopped.add(self.ranks[connection])
        elif word == "leaving" and connection in self.ranks:
            self.leaving[self.ranks[connection]] = line.split()[1:]

    def welcome(self, connection: socket.socket, rank: int, host: str) -> None:
        """Note who has come; when all have, let them begin."""
        self.ranks[connection] = rank
        self.hosts[rank] = host
        if len(self.hosts) == self.size:
            self.values["PMI_process_mapping"] = self.mapping()
            for one in self.ranks:
                _say(one, "welcome")

    def mapping(self) -> str:
        """Say which ranks share a machine, as PMI writes it: (machine, 1, how many ranks follow each other there)."""
        machines: dict[str, int] = {}
        runs: list[list[int]] = []
        for rank in range(self.size):
            machine = machines.setdefault(self.hosts[rank], len(machines))
            if runs and runs[-1][0] == machine:
                runs[-1][1] += 1
            else:
                runs.append([machine, 1])
        return "(vector," + ",".join(f"({machine},1,{count})" for machine, count in runs) + ")"

    def open_barrier(self) -> None:
        """Let those at the barrier go if all who live are there."""
        if len(self.barred) >= self.size - len(self.dead):
            for one in self.barred:
                _say(one, "cmd=barrier_out")
            self.barred.clear()

    def lose(self, connection: socket.socket) -> None:
        """Note that a connection has ended."""
        rank = self.ranks.pop(connection, None)
        if rank is not None and rank not in self.gone:
            self.dead.add(rank)
            self.open_barrier()


def _listed(ranks: set[int]) -> str:
    return " ".join(str(rank) for rank in sorted(ranks))


def _say(connection: socket.socket, line: str) -> None:
    with contextlib.suppress(OSError):  # it has gone: the next read says so
        connection.sendall(f"{line}\n".encode())


def main() -> None:
    """Serve one job."""
    manager = Manager(int(sys.argv[1]))
    listener = socket.create_server(("", 0), backlog=4096)
    print(listener.getsockname()[1], flush=True)
    watched = selectors.DefaultSelector()
    watched.register(listener, selectors.EVENT_READ)
    unread: dict[socket.socket, bytes] = {}
    came = False
    while not came or unread:
        for key, _ in watched.select():
            connection = key.fileobj
            assert isinstance(connection, socket.socket)
            if connection is listener:
                connection, _ = listener.accept()
                watched.register(connection, selectors.EVENT_READ)
                unread[connection] = b""
                came = True
                continue
            try:
                data = connection.recv(1 << 16)
            except OSError:
                data = b""
            if not data:
                watched.unregister(connection)
                del unread[connection]
                manager.lose(connection)
                connection.close()
                continue
            *lines, unread[connection] = (unread[connection] + data).split(b"\n")
            for line in lines:
                manager.hear(connection, line.decode())


if __name__ == "__main__":
    main()
