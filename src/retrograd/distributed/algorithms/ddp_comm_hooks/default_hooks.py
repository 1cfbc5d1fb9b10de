"""torch.distributed.algorithms.ddp_comm_hooks.default_hooks: gradients averaged as they are or in half precision. There is one process."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...._dtypes import bfloat16, float16
from ....futures import Future

Hook = Callable[[Any, Any], Any]


def _done(value: Any) -> Any:
    future: Any = Future()
    future.set_result(value)
    return future


def _through(bucket: Any, dtype: Any) -> Any:
    """Round the gradients of a bucket to a dtype, in place."""
    buffer = bucket.buffer()
    buffer.copy_(buffer.to(dtype))
    return buffer


def allreduce_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket."""
    return _done(bucket.buffer())


def fp16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket in float16."""
    return _done(_through(bucket, float16))


def bf16_compress_hook(process_group: Any, bucket: Any) -> Any:
    """Average the gradients of a bucket in bfloat16."""
    return _done(_through(bucket, bfloat16))


def _compressing(dtype: Any) -> Callable[[Hook], Hook]:
    def wrapper(hook: Hook) -> Hook:
        """Return a hook that calls another one on gradients of half precision."""

        def compressed(state: Any, bucket: Any) -> Any:
            _through(bucket, dtype)
            return hook(state, bucket)

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
