"""How much random and repeating tests try: HMS_TESTS_SCALE times as much as the sample that `make test` takes."""

import os
from typing import Final

SCALE: Final = int(os.environ.get("HMS_TESTS_SCALE", "1"))
