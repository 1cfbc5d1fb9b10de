"""torch.utils.collect_env asks the system what torch's asks."""

from __future__ import annotations

import importlib

import pytest

QUESTIONS = ["get_os", "get_gcc_version", "get_clang_version", "get_cmake_version", "get_gpu_info", "get_lsb_version"]


@pytest.mark.oracle
@pytest.mark.parametrize("question", QUESTIONS)
def test_an_answer_is_torchs(question: str) -> None:
    pytest.importorskip("torch")
    ours, theirs = (importlib.import_module(f"{name}.utils.collect_env") for name in ("retrograd", "torch"))
    assert getattr(ours, question)(ours.run) == getattr(theirs, question)(theirs.run)


def test_answers_of_commands_are_read() -> None:
    tools = importlib.import_module("retrograd.utils.collect_env")
    assert tools.run_and_parse_first_match(lambda command: (0, "gcc 12.2\nmore", ""), "gcc", r"gcc (.*)") == "12.2"
    assert tools.run_and_read_all(lambda command: (1, "out", "err"), "x") is None
    assert tools.run_and_return_first_line(lambda command: (0, "one\ntwo", ""), "x") == "one"
    assert "retrograd version: " in tools.get_pretty_env_info()
