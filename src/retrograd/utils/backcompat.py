"""torch.utils.backcompat: switches for warnings about what changed long ago. There is nothing to warn of here."""

from __future__ import annotations


class Warning:
    """A switch that is kept and has no effect."""

    enabled = False

    def set_enabled(self, value: bool) -> None:
        """Turn the switch."""
        self.enabled = value

    def get_enabled(self) -> bool:
        """Return how the switch stands."""
        return self.enabled


broadcast_warning = Warning()
keepdim_warning = Warning()
