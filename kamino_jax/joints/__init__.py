"""Joints: kinds, geometry, drives and limits."""
