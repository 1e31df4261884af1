"""How much a run takes of what has many cases of one kind: a sample, or with HMS_TESTS=all the whole.

With HMS_TESTS=fast it takes only what needs no program beside `.venv` and little time.
"""

import os
from typing import Final, TypeVar

T = TypeVar("T")
U = TypeVar("U")

WHOLE: Final = os.environ.get("HMS_TESTS") == "all"
FAST: Final = os.environ.get("HMS_TESTS") == "fast"
# Of whatever is random; another one shows other cases.
FIRST_SEED: Final = int(os.environ.get("HMS_TESTS_SEED", "0"))


def sample(few: T, *, of: U) -> T | U:
    return of if WHOLE else few
