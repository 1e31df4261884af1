"""As `test_as_if_missing`, for calls of which one argument is absent, a pattern or bad, or of another shape."""

import itertools
import random

import pytest

from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Dialect
from tests.handlers.rights.shapes import every_kind, random_shape
from tests.handlers.rights.test_as_if_missing import NUMBERS, OF_EVERYBODY, ask, metastores  # noqa: F401
from tests.handlers.test_bad_input import METHOD_AND_DIALECT, chosen
from tests.support.sample import sample

pytestmark = pytest.mark.slow

MOST = sample(3, of=60)


@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_bad_arguments_show_nothing_either(metastores, name: str, dialect: Dialect) -> None:  # noqa: F811
    if name in NUMBERS | OF_EVERYBODY:
        pytest.skip("says nothing of any object")
    found = []
    method, source = methods_of(dialect)[name], random.Random(name)
    kinds = list(every_kind(method))
    shapes = (*source.sample(kinds, min(MOST, len(kinds))), *(random_shape(method, source) for _ in range(MOST)))
    for values in (*itertools.islice(chosen(method), MOST), *shapes):
        try:
            payloads = [ask(each, "mallory", name, *values, dialect=dialect) for each in metastores]
        except Exception as error:
            found.append((repr(error)[:80], values))
            continue
        if payloads[0] != payloads[1]:
            found.append((payloads, values))
    assert not found
