"""torch.distributed.rpc.constants: how long a call may take."""

DEFAULT_RPC_TIMEOUT_SEC: float = 60.0
UNSET_RPC_TIMEOUT: float = -1.0
