"""torch.distributed.algorithms.ddp_comm_hooks.default_hooks: gradients averaged as they are, or in half precision."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dtypes import bfloat16, float16
from ..._collectives import all_reduce
from ..._groups import need_group

Hook = Callable[[Any, Any], Any]


def _average(group: Any, tensor: Any) -> Any:
    """Start averaging a tensor; return the Future of it."""
    group = need_group(group)
    tensor.div_(group.size())
    work = all_reduce(tensor, group=group, async_op=True)
    assert work is not None, "this process is in the group"
    return work.get_future().then(lambda future: future.value()[0])


def _averaged_in(dtype: Any, group: Any, bucket: Any) -> Any:
    buffer = bucket.buffer()
    future = _average(group, buffer.to(dtype))
    return future.then(lambda done: buffer.copy_(done.value()))


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket."""
    return _average(process_group, bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket in float16."""
    return _averaged_in(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket in bfloat16."""
    return _averaged_in(bfloat16, process_group, bucket)


def _compressing(dtype: Any) -> Callable[[Hook], Hook]:
    def wrapper(hook: Hook) -> Hook:
        """Return a hook that calls another one on gradients of half precision."""

        def compressed(state: Any, bucket: Any) -> Any:
            buffer = bucket.buffer()
            bucket.set_buffer(buffer.to(dtype))
            return hook(state, bucket).then(lambda future: buffer.copy_(future.value()))

        return compressed

    return wrapper


fp16_compress_wrapper = _compressing(float16)
bf16_compress_wrapper = _compressing(bfloat16)

__all__ = [
    "allreduce_hook",
    "bf16_compress_hook",
    "bf16_compress_wrapper",
    "fp16_compress_hook",
    "fp16_compress_wrapper",
]
