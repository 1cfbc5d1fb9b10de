"""The share of torch's names that retrograd has (`retrograd coverage`)."""

from __future__ import annotations

import pytest

from retrograd.cli import _coverage, main


def test_a_name_is_looked_up_through_modules_and_classes() -> None:
    assert _coverage.exists("torch.nn.functional.relu")
    assert _coverage.exists("torch.Tensor.add_")
    assert _coverage.exists("torch._C._nn")
    assert not _coverage.exists("torch.nn.functional.relu7")
    assert not _coverage.exists("torch.nothing.at.all")


@pytest.mark.parametrize("arguments", [["coverage"], ["coverage", "public", "--all"]])
def test_the_command_counts_and_lists(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    main(arguments)
    first, *others = capsys.readouterr().out.splitlines()
    assert first.startswith(f"{'public' if 'public' in arguments else 'used'}: ")
    assert all("torch." in line for line in others)
