"""Saving and loading: torch's files, pickles, and what they may name."""
