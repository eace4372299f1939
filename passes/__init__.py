"""Rewrites inside one level; one pass a file, named like the pass."""
