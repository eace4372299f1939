"""The command lines; they import torch only when the input needs it."""
