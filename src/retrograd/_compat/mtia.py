"""torch.mtia: no such device is there."""

from retrograd._compat._absent_device import device_count, empty_cache, is_available, manual_seed, synchronize

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
