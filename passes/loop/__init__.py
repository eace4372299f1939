"""Passes on tensor-valued loop nests."""
