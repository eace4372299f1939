"""What languages like C share: a kernel as a function of one thread, compiled to a library, loaded and launched."""
