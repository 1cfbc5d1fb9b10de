"""torch.mps: no such device is there."""

from retrograd._compat._absent_device import device_count, empty_cache, is_available, manual_seed, refusals, synchronize

globals().update(
    refusals(
        "MPS",
        "current_allocated_memory driver_allocated_memory get_rng_state recommended_max_memory set_rng_state seed compile_shader",
    )
)

__all__ = ["device_count", "empty_cache", "is_available", "manual_seed", "synchronize"]
