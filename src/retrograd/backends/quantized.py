"""torch.backends.quantized: kernels for quantized numbers. There are none."""

engine = "none"
supported_engines = ["none"]

__all__ = ["engine", "supported_engines"]
