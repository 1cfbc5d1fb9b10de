"""What mpiexec and srun say of a process, in variables as they were seen, becomes torchrun's variables."""

from __future__ import annotations

import os

import pytest

from retrograd.distributed import _mpi
from retrograd.distributed._rendezvous import adopt_environment, started_place

# srun -N 2 -n 4: the first process of the second machine; a list of six machines; srun --mpi=pmi2; mpiexec inside of a job of Slurm
SRUN = "SLURM_JOB_ID=13 SLURM_STEP_ID=1 SLURM_NODEID=1 SLURM_STEP_NODELIST=n[1-2] SLURM_STEP_NUM_TASKS=4"
SRUN += " SLURM_STEP_TASKS_PER_NODE=3,1 SLURM_PROCID=3 SLURM_LOCALID=0"
LARGE = "SLURM_JOB_ID=70000 SLURM_STEP_ID=0 SLURM_NODEID=4 SLURM_STEP_NODELIST=gpu[07-09,12],login[1-2] SLURM_STEP_NUM_TASKS=15"
LARGE += " SLURM_STEP_TASKS_PER_NODE=4(x3),1(x3) SLURM_PROCID=13 SLURM_LOCALID=0"
PMI2 = "PMI_FD=11 PMI_RANK=2 PMI_SIZE=4 SLURM_JOB_ID=13 SLURM_STEP_ID=1 SLURM_NODEID=0 SLURM_STEP_NODELIST=n[1-2]"
PMI2 += " SLURM_STEP_NUM_TASKS=4 SLURM_STEP_TASKS_PER_NODE=3,1 SLURM_PROCID=2 SLURM_LOCALID=2"
MPIEXEC = "PMI_RANK=1 PMI_SIZE=2 MPI_LOCALRANKID=1 MPI_LOCALNRANKS=2 SLURM_JOB_ID=13 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0"
NAMES = ("RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "MASTER_ADDR")


def set_environment(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PMI", "MPI_", "OMPI_", "SLURM_", "MASTER_")) or name in NAMES:
            monkeypatch.delenv(name)
    for name, _, value in (word.partition("=") for word in said.split()):
        monkeypatch.setenv(name, value)
    for name in (*NAMES, "MASTER_PORT"):  # so that what is adopted goes again after the test
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        (SRUN, ["3", "4", "0", "1", "n1"]),
        (LARGE, ["13", "15", "0", "1", "gpu07"]),
        (PMI2, ["2", "4", "2", "3", "n1"]),
        (MPIEXEC, ["1", "2", "1", "2", "127.0.0.1"]),
        ("OMPI_COMM_WORLD_RANK=1 OMPI_COMM_WORLD_SIZE=2", ["1", "2", "0", "1", "127.0.0.1"]),
    ],
)
def test_a_process_gets_its_numbers(said: str, expected: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(said, monkeypatch)
    adopt_environment()
    assert [os.environ[name] for name in NAMES] == expected
    assert 10000 <= int(os.environ["MASTER_PORT"]) < 32768


def test_steps_of_a_job_meet_at_ports_of_their_own(monkeypatch: pytest.MonkeyPatch) -> None:
    ports = []
    for step in range(2):
        set_environment(SRUN.replace("STEP_ID=1", f"STEP_ID={step}"), monkeypatch)
        adopt_environment()
        ports.append(os.environ["MASTER_PORT"])
    assert ports[0] != ports[1]


@pytest.mark.parametrize("said", ["", "SLURM_JOB_ID=17 SLURM_NODEID=0 SLURM_PROCID=0 SLURM_LOCALID=0"])
def test_nobody_has_started_a_process_of_a_shell_or_a_batch_script(said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    set_environment(said, monkeypatch)
    assert started_place() is None


@pytest.mark.parametrize(
    ("library", "known"),
    [
        (
            "MPICH Version: 5.0.2\nMPICH configure: --with-pm=hydra:gforker",
            False,
        ),  # it aborts: "unsupported PMI version PMIx"
        ("MPICH Version: 5.0.2\nMPICH configure: --with-pmix=/usr", True),
        ("Open MPI v5.0.10", True),
    ],
)
def test_only_libraries_that_speak_pmix_are_joined_by_it(
    library: str, known: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Mpi:
        @staticmethod
        def Get_library_version() -> str:  # noqa: N802 - mpi4py's name
            return library

    set_environment(f"{SRUN} PMIX_RANK=3", monkeypatch)
    monkeypatch.setattr(_mpi, "_imported", Mpi)
    place = started_place()
    assert place is not None
    assert place.is_known_to_mpi() is known
