"""Passes on a module of any level."""
