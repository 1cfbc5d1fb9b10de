"""Every warning of the package is placed at the line of the program that caused it, and is shown once for each line."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import retrograd as torch
from retrograd import _warnings, nn, optim
from retrograd.nn import functional as F  # noqa: N812
from retrograd.utils.checkpoint import checkpoint
from retrograd.utils.data import ConcatDataset, DataLoader, random_split


def parameter() -> Any:
    return nn.Parameter(torch.ones(2))


def unequal() -> tuple[Any, Any]:
    return torch.ones(2, 1), torch.ones(2)


class Twice(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.mark_shared_storage()
        return x * 2


CALLS: dict[str, Callable[[], Any]] = {
    # functions
    "std": lambda: torch.std(torch.ones(1)),
    "Tensor.var": lambda: torch.ones(1).var(),
    "cov": lambda: torch.cov(torch.ones(2, 1)),
    "mse_loss": lambda: F.mse_loss(*unequal()),
    "l1_loss": lambda: F.l1_loss(*unequal()),
    "smooth_l1_loss": lambda: F.smooth_l1_loss(*unequal()),
    "huber_loss": lambda: F.huber_loss(*unequal()),
    "softmax": lambda: F.softmax(torch.ones(2, 2)),
    "log_softmax": lambda: F.log_softmax(torch.ones(2, 2)),
    "gumbel_softmax": lambda: F.gumbel_softmax(torch.ones(2), eps=1.0),
    "kl_div": lambda: F.kl_div(torch.zeros(2, 2), torch.ones(2, 2)),
    "size_average": lambda: F.binary_cross_entropy(torch.ones(1), torch.ones(1), size_average=False),
    "dropout2d": lambda: F.dropout2d(torch.ones(2, 2)),
    "grid_sample": lambda: F.grid_sample(torch.ones(1, 1, 2, 2), torch.zeros(1, 1, 1, 2)),
    "affine_grid": lambda: F.affine_grid(torch.zeros(1, 2, 3), (1, 1, 2, 2)),
    "upsample": lambda: F.upsample(torch.ones(1, 1, 2, 2), scale_factor=2),
    "xavier_uniform": lambda: nn.init.xavier_uniform(torch.ones(2, 2)),
    "kaiming_normal_": lambda: nn.init.kaiming_normal_(torch.ones(0, 2)),
    "clip_grad_norm": lambda: nn.utils.clip_grad_norm([parameter()], 1),
    "weight_norm": lambda: nn.utils.weight_norm(nn.Linear(2, 2)),
    "tensor": lambda: torch.tensor(torch.ones(2)),
    "from_numpy": lambda: torch.from_numpy(np.frombuffer(b"abcd", dtype="u1")),
    "as_tensor": lambda: torch.as_tensor(np.frombuffer(b"abcd", dtype="u1")),
    "frombuffer": lambda: torch.frombuffer(b"abcd", dtype=torch.uint8),
    "range": lambda: torch.range(0, 3),
    "where": lambda: torch.where(torch.ones(2, dtype=torch.uint8), 1.0, 2.0),
    "out": lambda: torch.add(torch.ones(2), torch.ones(2), out=torch.ones(3)),
    "meshgrid": lambda: torch.meshgrid(torch.ones(1), torch.ones(2)),
    "cross": lambda: torch.cross(torch.ones(3), torch.ones(3)),
    "chain_matmul": lambda: torch.chain_matmul(torch.eye(2), torch.eye(2)),
    "checkpoint": lambda: checkpoint(lambda x: x * 2, parameter()),
    "detect_anomaly": lambda: torch.autograd.detect_anomaly(),
    "set_float32_matmul_precision": lambda: torch.set_float32_matmul_precision("lowest"),
    "random_split": lambda: random_split([1], [1, 0]),
    # methods and attributes
    "T": lambda: torch.ones(2, 2, 2).T,
    "float": lambda: float(parameter()[0]),
    "grad": lambda: (parameter() * 1).grad,
    "masked_fill_": lambda: torch.ones(1).expand(2).masked_fill_(torch.tensor([True, False]), 0.0),
    "uint8 index": lambda: torch.ones(3)[torch.tensor([1, 0, 1], dtype=torch.uint8)],
    "backward": lambda: parameter().sum().backward(create_graph=True),
    "autograd.backward": lambda: torch.autograd.backward(parameter().sum(), create_graph=True),
    "cummulative_sizes": lambda: ConcatDataset([[1]]).cummulative_sizes,
    "sample_n": lambda: torch.distributions.Normal(0.0, 1.0).sample_n(2),
    "storage": lambda: torch.ones(2).storage(),
    # modules and what is called in their name
    "MSELoss": lambda: nn.MSELoss()(*unequal()),
    "Softmax": lambda: nn.Softmax()(torch.ones(2, 2)),
    "LSTM": lambda: nn.LSTM(2, 3, dropout=0.5),
    "Sequential": lambda: nn.Sequential(nn.Softmax(), nn.ReLU())(torch.ones(2, 2)),
    "Dropout2d": lambda: nn.Dropout2d()(torch.ones(2, 2)),
    "Hardtanh": lambda: nn.Hardtanh(min_value=0),
    "TransformerEncoder": lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 1), 1),
    "Linear(0, 2)": lambda: nn.Linear(0, 2),
    "BCELoss": lambda: nn.BCELoss(reduce=True),
    "DataLoader": lambda: next(iter(DataLoader([1], pin_memory=True))),
    "Function": lambda: Twice.apply(torch.ones(1)),
    "cuda.amp.autocast": lambda: torch.cuda.amp.autocast(enabled=False),
    "SGD": lambda: optim.SGD([p := parameter(), p], lr=0.1),
    "StepLR": lambda: optim.lr_scheduler.StepLR(optim.SGD([parameter()], lr=0.1), 1).step(),
}


@pytest.mark.parametrize("name", CALLS)
def test_at_the_callers_line(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    if name == "DataLoader" and torch.cuda.is_available():
        pytest.skip("it warns where there is no GPU")
    monkeypatch.setattr(_warnings, "_said", set())
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        CALLS[name]()
    assert heard
    line = CALLS[name].__code__.co_firstlineno
    inside = Twice.forward.__code__.co_firstlineno + 2
    assert {(one.filename, one.lineno) for one in heard} == {(__file__, inside if name == "Function" else line)}


def test_once_for_each_line() -> None:
    with warnings.catch_warnings(record=True) as heard:
        warnings.resetwarnings()
        warnings.simplefilter("default")
        for _ in range(3):
            F.softmax(torch.ones(2, 2))
            F.softmax(torch.ones(2, 2))
    assert len({one.lineno for one in heard}) == len(heard) == 2


DEPRECATED = """
torch.tensor([np.ones(2)] * 2)
torch.as_tensor((np.ones(2), [1.0, 2.0]))
torch.complex(torch.ones(1), torch.ones(1)).to(torch.float)
torch.complex(torch.ones(1), torch.ones(1)).int()
torch.complex(torch.ones(1), torch.ones(1)).bool()
torch.ones(1).copy_(torch.complex(torch.ones(1), torch.ones(1)))
torch.qr(torch.eye(2))
torch.eye(2).cholesky()
torch.lu(torch.eye(2))
torch.lu_solve(torch.ones(2, 1), *torch.linalg.lu_factor(torch.eye(2)))
torch.set_default_tensor_type(torch.FloatTensor)
torch.searchsorted(torch.arange(6).view(2, 3).t(), torch.ones(3, 1))
torch.searchsorted(torch.arange(6).view(3, 2), torch.ones(2, 3).t())
torch.searchsorted(torch.arange(6).view(3, 2), torch.ones(3, 1), sorter=torch.tensor([[0, 0, 0], [1, 1, 1]]).t())
torch.bucketize(torch.ones(2, 3), torch.arange(6)[::2])
"""


def said(library: Any, line: str) -> list[tuple[type[Warning], str]]:
    """Return the warnings of a line, without the place in C++ that torch adds."""
    library.set_warn_always(True)
    try:
        with warnings.catch_warnings(record=True) as heard:
            warnings.simplefilter("always")
            eval(line, {"torch": library, "np": np})
    finally:
        library.set_warn_always(False)
    return [(one.category, str(one.message).partition(" (Triggered internally")[0]) for one in heard]


@pytest.mark.oracle
@pytest.mark.parametrize("line", DEPRECATED.strip().splitlines())
def test_torchs_words(line: str) -> None:
    original = pytest.importorskip("torch")
    assert said(torch, line) == said(original, line)


def test_once_in_a_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_warnings, "_said", set())
    with pytest.warns(UserWarning, match="qr is deprecated"):
        torch.qr(torch.eye(2))
    torch.qr(torch.eye(2))
