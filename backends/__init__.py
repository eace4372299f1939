"""What turns IR into something that runs; may import torch."""
