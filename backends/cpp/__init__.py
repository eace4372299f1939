"""C++/OpenMP source from kernels, compiled and loaded."""
