"""The report of a trace: one HTML file that needs no network, complete up to the last pass that ran."""

from .writer import Report

__all__ = ["Report"]
