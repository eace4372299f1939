"""The error of the symbolic integers."""

from ...errors import InductileError


class SymError(InductileError, ValueError):
    """A symbolic expression that has no value, cannot be read, or is too large.

    Raised for division by zero, an unknown symbol in an evaluation, malformed text, and expressions beyond
    the size limits that keep text from untrusted files harmless.
    """
