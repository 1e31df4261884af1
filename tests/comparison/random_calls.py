"""Random programs of calls, one for each seed."""

from tests.comparison.random_catalog import CatalogProgram
from tests.comparison.random_choices import PROGRAM_CALLS, Choices
from tests.comparison.random_objects import ObjectProgram
from tests.comparison.random_txns import TxnProgram

__all__ = ["PROGRAM_CALLS", "program"]

_KINDS: tuple[type[Choices], ...] = (CatalogProgram, ObjectProgram, TxnProgram)


def program(seed: int) -> Choices:
    """The program of a seed. Kinds take turns."""
    return _KINDS[seed % len(_KINDS)](seed)
