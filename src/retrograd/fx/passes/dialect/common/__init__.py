"""Passes that only look at how nodes are connected."""
