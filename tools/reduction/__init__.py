"""Shrinking a module while something stays wrong with it: the engine and the ways to make a module simpler."""
