"""M6: a client's regular expression is looked at once, is never compiled or kept, and has a bound."""

import re
from collections.abc import Iterator

import pytest

from hms_gateway.composition.main import Metastore
from tests.attacks.processor_calls import answered, open_metastore

KEY = "hive.metastore.partition.name.whitelist.pattern"
BYTES_MAX = 64 * 1024


@pytest.fixture(scope="module")
def metastore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Metastore]:
    with open_metastore(tmp_path_factory.mktemp("expressions")) as opened:
        yield opened


@pytest.mark.parametrize(
    "pattern",
    [
        *("(" * 60_000, "(" * 200, "((a)", "[" * 60_000, "[a", "a)", "*", "(*a)", "a|+", "a\\"),
        *("a{" + "9" * 60_000 + "}", "a{2,1}", "a{1,99999999999}", "(?:" * 20_000),
    ],
)
def test_what_is_no_expression_is_a_declared_error(metastore: Metastore, pattern: str) -> None:
    outcome, text = answered(metastore, "setMetaConf", KEY, pattern)
    assert outcome == "MetaException"
    assert text is not None
    assert text.startswith("Invalid configuration value ")


@pytest.mark.parametrize(
    "pattern",
    [
        *("", "[^0-9]*", "(a|b)+?", "\\Q(((\\E", "[a-z&&[^b]]*", "(?<name>a{1,3})", "(a+)+$", "\\p{Alpha}++", "a{2}"),
        *("()" * 30_000, "(a|" * 10_000 + ")" * 10_000, "\\Q" * 30_000, "\\\\" * 30_000, "[a]" * 20_000),
    ],
)
def test_an_expression_is_accepted(metastore: Metastore, pattern: str) -> None:
    assert answered(metastore, "setMetaConf", KEY, pattern) == ("ok", None)


def test_a_value_beyond_the_limit_is_refused_with_its_name(metastore: Metastore) -> None:
    for pattern in ("a" * (BYTES_MAX + 1), "(a|b)" * 2_000_000):
        outcome, text = answered(metastore, "setMetaConf", KEY, pattern)
        assert outcome == "MetaException"
        assert text == "value is longer than 65536 bytes; shorten it (limit pattern_bytes_max)"


def test_nothing_is_compiled(metastore: Metastore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Python keeps what it compiles, whatever its size."""

    def refuse(*arguments: object) -> None:
        raise AssertionError(arguments)

    monkeypatch.setattr(re, "compile", refuse)
    assert answered(metastore, "setMetaConf", KEY, "a{1,3}b|c") == ("ok", None)
