"""torch.distributed.fsdp._common_utils: the names that wrappers put into those of parameters."""

from ._names import FSDP_WRAPPED_MODULE, clean_tensor_name

FSDP_PREFIX = f"{FSDP_WRAPPED_MODULE}."

__all__ = ["FSDP_PREFIX", "FSDP_WRAPPED_MODULE", "clean_tensor_name"]
