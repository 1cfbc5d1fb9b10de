"""Attention: values that are known, large inputs, errors, layers, and everything torch answers."""

from __future__ import annotations

import itertools
import math
import warnings
from typing import Any

import numpy as np
import pytest

import retrograd
import retrograd.nn.attention.flex_attention as flex
from retrograd import nn
from retrograd._ops import attention as kernels
from retrograd.nn import functional as F  # noqa: N812
from retrograd.nn.attention import SDPBackend, sdpa_kernel
from retrograd.tensor._recording.fused import decomposed
from tests.oracle import answer

INFINITY = math.inf


@pytest.fixture(autouse=True)
def seed() -> None:
    retrograd.manual_seed(0)


def parts(*shape: int, **options: Any) -> list[Any]:
    return [retrograd.randn(*shape, **options) for _ in range(3)]


# ---- scaled_dot_product_attention ----
def test_a_query_that_fits_one_key_gets_its_value() -> None:
    q = retrograd.tensor([[100.0, 0.0]])
    k = retrograd.tensor([[1.0, 0.0], [0.0, 1.0]])
    v = retrograd.tensor([[3.0], [5.0]])
    assert F.scaled_dot_product_attention(q, k, v).item() == 3
    assert F.scaled_dot_product_attention(q * 0, k, v).item() == 4


@pytest.mark.parametrize("scale", [1.0, 50.0])  # scores near 0, and scores whose maximum is taken off
@pytest.mark.parametrize("kind", ["bool", "float", "inf", "none"])
def test_several_blocks_on_several_threads(kind: str, scale: float, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kernels, "BLOCK", 64)
    monkeypatch.setattr(kernels, "MANY", 64)
    q, k, v = parts(3, 4, 8, 2, dtype=retrograd.float64, requires_grad=True)
    mask = retrograd.randn(3, 1, 8, 8, dtype=retrograd.float64)
    mask = {"bool": mask > 0, "float": mask, "inf": mask.masked_fill(mask > 0, -INFINITY), "none": None}[kind]
    found = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    with decomposed():
        wanted = F.scaled_dot_product_attention(q, k, v, mask, scale=scale)
    above = retrograd.randn_like(found)
    assert retrograd.allclose(found, wanted, rtol=1e-10)
    for one, other in zip(
        retrograd.autograd.grad(found, (q, k, v), above),
        retrograd.autograd.grad(wanted, (q, k, v), above),
        strict=True,
    ):
        assert retrograd.allclose(one, other, rtol=1e-9, atol=1e-12)


def test_exponentials_that_are_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    q, k, v = parts(2, 3, 8, 4, requires_grad=True)
    mask = retrograd.randn(8, 8, requires_grad=True)
    kept = retrograd.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).sum(), (q, k, v, mask))
    monkeypatch.setattr(kernels, "MOST", 0)
    again = retrograd.autograd.grad(F.scaled_dot_product_attention(q, k, v, mask).sum(), (q, k, v, mask))
    for one, other in zip(kept, again, strict=True):
        assert retrograd.allclose(one, other, atol=1e-6)


def test_blind_queries_get_zeros_and_give_zeros() -> None:
    q, k, v = parts(1, 3, 2, requires_grad=True)
    mask = retrograd.tensor([[True, True, False], [False, False, False], [True, True, True]])
    for given in (mask, retrograd.zeros(3, 3).masked_fill(~mask, -INFINITY)):
        out = F.scaled_dot_product_attention(q, k, v, given)
        dq, _, _ = retrograd.autograd.grad(out.sum(), (q, k, v))
        assert out[0, 1].tolist() == [0, 0]
        assert dq[0, 1].tolist() == [0, 0]


def test_heads_that_came_by_a_transpose_go_back_without_a_copy() -> None:
    x = retrograd.randn(2, 5, 4, 3).transpose(1, 2)
    assert F.scaled_dot_product_attention(x, x, x).transpose(1, 2).is_contiguous()


