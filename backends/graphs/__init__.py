"""Recording what compiled graphs launch on a CUDA device, and replaying it in later calls."""
