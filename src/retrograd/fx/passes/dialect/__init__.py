"""Passes for graphs of certain operations."""
