"""What makes IR run: torch.compile, the reference interpreter, C++ and Triton."""