def test_dropout_of_nothing_and_of_everything() -> None:
    q, k, v = parts(2, 3, 4, 2, requires_grad=True)
    assert retrograd.equal(
        F.scaled_dot_product_attention(q, k, v, dropout_p=0.0), F.scaled_dot_product_attention(q, k, v)
    )
    out = F.scaled_dot_product_attention(q, k, v, dropout_p=1.0)
    assert not out.any()
    assert not retrograd.autograd.grad(out.sum(), q)[0].any()


def test_dropout_has_every_derivative() -> None:
    q, k, v = parts(2, 3, 2, dtype=retrograd.float64, requires_grad=True)

    def dropped(*inputs: Any) -> Any:
        retrograd.manual_seed(3)
        return F.scaled_dot_product_attention(*inputs, dropout_p=0.4)

    assert retrograd.autograd.gradcheck(dropped, (q, k, v), check_forward_ad=True)
    assert retrograd.autograd.gradgradcheck(dropped, (q, k, v))


def test_a_tensor_changed_after_the_call_is_seen() -> None:
    q, k, v = parts(1, 1, 3, 2, requires_grad=True)
    k = k * 1
    out = F.scaled_dot_product_attention(q, k, v)
    k.add_(1)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        out.sum().backward()


# ---- the choice of a kernel ----
def test_kernels() -> None:
    q, k, v = parts(1, 1, 3, 2)
    with sdpa_kernel([SDPBackend.MATH, SDPBackend.FLASH_ATTENTION]):
        F.scaled_dot_product_attention(q, k, v)
    with sdpa_kernel(SDPBackend.FLASH_ATTENTION), pytest.raises(RuntimeError, match="No available kernel"):
        F.scaled_dot_product_attention(q[0], k[0], v[0])
    with sdpa_kernel(SDPBackend.CUDNN_ATTENTION), pytest.raises(RuntimeError, match="No viable backend"):
        F.scaled_dot_product_attention(q, k, v)
    assert str(SDPBackend.MATH) == "SDPBackend.MATH"
    with pytest.raises(AssertionError, match="got str"), sdpa_kernel("math"):
        pass


# ---- scores of one's own ----
def test_flex_attention_without_anything_is_attention() -> None:
    q, k, v = parts(2, 4, 6, 3, dtype=retrograd.float64)
    assert retrograd.allclose(flex.flex_attention(q, k, v), F.scaled_dot_product_attention(q, k, v))
    assert retrograd.allclose(
        flex.flex_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
        F.scaled_dot_product_attention(q, k[:, :2], v[:, :2], enable_gqa=True),
    )


def test_flex_attention_with_a_score_and_a_mask() -> None:
    q, k, v = parts(1, 2, 6, 3, dtype=retrograd.float64, requires_grad=True)
    slopes = retrograd.tensor([0.5, 0.25], dtype=retrograd.float64)
    mask = flex.create_block_mask(lambda b, h, i, j: i >= j, None, None, 6, 6, BLOCK_SIZE=2)
    out, lse = flex.flex_attention(
        q, k, v, lambda score, b, h, i, j: score + slopes[h] * (j - i), mask, return_lse=True
    )
    places = retrograd.arange(6)
    bias = slopes[:, None, None] * (places - places[:, None])
    bias = bias.masked_fill(places > places[:, None], -INFINITY)
    assert retrograd.allclose(out, F.scaled_dot_product_attention(q, k, v, bias))
    assert lse.shape == (1, 2, 6)
    assert mask.to_dense().tolist() == [[[[1, 0, 0], [1, 1, 0], [1, 1, 1]]]]
    assert mask.sparsity() == pytest.approx(100 / 3)
    out.sum().backward()
    assert q.grad is not None


def test_masks_combine() -> None:
    causal, near = (lambda b, h, i, j: i >= j), (lambda b, h, i, j: abs(i - j) < 2)
    both = flex.create_mask(flex.and_masks(causal, near), None, None, 3, 3)[0, 0]
    either = flex.create_mask(flex.or_masks(causal, near), None, None, 3, 3)[0, 0]
    assert both.tolist() == [[True, False, False], [True, True, False], [False, True, True]]
    assert either.tolist() == [[True, True, False], [True, True, True], [True, True, True]]
    assert flex.create_mask(flex.noop_mask, 2, 1, 3, 3).all()


