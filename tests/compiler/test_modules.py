"""Every module of torch's table under compile: results, gradients, buffers and random numbers are eager's, in three calls.

A sample (`samples.py`): the first input of each entry, in float32, in training, and in evaluation where that makes a difference.
"""

from __future__ import annotations

import copy
import warnings
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("expecttest")

import retrograd  # noqa: E402 - torch may be missing
from retrograd.utils._pytree import tree_leaves  # noqa: E402
from tests.compiler.samples import ALL  # noqa: E402

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    from tests.moduledb import entries
    from tests.moduledb.calls import ModuleCall

pytestmark = pytest.mark.oracle
BOUND = 2e-5
RUN_IN_EAGER = dict.fromkeys(
    ("CTCLoss", "EmbeddingBag", "FractionalMaxPool2d", "FractionalMaxPool3d"), "it looks at numbers"
)
RUN_IN_EAGER["AdaptiveLogSoftmaxWithLoss"] = "a result is computed of another one in a statement of ours"


def calls(info: Any) -> list[ModuleCall]:
    found = []
    for training in (True, False) if info.train_and_eval_differ else (True,):
        samples = entries.inputs(info, torch.float32, training, requires_grad=True, limit=None if ALL else 1)
        found += [ModuleCall(info, sample, torch.float32, training) for sample in samples]
    return found


def once(module: Any, run: Any, args: Any, kwargs: Any, seed: int) -> Any:
    """Call a module: results, gradients, buffers and the stream of random numbers; the kind of an error."""
    retrograd.manual_seed(seed)
    module.zero_grad()
    try:
        result = run(*args, **kwargs)
    except Exception as error:
        return type(error).__name__
    results = [one for one in tree_leaves(result) if isinstance(one, retrograd.Tensor)]
    outs = [one for one in results if one.requires_grad]
    wanted = [one for one in (*tree_leaves((args, kwargs)), *module.parameters()) if isinstance(one, retrograd.Tensor)]
    wanted = [one for one in wanted if one.requires_grad]
    grads: Any = ()
    if outs and wanted:
        seeds = [retrograd.ones_like(one) * 0.7 for one in outs]
        grads = retrograd.autograd.grad(outs, wanted, seeds, allow_unused=True)
    return results, list(grads), list(module.buffers()), retrograd.get_rng_state()


@pytest.mark.parametrize("info", entries.counted(), ids=entries.name)
def test_a_module(info: Any) -> None:
    compiled_calls = 0
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for call in calls(info):
            module = call.module(True)
            other = copy.deepcopy(module)
            compiled = retrograd.compile(other)
            for seed in range(3):
                args, kwargs = call.given(True)
                expected = once(module, module, args, kwargs, seed)
                args, kwargs = call.given(True)
                made = once(other, compiled, args, kwargs, seed)
                if isinstance(expected, str):
                    assert made == expected
                    continue
                retrograd.testing.assert_close(made, expected, rtol=BOUND, atol=BOUND, equal_nan=True)
                assert [one.requires_grad for one in made[0]] == [one.requires_grad for one in expected[0]]
            told = compiled._compiled_forward._compiled
            assert not [one for one in told.reasons if "differs from eager" in one and "strides" not in one], str(call)
            compiled_calls += bool(told.records)
    assert compiled_calls or entries.name(info) in RUN_IN_EAGER, told.reasons
