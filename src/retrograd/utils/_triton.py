"""torch.utils._triton: whether the language for kernels on GPUs is used. It is not."""


def has_triton() -> bool:
    """Tell whether kernels are written in Triton."""
    return False


has_triton_package = has_triton
