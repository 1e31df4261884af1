"""Generated names: Java's hash, the time, and a number."""

from hms_gateway.metastore.vocabulary.names import generated_name, java_hash


def test_the_hash_is_javas() -> None:
    # What "hello".hashCode() and "hello world".hashCode() are known to be.
    assert java_hash("hello") == 99_162_322
    assert java_hash("hello world") == 1_794_106_052
    assert java_hash("") == 0
    assert generated_name("pk", ["a"], 5, (), {}) == f"pk_{java_hash('{a,pk}') & 0x7FFFFFFF}_5_0"


def test_the_number_avoids_names_that_are_taken() -> None:
    first = generated_name("uk", ["d", "t", "c"], 1000, set(), {})
    second = generated_name("uk", ["d", "t", "c"], 1000, {first}, {})
    assert (first[:3], first[-7:], second[-7:]) == ("uk_", "_1000_0", "_1000_1")
    assert generated_name("uk", ["d", "t", "x"], 1000, set(), {}) != first


def test_any_text_has_a_hash() -> None:
    assert generated_name("nn", ["\U0001f600", "\udfff"], 0, (), {}).startswith("nn_")
