"""Choosing among the backends of torch.compile by what they give and how long they take."""