# ---- layers ----
def test_batch_first_is_a_transpose() -> None:
    layer = nn.MultiheadAttention(8, 2, batch_first=True)
    x = retrograd.randn(3, 4, 8)
    out, weights = layer(x, x, x)
    layer.batch_first = False
    other, same = layer(*[x.transpose(0, 1)] * 3)
    assert retrograd.allclose(out, other.transpose(0, 1), atol=1e-6)
    assert retrograd.allclose(weights, same, atol=1e-6)
    assert weights.shape == (3, 4, 4)


def test_weights_are_those_of_the_result() -> None:
    layer = nn.MultiheadAttention(6, 3, bias=False)
    x = retrograd.randn(5, 2, 6)
    out, weights = layer(x, x, x, average_attn_weights=False)
    assert weights.shape == (2, 3, 5, 5)
    assert retrograd.allclose(weights.sum(-1), retrograd.ones(2, 3, 5), atol=1e-6)
    plain, nothing = layer(x, x, x, need_weights=False)
    assert nothing is None
    assert retrograd.allclose(out, plain, atol=1e-6)


def test_subclasses_see_the_public_function() -> None:
    class Seeing(retrograd.Tensor):
        seen: list[str] = []  # noqa: RUF012 - one for the test

        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            cls.seen.append(func.__name__)
            return super().__torch_function__(func, types, args, kwargs or {})

    layer = nn.MultiheadAttention(4, 2, batch_first=True)
    x = retrograd.randn(2, 3, 4)
    seeing = x.as_subclass(Seeing)
    out, _ = layer(seeing, seeing, seeing)
    assert "multi_head_attention_forward" in Seeing.seen
    assert retrograd.allclose(out.as_subclass(retrograd.Tensor), layer(x, x, x)[0], atol=1e-6)


# ---- torch's answers ----
SIZES = ["(3,)", "(4, 3)", "(2, 4, 3)", "(2, 2, 4, 3)", "(5, 3)", "(2, 5, 3)", "(3, 4, 3)", "(2, 2, 5, 4)", "(2, 0, 3)"]
MASKS = ["None", "torch.zeros(4, 4)", "torch.zeros(5)", "torch.ones(4, 5) > 0", "torch.zeros(3, 1, 1, 4, 4)"]
CALL = "torch.nn.functional.scaled_dot_product_attention({})"
CALLS = [
    *(
        CALL.format(f"torch.ones({q}), torch.ones({k}), torch.ones({v}), {mask}") + ".shape"
        for q, k, v, mask in itertools.product(SIZES, SIZES, SIZES, MASKS)
        if k == v or (q == k and mask == "None")
    ),
    *(
        CALL.format(f"torch.ones(2, 3, dtype=torch.{a}), torch.ones(2, 3, dtype=torch.{b}), torch.ones(2, 3)")
        for a, b in itertools.product(("float32", "float64", "int64", "bool", "complex64", "float16"), repeat=2)
    ),
    *(
        CALL.format(f"*[torch.ones(2, 3, dtype=torch.{a})] * 3, torch.ones(2, 2, dtype=torch.{b})")
        for a, b in itertools.product(("float32", "float64", "int64", "bool", "complex64", "bfloat16"), repeat=2)
    ),
    *(
        CALL.format(f"torch.ones({q}), torch.ones({k}), torch.ones({k}), enable_gqa=True") + ".shape"
        for q, k in itertools.product(
            ("3, 2", "4, 3, 2", "1, 4, 3, 2"), ("3, 2", "2, 3, 2", "1, 2, 3, 2", "1, 3, 3, 2")
        )
    ),
    CALL.format("torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), dropout_p=1.5"),
    CALL.format("torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 3), torch.ones(2, 2), is_causal=True"),
    CALL.format("None, torch.ones(2, 3), torch.ones(2, 3)"),
]
MHA = "torch.nn.MultiheadAttention({})({})[0].shape"
SHAPES = ["4, 3, 8", "4, 8", "8", "5, 3, 8", "4, 3, 6", "4, 2, 8", "1, 4, 3, 8"]
LAYERS = [
    *(
        MHA.format(f"8, 2, batch_first={first}", f"torch.ones({q}), torch.ones({k}), torch.ones({k})")
        for q, k, first in itertools.product(SHAPES, SHAPES, (False, True))
        if not (first and k == "8")  # torch turns keys before it looks at their rank
    ),
    *(
        MHA.format("8, 2", f"*[torch.ones({q})] * 3, attn_mask=torch.zeros({mask}, dtype=torch.{dtype})")
        for q, mask, dtype in itertools.product(
            ("4, 3, 8", "4, 8"), ("4, 4", "4", "2, 4, 4", "6, 4, 4", "3, 4"), ("bool", "float32", "int64")
        )
    ),
    *(
        MHA.format("8, 2", f"*[torch.ones({q})] * 3, key_padding_mask=torch.zeros({mask}, dtype=torch.bool)")
        for q, mask in itertools.product(("4, 3, 8", "4, 8"), ("4", "3, 4", "4, 3", "3, 4, 4"))
    ),
    MHA.format("8, 3", "*[torch.ones(4, 3, 8)] * 3"),
    MHA.format("0, 3", "*[torch.ones(4, 3, 8)] * 3"),
    MHA.format("8, -2", "*[torch.ones(4, 3, 8)] * 3"),
    MHA.format("8, 2", "*[torch.ones(4, 3, 8)] * 3, is_causal=True"),
    MHA.format("8, 2, kdim=3, vdim=5", "torch.ones(4, 3, 8), torch.ones(6, 3, 3), torch.ones(6, 3, 5)"),
    MHA.format("8, 2, kdim=3, vdim=5", "torch.ones(4, 3, 8), torch.ones(6, 3, 3), torch.ones(7, 3, 5)"),
    MHA.format("8, 2, kdim=3, vdim=5", "torch.ones(4, 3, 8), torch.ones(6, 3, 8), torch.ones(6, 3, 5)"),
]


