"""Errors of layers name the layer, its place in the model and the shapes."""

from __future__ import annotations

from typing import Any

import pytest

import retrograd as torch
from retrograd import nn


def text_of(module: Any, *given: Any) -> str:
    with pytest.raises((RuntimeError, ValueError, IndexError)) as caught:
        module(*given)
    return str(caught.value)


@pytest.mark.parametrize(
    ("module", "shape", "told"),
    [
        (
            nn.Linear(3, 2),
            (4, 5),
            "raised by Linear(in_features=3, out_features=2, bias=True), called with float32[4, 5].",
        ),
        (nn.Conv2d(3, 4, 2), (1, 2, 5, 5), "raised by Conv2d(3, 4, kernel_size=(2, 2), stride=(1, 1)), called with"),
        (nn.BatchNorm1d(3), (4, 5), "raised by BatchNorm1d(3, eps=1e-05"),
        (nn.LSTM(3, 2), (4, 1, 5), "raised by LSTM(3, 2), called with float32[4, 1, 5]."),
        (nn.LayerNorm(3), (4, 5), "raised by LayerNorm((3,), eps=1e-05"),
        (nn.MaxPool2d(9), (1, 1, 4, 4), "raised by MaxPool2d(kernel_size=9"),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, nn.Module) else "",
)
def test_a_layer_is_named(module: Any, shape: Any, told: str) -> None:
    assert told in text_of(module, torch.ones(shape))


def test_the_text_begins_with_that_of_the_function() -> None:
    layer = nn.Linear(3, 2)
    with pytest.raises(RuntimeError) as caught:
        nn.functional.linear(torch.ones(4, 5), layer.weight, layer.bias)
    assert text_of(layer, torch.ones(4, 5)).startswith(str(caught.value) + "\nHint: raised by Linear(")


def test_classes_out_of_range() -> None:
    assert "raised by Embedding(3, 2), called with int64[1]." in text_of(nn.Embedding(3, 2), torch.tensor([3]))
    loss = text_of(nn.CrossEntropyLoss(), torch.ones(2, 3), torch.tensor([0, 3]))
    assert loss.endswith("raised by CrossEntropyLoss(), called with float32[2, 3], int64[2].")


class Net(nn.Module):
    """A model of a user's, with an error of its own."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.ReLU(), nn.Sequential(nn.Linear(3, 2)))

    def forward(self, x: Any) -> Any:
        if x.dim() == 1:
            raise ValueError("a row, please")
        return self.body(x)


def test_the_place_in_the_model_is_told() -> None:
    assert text_of(Net(), torch.ones(4, 5)).endswith(
        "raised by Linear(in_features=3, out_features=2, bias=True) at 'body.1.0', called with float32[4, 5]."
    )


def test_with_hooks() -> None:
    model = Net()
    model.register_forward_hook(lambda *given: None)
    assert "at 'body.1.0'" in text_of(model, torch.ones(4, 5))


def test_what_a_users_module_raises_stays_as_it_is() -> None:
    assert text_of(Net(), torch.ones(3)) == "a row, please"
    assert text_of(nn.Sequential(Net()), torch.ones(3)) == "a row, please"
