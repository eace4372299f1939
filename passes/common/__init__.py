"""What passes of several levels share."""