@pytest.mark.oracle
@pytest.mark.parametrize("program", CALLS)
def test_calls(program: str) -> None:
    torch = pytest.importorskip("torch")
    theirs = answer(torch, program)
    if "(2, 2, 5, 4)" in program and isinstance(theirs, str):
        pytest.skip("torch's kernel does not look at the sizes")
    ours = answer(retrograd, program)
    if isinstance(theirs, tuple) and len(theirs) > 2:  # a tensor: its node differs
        ours, theirs = ours[:3], theirs[:3]
    assert ours == theirs


@pytest.mark.oracle
@pytest.mark.parametrize("program", LAYERS)
def test_layers(program: str) -> None:
    torch = pytest.importorskip("torch")
    assert answer(retrograd, program) == answer(torch, program)


STATIC = """torch.nn.functional.multi_head_attention_forward(*[torch.ones(3, 2, 4)] * 3, 4, 2, torch.ones(12, 4), None, {},
    False, 0.0, torch.ones(4, 4), None, static_k={}, static_v={}, need_weights={})[0].tolist()"""
ROWS = ("None", "torch.ones(4, 5, 2)", "torch.ones(3, 5, 2)", "torch.ones(4, 5, 3)")


@pytest.mark.oracle
@pytest.mark.parametrize(
    "rows", [rows for rows in itertools.product(ROWS, repeat=2) if rows[0] == rows[1] or ROWS[1] not in rows]
)
@pytest.mark.parametrize(
    "bias", ["None, None", "torch.ones(1, 1, 4), torch.ones(1, 1, 4)", "None, torch.ones(1, 1, 4)"]
)
def test_static_keys(rows: tuple[str, str], bias: str) -> None:
    torch = pytest.importorskip("torch")
    for weights in (True, False):
        program = STATIC.format(bias, *rows, weights).replace("\n", "")
        assert answer(retrograd, program) == answer(torch, program)


def made(library: Any, kdim: int | None, bias: bool, extra: bool, first: bool, dropout: float) -> Any:
    library.manual_seed(5)
    return library.nn.MultiheadAttention(8, 2, dropout, bias, extra, extra, kdim, None if kdim is None else 5, first)


