"""Rewrites inside one level, one pass a file: the pass loop-fuse lies in loop/fuse.py."""
