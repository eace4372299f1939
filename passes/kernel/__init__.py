"""Passes on kernels: tiling, and the mapping of loops to hardware."""
