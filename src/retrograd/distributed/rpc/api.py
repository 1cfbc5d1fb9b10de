"""torch.distributed.rpc.api: where torch writes what `rpc` hands on. It is not there, and says so."""

from ..._absent import finder
from .constants import DEFAULT_RPC_TIMEOUT_SEC, UNSET_RPC_TIMEOUT

__getattr__ = finder("torch.distributed.rpc.api")
__all__ = ["DEFAULT_RPC_TIMEOUT_SEC", "UNSET_RPC_TIMEOUT"]
