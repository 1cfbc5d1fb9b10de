"""torch.__future__: choices of how modules are converted. Here they are as they are by default."""


def get_overwrite_module_params_on_conversion() -> bool:
    """Tell whether conversions give modules new parameters: they do not, the data is replaced."""
    return False


def get_swap_module_params_on_conversion() -> bool:
    """Tell whether conversions swap parameters: they do not."""
    return False


__all__ = ["get_overwrite_module_params_on_conversion", "get_swap_module_params_on_conversion"]
