"""Triton source from kernels, compiled and launched."""
