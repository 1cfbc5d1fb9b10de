"""What retrograd's errors say beyond torch's words, for some of the mistakes in `programs.py`."""

from __future__ import annotations

import pytest

import retrograd
from tests.errors.programs import PROGRAMS
from tests.errors.tool import TOOL

HINTS = {
    "forward returns nothing": "None is what a function returns that has no return statement, forward() included.",
    "list given to a layer": "torch.tensor(list) makes a tensor of it.",
    "mean of a list of losses": "torch.stack(list) or torch.cat(list) makes one tensor of several.",
    "array given to a layer": "torch.from_numpy(array) makes a tensor of it;",
    "ModuleList called in forward": "it is a list of modules: call them one by one.",
    "misspelled forward": "Net has foward; did you mean forward?",
    "state dict of a wrapped model": "load {k.removeprefix('module.'): v for k, v in state_dict.items()}.",
    "state dict of a compiled model": "load {k.removeprefix('_orig_mod.'): v for k, v in state_dict.items()}.",
}


@pytest.mark.parametrize("what", HINTS)
def test_the_error_says_what_to_do(what: str) -> None:
    assert HINTS[what] in TOOL.answer(retrograd, TOOL.Mistake(what, PROGRAMS[what])).words


def test_a_square_image_is_not_taken_for_one_with_its_channels_last() -> None:
    answer = TOOL.answer(retrograd, TOOL.Mistake("channels", PROGRAMS["convtranspose channels"]))
    assert "expected input[1, 3, 8, 8] to have 8 channels" in answer.words
    assert "permute" not in answer.words


def test_an_incomplete_state_dict_is_not_called_a_wrapped_one() -> None:
    program = "m = nn.Linear(2, 2)\nm.load_state_dict({'module.weight': m.weight})"
    assert "Hint" not in TOOL.answer(retrograd, TOOL.Mistake("incomplete", program)).words
