"""Passes on aten graphs."""
