"""What the IR of inductile can say: the dialects sym, aten, scalar, loop, kernel and host."""
