"""Mechanics: inertia, contact rows, and the assembly of the problem."""
