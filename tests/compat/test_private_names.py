"""Private names of torch that libraries call: they answer as torch's do."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

import retrograd
from tests.oracle import answer

CALLS = [
    "torch._C._nn._parse_to(torch.float64)",
    "torch._C._nn._parse_to('cpu', torch.float16, True)",
    "torch._C._nn._parse_to(torch.zeros(1), memory_format=torch.channels_last)",
    "torch._C._get_default_device()",
    "torch._C._get_tracing_state()",
    "torch._C._are_functorch_transforms_active()",
    "torch.func.vmap(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(2))",
    "torch.func.grad(lambda x: x * torch._C._are_functorch_transforms_active())(torch.ones(()))",
    "torch._C._functorch.is_batchedtensor(torch.ones(2))",
    "torch.func.vmap(lambda x: x * torch._C._functorch.is_batchedtensor(x))(torch.ones(2))",
    "torch._C._functorch.is_legacy_batchedtensor(torch.ones(2))",
    "torch._tensor_str._tensor_str(torch.arange(30.0), 4)",
    "torch._tensor_str._tensor_str(torch.arange(3, dtype=torch.bfloat16), 4)",
    "torch._tensor_str._add_suffixes('Index([0, 1])', ['a=1', 'b=' + 'x' * 60], 6, False)",
    "torch._tensor_str._add_suffixes('Index([0, 1])', ['a=1', 'b=2'], 6, True)",
    "torch._tensor_str.PRINT_OPTS.threshold",
    "torch.ops.aten._to_copy(torch.arange(3), dtype=torch.float32)",
    "torch.ops.aten._to_copy.default(torch.arange(3)).dtype",
    "torch.ops.aten.alias(torch.arange(3))",
    "torch.ops.aten.slice.Tensor(torch.arange(12).view(3, 4), 1, 1, 3)",
    "torch.ops.aten.slice.Tensor(torch.arange(12).view(3, 4), -1, None, None, 2)",
    "torch.ops.aten.index.Tensor(torch.arange(12).view(3, 4), [None, torch.tensor([1, 1])])",
    "torch.ops.aten._sparse_addmm.default.name()",
    "hasattr(torch.ops.aten, 'no_such_operation')",
    "torch.utils._pytree._dict_flatten({'b': 1, 'a': 2})",
    "torch.utils._pytree._dict_unflatten([1, 2], ['b', 'a'])",
    "torch.utils._pytree._dict_flatten_with_keys({'b': 1, 'a': 2})",
    "torch.utils._pytree._list_flatten_with_keys([3, 4])",
    "torch.utils._pytree._get_node_type({})",
    "torch.utils._pytree.arg_tree_leaves(1, [2, 3], a={'b': 4})",
    "torch.nn.modules.module._EXTRA_STATE_KEY_SUFFIX",
    "torch.nn.modules.module._IncompatibleKeys(['a'], [])",
    "isinstance(torch.ones(1).size(0), torch.SymInt)",
    "torch.sym_max(1, 2.0), torch.sym_min(3, 2), torch.sym_not(True), torch.sym_int(-2.7), torch.sym_float(1)",
    "torch.sym_ite(True, 1, 2), torch.sym_sum([1, 2]), torch.sym_sqrt(4)",
    "torch.hub.HASH_REGEX.search('net-0a1b.pth')[1]",
    "torch._C._TensorMeta is type(torch.Tensor)",
    "torch.vmap(lambda i: torch.arange(6).view(3, 2)[i, 1])(torch.tensor([2, 0]))",
    "torch.distributions.utils._sum_rightmost(torch.ones(2, 3, 4), 2)",
    "torch.distributions.utils._standard_normal((2, 3), torch.float64, 'cpu').dtype",
    "torch.distributions.transforms._clipped_sigmoid(torch.tensor([-200.0, 0.0, 200.0]))",
    "torch.distributions.multivariate_normal._batch_mv(torch.eye(2), torch.ones(3, 2))",
    "torch.distributions.multivariate_normal._precision_to_scale_tril(torch.eye(2) * 4).tolist()",
    "torch.distributions.multivariate_normal._batch_mahalanobis(torch.eye(2) * 2, torch.ones(3, 2))",
]


@pytest.fixture(scope="module")
def torch() -> Any:
    found = pytest.importorskip("torch")
    import_module("torch.distributions.multivariate_normal")
    import_module("torch._dynamo._trace_wrapped_higher_order_op")
    return found


@pytest.mark.oracle
@pytest.mark.parametrize("call", CALLS)
def test_answers_as_torch_does(torch: Any, call: str) -> None:
    assert answer(retrograd, call) == answer(torch, call)


def test_an_operation_that_only_torch_has_is_a_key_and_says_so_when_called() -> None:
    operation = retrograd.ops.aten._sparse_addmm.default
    assert {operation: 1}[operation] == 1
    with pytest.raises(NotImplementedError, match="torch has the operation 'aten::_sparse_addmm'"):
        operation(retrograd.ones(2))


def test_a_block_without_subclasses_that_take_calls_over() -> None:
    class Loud(retrograd.Tensor):
        @classmethod
        def __torch_function__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
            return "taken over"

    loud = retrograd.ones(2).as_subclass(Loud)
    assert loud + 1 == "taken over"
    with import_module("retrograd._C").DisableTorchFunctionSubclass():
        assert (loud + 1).tolist() == [2.0, 2.0]


def test_the_module_has_its_own_name_in_it_as_torch_has() -> None:
    with retrograd.as_torch():
        torch = import_module("torch")
        assert torch.torch is torch


def test_the_records_of_a_saved_file_are_read_one_by_one(tmp_path: Path) -> None:
    place = tmp_path / "numbers.pt"
    retrograd.save({"a": retrograd.arange(3.0)}, place)
    reader = retrograd.PyTorchFileReader(str(place))
    assert {"data.pkl", "data/0", "version"} <= set(reader.get_all_records())
    assert reader.has_record("data/0")
    assert not reader.has_record("data/1")
    assert reader.get_record_size("data/0") == 12
    assert place.read_bytes()[reader.get_record_offset("data/0") :][:12] == reader.get_record("data/0")
    assert reader.get_storage_from_record("data/0", 3, retrograd.float32).tolist() == [0.0, 1.0, 2.0]
    with pytest.raises(RuntimeError, match="failed locating file data/1"):
        reader.get_record("data/1")
