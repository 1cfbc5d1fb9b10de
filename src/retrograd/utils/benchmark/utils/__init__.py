"""Where torch has the parts of its benchmark package."""
