"""Solvers of the `Problem`. They know neither model nor geometry."""
