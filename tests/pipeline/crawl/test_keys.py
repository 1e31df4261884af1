"""Names of directories to partitions, and values to types."""

import pytest

from hms_gateway.pipeline.crawl.tables import KeyShape, NotAPartition, spelled, split_component


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("ds=2026-01-01", ("ds", "2026-01-01")),
        ("DS=a=b", ("ds", "a=b")),
        ("d=a%2Fb%3Ac", ("d", "a/b:c")),
        ("d=100%", ("d", "100%")),
        ("d=", ("d", "")),
        ("plain", None),
        ("=x", None),
    ],
)
def test_a_component_is_split_at_its_first_equals_sign_and_unescaped(name, found):
    assert split_component(name) == found


def test_a_directory_that_is_not_escaped_has_the_escaped_name():
    found = spelled([("d", "string"), ("h", "int")], ["d=a:b c'", "h=7"])
    assert (found.values, found.name, found.same) == (["a:b c'", "7"], "d=a%3Ab c%27/h=7", "d=a%3Ab c%27/h=7")


@pytest.mark.parametrize(
    ("kind", "value", "same"),
    [
        ("int", "01", "1"),
        ("int", "-0", "0"),
        ("bigint", "+7", "7"),
        ("string", "01", "01"),
        ("varchar(3)", "01", "01"),
        ("date", "2026-1-2", "2026-01-02"),
        ("date", "2026-01-02", "2026-01-02"),
        ("int", "__HIVE_DEFAULT_PARTITION__", "__HIVE_DEFAULT_PARTITION__"),
    ],
)
def test_spellings_of_one_value_are_the_same(kind, value, same):
    assert spelled([("d", kind)], [f"d={value}"]).same == f"d={same}"


@pytest.mark.parametrize(
    ("kind", "components", "text"),
    [
        ("int", ["d=x"], "has the value 'x' for the key d, which is not a int"),
        ("tinyint", ["d=128"], "has the value 128 for the key d, which is beyond tinyint"),
        ("date", ["d=2026-02-30"], "is not a date"),
        ("int", ["e=1"], "is not a value of the key d: e=1"),
        ("int", ["d="], "has an empty value of the key d"),
        ("int", ["d=1", "e=2"], "has 2 of the 1 keys d"),
        ("int", [], "has 0 of the 1 keys d"),
    ],
)
def test_what_is_not_a_partition_says_why(kind, components, text):
    with pytest.raises(NotAPartition) as caught:
        spelled([("d", kind)], components)
    assert text in str(caught.value)


def test_the_smallest_value_of_a_type_is_one_of_its_values():
    assert spelled([("d", "tinyint")], ["d=-128"]).values == ["-128"]


@pytest.mark.parametrize(
    ("values", "kind"),
    [
        (["1", "2", "__HIVE_DEFAULT_PARTITION__"], "int"),
        (["1", "3000000000"], "bigint"),
        (["1", "99999999999999999999"], "string"),
        (["01", "02"], "string"),
        (["2026-01-01", "2026-12-31"], "date"),
        (["2026-01-01", "2026-02-30"], "string"),
        (["2026-01-01", "7"], "string"),
        (["__HIVE_DEFAULT_PARTITION__"], "string"),
        (["a"], "string"),
    ],
)
def test_the_type_of_a_key_is_the_narrowest_that_keeps_every_value(values, kind):
    shape = KeyShape(("d",), [0])
    for value in values:
        shape.add([value])
    assert shape.types() == [kind]
    parts = [KeyShape(("d",), [0]) for _ in values]
    for part, value in zip(parts, values, strict=True):
        part.add([value])
    together = KeyShape(("d",), [0])
    for part in reversed(parts):
        together.merge(part.kinds, part.directories)
    assert (together.types(), together.directories) == ([kind], len(values))
