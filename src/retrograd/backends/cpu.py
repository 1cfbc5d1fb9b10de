"""torch.backends.cpu: what the CPU can do."""


def get_cpu_capability() -> str:
    """Return which of torch's kernels are used: none of them, NumPy has its own."""
    return "DEFAULT"


__all__ = ["get_cpu_capability"]