@pytest.mark.oracle
@pytest.mark.parametrize("kdim", [None, 6])
@pytest.mark.parametrize("bias", [True, False])
@pytest.mark.parametrize("extra", [True, False])
def test_same_seed_same_layer(kdim: int | None, bias: bool, extra: bool) -> None:
    torch = pytest.importorskip("torch")
    ours, theirs = (made(library, kdim, bias, extra, True, 0.1) for library in (retrograd, torch))
    assert repr(ours) == repr(theirs)
    assert [name for name, _ in ours.named_parameters()] == [name for name, _ in theirs.named_parameters()]
    for (name, one), other in zip(ours.state_dict().items(), theirs.state_dict().values(), strict=True):
        np.testing.assert_array_equal(one.numpy(), other.numpy(), err_msg=name)
    assert {k: v for k, v in vars(ours).items() if isinstance(v, (int, float))} == {
        k: v for k, v in vars(theirs).items() if isinstance(v, (int, float)) and k != "_is_full_backward_hook"
    }


def trained(library: Any, layer: Any, masks: Any, cross: bool, weights: bool) -> list[Any]:
    """Return results, gradients and what the random stream gives next."""
    first = layer.batch_first
    library.manual_seed(1)
    shape = (3, 4) if first else (4, 3)
    q = library.randn(*shape, 8, requires_grad=True)
    k = library.randn(*shape, layer.kdim, requires_grad=True) if cross else q
    v = library.randn(*shape, layer.vdim, requires_grad=True) if cross else q
    options: dict[str, Any] = {}
    later = library.ones(4, 4, dtype=library.bool).triu(1)
    if masks in ("attention", "both"):
        options["attn_mask"] = later
    if masks in ("padding", "both"):
        options["key_padding_mask"] = (library.arange(4) > 2).expand(3, 4)
    if masks == "causal":
        options |= {"attn_mask": later, "is_causal": True}
    if masks == "each":
        options["attn_mask"] = library.randn(6, 4, 4)
    out, found = layer(q, k, v, need_weights=weights, **options)
    loss = (out * library.arange(96).reshape(out.shape).sin()).sum()
    if found is not None:
        loss = loss + (found * library.arange(found.numel()).reshape(found.shape).cos()).sum()
    loss.backward()
    grads = [one.grad for one in (q, k, v)] + [one.grad for one in layer.parameters()]
    return [one.detach().numpy() for one in (out, *([] if found is None else [found]), *grads, library.rand(1))]


@pytest.mark.oracle
@pytest.mark.parametrize("masks", [None, "attention", "padding", "both", "causal", "each"])
@pytest.mark.parametrize("weights", [True, False])
@pytest.mark.parametrize("first", [True, False])
@pytest.mark.parametrize("dropout", [0.0, 0.4])
def test_trains_as_torch(masks: Any, weights: bool, first: bool, dropout: float) -> None:
    torch = pytest.importorskip("torch")
    for kdim, extra in ((None, False), (None, True), (6, False)):
        layers = [made(library, kdim, True, extra, first, dropout) for library in (retrograd, torch)]
        ours, theirs = (
            trained(library, layer, masks, kdim is not None, weights)
            for library, layer in zip((retrograd, torch), layers, strict=True)
        )
        for one, other in zip(ours, theirs, strict=True):
            np.testing.assert_allclose(one, other, rtol=2e-4, atol=2e-5)


def test_masks_of_different_kinds_warn() -> None:
    layer = nn.MultiheadAttention(4, 2)
    x = retrograd.randn(3, 2, 4)
    with pytest.warns(UserWarning, match="Support for mismatched key_padding_mask and attn_mask is deprecated"):
        layer(x, x, x, key_padding_mask=retrograd.zeros(2, 3), attn_mask=retrograd.zeros(3, 3, dtype=retrograd.bool))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        layer(x, x, x, key_padding_mask=retrograd.zeros(2, 3), attn_mask=retrograd.zeros(3, 3))
