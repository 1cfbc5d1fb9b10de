"""Random programs over torch's public operations and every transform, run on both libraries and compared."""
