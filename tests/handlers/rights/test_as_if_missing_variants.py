"""As `test_as_if_missing`, for calls of which one argument is absent, a pattern or bad."""

import itertools
import os

import pytest

from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.dialects import methods_of
from tests.handlers.rights.test_as_if_missing import NUMBERS, OF_EVERYBODY, ask, metastores  # noqa: F401
from tests.handlers.test_bad_input import METHOD_AND_DIALECT, chosen

pytestmark = pytest.mark.slow

MOST = int(os.environ.get("RIGHTS_VARIANTS", "6"))


@pytest.mark.parametrize(("name", "dialect"), METHOD_AND_DIALECT)
def test_bad_arguments_show_nothing_either(metastores, name: str, dialect: Dialect) -> None:  # noqa: F811
    if name in NUMBERS | OF_EVERYBODY:
        pytest.skip("says nothing of any object")
    found = []
    for values in itertools.islice(chosen(methods_of(dialect)[name]), MOST):
        try:
            payloads = [ask(each, "mallory", name, *values, dialect=dialect) for each in metastores]
        except Exception as error:
            found.append((repr(error)[:80], values))
            continue
        if payloads[0] != payloads[1]:
            found.append((payloads, values))
    assert not found
