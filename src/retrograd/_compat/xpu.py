"""torch.xpu: no such device is there."""

from retrograd._compat._absent_device import (
    device_count,
    empty_cache,
    is_available,
    is_bf16_supported,
    manual_seed,
    refusals,
    synchronize,
)

manual_seed_all = manual_seed
globals().update(
    refusals(
        "XPU",
        """Event Stream current_device current_stream device get_device_capability get_device_name get_device_properties get_rng_state
        get_rng_state_all is_current_stream_capturing max_memory_allocated max_memory_reserved mem_get_info memory_allocated
        memory_reserved memory_stats reset_peak_memory_stats set_device set_rng_state set_rng_state_all""",
    )
)

__all__ = [
    "device_count",
    "empty_cache",
    "is_available",
    "is_bf16_supported",
    "manual_seed",
    "manual_seed_all",
    "synchronize",
]
