"""What a simulation raises."""


class Violation(AssertionError):
    """Something that must hold does not; the text says what, with seed and step."""
