"""Passes on the program around the kernels: order, and memory."""
