"""Losses: modules, errors, warnings, old arguments; large inputs, which are read in blocks."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
from retrograd.tensor._recording.fused import decomposed
from tests.oracle import answer

ROUNDED = 5  # digits compared of what a program prints


def _scope(library: Any) -> dict[str, Any]:
    rng = np.random.default_rng(0)

    def floats(*shape: int) -> Any:
        return library.tensor(rng.random(shape).astype(np.float32))

    return {
        "F": library.nn.functional,
        "nn": library.nn,
        "x": floats(3, 4).requires_grad_(),
        "y": floats(3, 4),
        "w": floats(3, 4),
        "wc": floats(4),
        "x3": floats(3, 4, 5),
        "e": library.zeros(0, 4),
        "t": library.tensor([0, 1, 3]),
        "signs": library.tensor([1.0, -1.0, 1.0]),
        "steps": floats(5, 2, 4).log_softmax(-1),
        "labels": library.tensor([[1, 2, 2], [3, 1, 0]]),
        "long": library.long,
    }


ERRORS = """
F.mse_loss(x, y[:2])
F.mse_loss(x.long(), y.long())
F.mse_loss(x, y, reduction='foo')
F.mse_loss(x, y, weight=w[0])
F.mse_loss(x, y, weight=w, reduction='foo')
F.l1_loss(x, y[:2])
F.smooth_l1_loss(x, y, beta=-1.)
F.huber_loss(x, y, delta=0.)
F.binary_cross_entropy(x, y[:2])
F.binary_cross_entropy(x + 1, y)
F.binary_cross_entropy(x, y + 1)
F.binary_cross_entropy(x, y.double())
F.binary_cross_entropy(x, y, weight=w.requires_grad_())
F.binary_cross_entropy_with_logits(x, y[:2])
F.binary_cross_entropy_with_logits(x, y.long())
F.kl_div(x, y.long())
F.kl_div(x, y, reduction='batchmea')
F.nll_loss(x, t[:2])
F.nll_loss(x, t[:, None])
F.nll_loss(x, torch.tensor([0, 1, 7]))
F.nll_loss(x, torch.tensor([0, 1, -1]))
F.nll_loss(x, t.int())
F.nll_loss(x, t, weight=wc[:3])
F.nll_loss(x, t, weight=wc.double())
F.nll_loss(x, t, weight=wc.requires_grad_())
F.nll_loss(torch.tensor(1.), torch.tensor(0))
F.nll_loss(x[0], t)
F.nll_loss(x3, torch.zeros(3, 4, dtype=long))
F.nll_loss(x3[..., None], torch.zeros(3, 5, dtype=long))
F.nll_loss(x3[..., None], torch.zeros(3, 5, 2, dtype=long))
F.nll_loss(x3, torch.full((3, 5), 7))
F.nll_loss(x.long(), t)
F.cross_entropy(x, torch.zeros(5, dtype=long))
F.cross_entropy(x, torch.tensor([0, 1, 7]))
F.cross_entropy(x, x.long())
F.cross_entropy(x, y, ignore_index=3)
F.cross_entropy(x, y, weight=wc[:3])
F.cross_entropy(x, t, weight=w)
F.cross_entropy(x3, torch.zeros(3, 5, dtype=long), weight=wc[:2])
F.cross_entropy(x, t, label_smoothing=2.)
F.cross_entropy(x, t, label_smoothing='a')
F.cross_entropy(x.long(), t)
F.cross_entropy([1], t)
F.cross_entropy(x, t, reduction='batchmean')
F.gaussian_nll_loss(x, y, -w)
F.gaussian_nll_loss(x, y, w[:2])
F.gaussian_nll_loss(x, y, w, reduction='foo')
F.margin_ranking_loss(x, y[0], signs)
F.cosine_embedding_loss(x, y, y)
F.cosine_embedding_loss(x[0], y[0], signs)
F.triplet_margin_loss(x, y, w, margin=-1)
F.triplet_margin_loss(x, y[0], w)
F.triplet_margin_with_distance_loss(x, y, w, margin=-1.)
F.multi_margin_loss(x, t, p=3)
F.multi_margin_loss(x, t, weight=w)
F.multi_margin_loss(x, t[:2])
F.multi_margin_loss(x, torch.tensor([0, 1, 7]))
F.multi_margin_loss(x3, t)
F.multilabel_margin_loss(x, t)
F.multilabel_margin_loss(x, torch.full((3, 4), 7))
F.multilabel_soft_margin_loss(x, y, reduction='foo')
F.soft_margin_loss(x, y.requires_grad_())
F.ctc_loss(steps, labels, (6, 4), (3, 2))
F.ctc_loss(steps, labels, (5,), (3, 2))
F.ctc_loss(steps, labels, (5, 4), (4, 2))
F.ctc_loss(steps, labels, (5, 4), (-1, 2))
F.ctc_loss(steps, labels, (5, 4), (3, 2), blank=7)
F.ctc_loss(steps, labels[0], (5, 4), (3, 2))
F.linear_cross_entropy(x[:, :2], w, t)
F.linear_cross_entropy(x, w[0], t)
nn.MultiMarginLoss(p=3)
nn.TripletMarginLoss(margin=-1)
nn.LinearCrossEntropyLoss(3, 4, weight=wc[:3])
nn.LinearCrossEntropyOptions(batch_chunk_size=0)
torch.hinge_embedding_loss(x, y, reduction='sum')
F.nll_loss(x[..., None], t[:, None].to(torch.uint8))
F.cross_entropy(x[..., None], t[:, None].to(torch.uint8), label_smoothing=.1)
""".strip().splitlines()

VALUES = """
F.mse_loss(x, y[0])
F.mse_loss(e, e)
F.mse_loss(x, y.double())
F.mse_loss(x, y, size_average=False)
F.mse_loss(x, y, reduce=False)
F.huber_loss(x, y.double())
F.nll_loss(x, torch.tensor([-100, -100, -100]))
F.nll_loss(e, t[:0], reduction='sum')
F.cross_entropy(e, t[:0])
F.cross_entropy(x, t.to(torch.uint8))
F.cross_entropy(1000 * x, t, reduction='none')
F.cross_entropy(x, torch.tensor([-100, 2, -100]), label_smoothing=.3)
F.binary_cross_entropy(torch.tensor([0., 1.]), torch.tensor([1., 1.]), reduction='none')
F.gaussian_nll_loss(x, y, 2.)
F.multi_margin_loss(torch.tensor(1.), t[0])
F.ctc_loss(steps, labels, (2, 4), (3, 2), reduction='none')
F.ctc_loss(steps, labels, (0, 0), (0, 2), reduction='none')
torch.kl_div(x, y, 2)
torch.kl_div(x, y, 0, log_target=True)
torch.poisson_nll_loss(x, y, True, False, 1e-8, 1)
torch.binary_cross_entropy_with_logits(x, y, None, None, 0)
torch.margin_ranking_loss(x, y, y, 1.0, 2)
torch.cosine_embedding_loss(x, y, signs, 0.5, 1)
torch.triplet_margin_loss(x, y, w, 1.0, 2, 1e-6, True, 1)
torch.ctc_loss(steps, labels, torch.tensor([5, 4]), torch.tensor([3, 2]), 0, 2, False)
torch.kl_div(x, y)
torch.binary_cross_entropy_with_logits(x, y)
torch.hinge_embedding_loss(x, y.sign())
torch.margin_ranking_loss(x, y, y)
torch.cosine_embedding_loss(x, y, signs)
torch.triplet_margin_loss(x, y, w)
torch.ctc_loss(steps, labels, (5, 4), (3, 2))
nn.NLLLoss2d()(x, t)
nn.LinearCrossEntropyOptions()
""".strip().splitlines()


def rounded(value: Any) -> Any:
    """Round the numbers in what a program answers."""
    if isinstance(value, (tuple, list)):
        return [rounded(one) for one in value]
    if isinstance(value, str) and value[:1] in "[-0123456789in":
        try:
            numbers = eval(value, {"nan": "nan", "inf": "inf"})
        except (SyntaxError, NameError):
            return value
        return np.round(np.array(numbers, dtype=float), ROUNDED - 1).tolist() if "n" not in value else value
    return value


@pytest.mark.oracle
@pytest.mark.parametrize("program", [*ERRORS, *VALUES])
def test_answers_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (answer(library, program, **_scope(library)) for library in (retrograd, torch))
    assert rounded(ours) == rounded(theirs)


WARNED = """
F.mse_loss(x, y[0])
F.l1_loss(x, y[0])
F.mse_loss(x, y, size_average=True)
F.mse_loss(x, y, reduce=False)
F.mse_loss(x, y, reduction='elementwise_mean')
F.kl_div(x, y)
nn.MSELoss(size_average=False)
nn.NLLLoss2d()
F.linear_cross_entropy(x, w, t % 3, label_smoothing=.1, options=nn.LinearCrossEntropyOptions())
""".strip().splitlines()


@pytest.mark.oracle
@pytest.mark.parametrize("program", WARNED)
def test_warns_as_torch(program: str) -> None:
    torch = pytest.importorskip("torch")
    said = []
    for library in (retrograd, torch):
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            eval(program, {"torch": library, **_scope(library)})
        said.append([(w.category, str(w.message)) for w in caught])
    assert said[0] == said[1]


MODULES = [
    "L1Loss()",
    "MSELoss()",
    "SmoothL1Loss(beta=0.3)",
    "HuberLoss(delta=0.4)",
    "PoissonNLLLoss()",
    "GaussianNLLLoss()",
    "NLLLoss()",
    "CrossEntropyLoss(label_smoothing=0.1)",
    "KLDivLoss(reduction='batchmean')",
    "BCELoss()",
    "BCEWithLogitsLoss()",
    "SoftMarginLoss()",
    "MultiMarginLoss()",
    "MultiLabelMarginLoss()",
    "MultiLabelSoftMarginLoss()",
    "CTCLoss()",
    "HingeEmbeddingLoss()",
    "CosineEmbeddingLoss()",
    "MarginRankingLoss()",
    "TripletMarginLoss()",
    "TripletMarginWithDistanceLoss()",
    "LinearCrossEntropyLoss(4,6,bias=True)",
    "LinearCrossEntropyLoss(4,6,out_features=(2,))",
    "CrossEntropyLoss(weight=torch.ones(4))",
    "BCEWithLogitsLoss(pos_weight=torch.ones(4))",
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", MODULES)
def test_module_shows_and_holds_what_torch_does(program: str) -> None:
    torch = pytest.importorskip("torch")
    shown = []
    for library in (retrograd, torch):
        library.manual_seed(0)
        module = eval(f"nn.{program}", {"nn": library.nn, "torch": library})
        state = {name: value.tolist() for name, value in module.state_dict().items()}
        facts = {k: v for k, v in vars(module).items() if not k.startswith("_")}
        shown.append((repr(module), state, facts))
    assert shown[0] == shown[1]


LARGE = {
    "mse_loss": lambda f, x, y, t: f.mse_loss(x, y),
    "smooth_l1_loss": lambda f, x, y, t: f.smooth_l1_loss(x, y, beta=0.3),
    "huber_loss": lambda f, x, y, t: f.huber_loss(x, y, reduction="sum", delta=0.2),
    "bce": lambda f, x, y, t: f.binary_cross_entropy(x.sigmoid(), y),
    "bce_with_logits": lambda f, x, y, t: f.binary_cross_entropy_with_logits(x, y),
    "soft_margin": lambda f, x, y, t: f.soft_margin_loss(x, y.detach() - 0.5),
    "cross_entropy": lambda f, x, y, t: f.cross_entropy(x, t),
    "smoothed": lambda f, x, y, t: f.cross_entropy(x, t, label_smoothing=0.1, reduction="sum"),
    "weighted": lambda f, x, y, t: f.cross_entropy(x, t, y[0].detach(), ignore_index=3, label_smoothing=0.2),
    "overflowing": lambda f, x, y, t: f.cross_entropy(300 * x, t),
    "places": lambda f, x, y, t: f.cross_entropy(
        x.reshape(10, 20, -1), t[:10].unsqueeze(1).expand(10, 1000) % 20, reduction="none"
    ).sum(),
}


@pytest.mark.parametrize("name", LARGE)
def test_blocks_equal_decomposition(name: str) -> None:
    rng = np.random.default_rng(1)
    t = retrograd.tensor(rng.integers(0, 500, 400))
    found = []
    for whole in (True, False):
        arrays = np.random.default_rng(2)
        x = retrograd.tensor(arrays.standard_normal((400, 500)), requires_grad=True)
        y = retrograd.tensor(arrays.random((400, 500)), requires_grad=True)
        if whole:
            loss = LARGE[name](retrograd.nn.functional, x, y, t)
        else:
            with decomposed():
                loss = LARGE[name](retrograd.nn.functional, x, y, t)
        loss.backward()
        found.append([loss.item(), x.grad.numpy(), 0 if y.grad is None else y.grad.numpy()])
    for ours, wanted in zip(*found, strict=True):
        np.testing.assert_allclose(ours, wanted, rtol=1e-9, atol=1e-12)


def test_likely_target_keeps_its_digits() -> None:
    x = retrograd.tensor([[90.0, 75.0], [3.0, -9.0]])
    loss = retrograd.nn.functional.cross_entropy(x, retrograd.tensor([0, 0]), reduction="none")
    np.testing.assert_allclose(loss.numpy(), np.log1p(np.exp([-15.0, -12.0])), rtol=0.3)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
def test_what_is_ignored_gets_no_gradient_where_no_weight_counts(smoothing: float) -> None:
    x = retrograd.zeros(2, 3, requires_grad=True)
    weight = retrograd.tensor([0.0, 1.0, 1.0])
    for targets, missing in (([-100, -100], [False, False]), ([-100, 0], [False, True])):  # NaN of 0 / 0, as torch's
        loss = retrograd.nn.functional.cross_entropy(x, retrograd.tensor(targets), weight, label_smoothing=smoothing)
        (grad,) = retrograd.autograd.grad(loss, x)
        assert grad.isnan().any(1).tolist() == missing
        assert (grad[0] == 0).all()


def test_an_infinite_gradient_of_what_is_ignored_stays_outside() -> None:
    x = retrograd.tensor([[0.1, 0.2], [0.3, 0.4]], requires_grad=True)
    loss = retrograd.nn.functional.nll_loss(x, retrograd.tensor([0, 1]), ignore_index=0, reduction="none")
    loss.backward(retrograd.tensor([float("inf"), 2.0]))
    assert x.grad.tolist() == [[0.0, 0.0], [0.0, -2.0]]


def test_ctc_reaches_far_below_the_smallest_float() -> None:
    x = retrograd.full((60, 1, 3), -40.0)
    x[:, 0, 0] = 0.0
    loss = retrograd.nn.functional.ctc_loss(
        x, retrograd.ones(1, 25, dtype=retrograd.long), (60,), (25,), reduction="sum"
    )
    assert 900 < loss.item() < 1001
