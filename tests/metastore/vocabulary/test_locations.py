import pytest
from hypothesis import given
from hypothesis import strategies as st

from hms_gateway.metastore.vocabulary.locations import (
    Location,
    LocationError,
    database_path,
    default_database_location,
    default_partition_location,
    default_table_location,
    is_default_table_location,
    is_normalized,
    is_under,
    join,
    moved_location,
    normalize_location,
    on_file_system_of,
    parse_location,
    relative_part,
    same_file_system,
)

COMPONENTS = st.text(alphabet="ab=%20 :?#é", min_size=1, max_size=5)


@pytest.mark.parametrize(
    ("given_text", "stored"),
    [
        ("file:///a/b/", "file:/a/b"),
        ("file:/a/b", "file:/a/b"),
        ("file:///a//b///c//", "file:/a/b/c"),
        ("file:///", "file:/"),
        ("file:/", "file:/"),
        ("hdfs://nn:8020/x//y", "hdfs://nn:8020/x/y"),
        ("/a/b", "file:/a/b"),
        ("/", "file:/"),
        ("/a:b/c", "file:/a:b/c"),
        ("hdfs:/a", "hdfs:/a"),
        ("hdfs:///a", "hdfs:/a"),
        ("//other/a", "file://other/a"),
        ("s3a://bucket", "s3a://bucket/"),
        ("s3a://bucket/", "s3a://bucket/"),
        ("s3a://bucket/a//b/", "s3a://bucket/a/b"),
        ("abfs://c@acct.example/x", "abfs://c@acct.example/x"),
        ("file:///w/lt%20a b?x#y", "file:/w/lt%20a b?x#y"),
        ("s3a://bucket/%2F/ü", "s3a://bucket/%2F/ü"),
        ("file:/a/./b/.", "file:/a/b"),
        ("file:/a/..b/c..", "file:/a/..b/c.."),
    ],
)
def test_locations_are_normalised_as_hadoop_does(given_text: str, stored: str) -> None:
    assert normalize_location(given_text) == stored
    assert normalize_location(stored) == stored


def test_a_relative_path_is_refused() -> None:
    with pytest.raises(LocationError, match="Relative path in absolute URI: a/b"):
        normalize_location("a/b")


@pytest.mark.parametrize(
    ("given_text", "message"),
    [
        (None, "java.lang.IllegalArgumentException: Can not create a Path from a null string"),
        ("", "java.lang.IllegalArgumentException: Can not create a Path from an empty string"),
        (
            "file:a/b",
            "java.lang.IllegalArgumentException: java.net.URISyntaxException: Relative path in absolute URI: file:a/b",
        ),
        (
            "a b:/c",
            "java.lang.IllegalArgumentException: java.net.URISyntaxException: Illegal character in scheme name: a b:/c",
        ),
        ("file:/a/../b", "java.lang.IllegalArgumentException: A location must not contain '..': file:/a/../b"),
        ("/..", "java.lang.IllegalArgumentException: A location must not contain '..': /.."),
        ("s3a://b/a/..", "java.lang.IllegalArgumentException: A location must not contain '..': s3a://b/a/.."),
        ("file:/a\0b", "java.lang.IllegalArgumentException: A location must not contain the character NUL"),
    ],
)
def test_locations_that_cannot_be_used_are_refused(given_text: str | None, message: str) -> None:
    with pytest.raises(LocationError) as refused:
        normalize_location(given_text)
    assert str(refused.value) == message


def test_a_location_is_scheme_authority_and_path() -> None:
    assert parse_location("hdfs://nn:8020/a") == Location("hdfs", "nn:8020", "/a")
    assert str(Location("file", "", "/a")) == "file:/a"


@given(st.text(alphabet="ab:/.%? s3", min_size=1, max_size=20))
def test_normalising_twice_changes_nothing(text: str) -> None:
    try:
        stored = normalize_location(text)
    except LocationError:
        return
    assert normalize_location(stored) == stored


def test_join_puts_one_slash_between() -> None:
    assert join("file:/w", "t") == "file:/w/t"
    assert join("s3a://bucket/", "t") == "s3a://bucket/t"


@pytest.mark.parametrize(
    ("database", "location"), [("default", "file:/w"), ("DEFAULT", "file:/w"), ("Sales", "file:/w/sales.db")]
)
def test_default_locations_of_databases(database: str, location: str) -> None:
    assert default_database_location("file:/w", database) == location


def test_the_path_of_a_database_is_its_location_but_for_the_default_one() -> None:
    assert database_path("file:/w", "sales", "file:/elsewhere") == "file:/elsewhere"
    assert database_path("file:/w", "sales", None) == "file:/w/sales.db"
    assert database_path("file:/w", "default", "file:/elsewhere") == "file:/w"


@pytest.mark.parametrize(
    ("table", "directory"), [("t", "t"), ("T_1", "t_1"), ("a/b", "a-47-b"), ("a.b-c", "a-46-b-45-c"), ("é", "-233-")]
)
def test_default_locations_of_tables_are_encoded(table: str, directory: str) -> None:
    assert default_table_location("file:/w/sales.db", table) == f"file:/w/sales.db/{directory}"


def test_default_locations_of_partitions_are_their_names() -> None:
    assert default_partition_location("file:/w/t", "ds=a%2Fb/hr=1") == "file:/w/t/ds=a%2Fb/hr=1"


def test_the_default_place_of_a_table_is_recognised_ignoring_case() -> None:
    assert is_default_table_location("file:/W/Sales.db/T", "file:/w/sales.db", "t")
    assert not is_default_table_location("file:/w/sales.db/t2", "file:/w/sales.db", "t")


def test_file_systems_are_compared_by_scheme_and_authority() -> None:
    assert same_file_system("hdfs://nn/a", "HDFS://NN/b")
    assert not same_file_system("hdfs://nn/a", "hdfs://other/a")
    assert not same_file_system("file:/a", "hdfs:/a")
    assert on_file_system_of("file:/w/t", "hdfs://nn/x") == "hdfs://nn/w/t"


@pytest.mark.parametrize(
    ("parent", "child", "relative"),
    [
        ("file:/w", "file:/w", ""),
        ("file:/w", "file:/w/t", "/t"),
        ("file:/w/", "file:/w/t/ds=1", "/t/ds=1"),
        ("file:/w", "file:/w2", None),
        ("file:/w/t", "file:/w", None),
        ("file:/w", "hdfs:/w/t", None),
        ("s3a://bucket/", "s3a://bucket/t", "/t"),
        ("s3a://bucket/", "s3a://bucket2/t", None),
        ("s3a://bucket/w", "S3://bucket/w/t", "/t"),
        ("s3n://bucket/w", "s3a://bucket/w", ""),
        ("abfss://c@a/w", "abfs://c@a/w/t", "/t"),
        ("file:/w", "file://localhost/w/t", "/t"),
        ("file:/w", "file://host/w/t", None),
        ("file:/", "file:/a", "/a"),
        ("file:/", "file:/", ""),
    ],
)
def test_what_lies_below_is_decided_by_whole_components(parent: str, child: str, relative: str | None) -> None:
    assert relative_part(parent, child) == relative
    assert is_under(parent, child) is (relative is not None)


@pytest.mark.parametrize(
    ("location", "moved"),
    [
        ("file:/w/t", "file:/w/new"),
        ("file:/w/t/ds=1", "file:/w/new/ds=1"),
        ("file:/w/t2/ds=1", None),
        ("file:/x/w/t/ds=1", None),
    ],
)
def test_a_moved_directory_takes_along_what_lies_below(location: str, moved: str | None) -> None:
    assert moved_location(location, "file:/w/t", "file:/w/new") == moved


@pytest.mark.slow
@given(st.lists(COMPONENTS, min_size=1, max_size=4), st.lists(COMPONENTS, max_size=4))
def test_relative_parts_lead_back(parent: list[str], below: list[str]) -> None:
    root = normalize_location("hdfs://nn/" + "/".join(parent))
    child = "/".join([root, *below])
    relative = relative_part(root, child)
    assert relative is not None
    assert root + relative == child
    assert moved_location(child, root, "file:/new") == "file:/new" + relative


@pytest.mark.parametrize(
    ("location", "is_so"),
    [
        ("file:/a/b", True),
        ("file:/", True),
        ("hdfs://nn/a", True),
        ("/a", False),
        ("file:///a", False),
        ("file:/a//b", False),
        ("file:/a/", False),
        ("file:/a/./b", False),
        ("file:/a/../b", False),
        ("", False),
    ],
)
def test_what_is_normalized_already(location: str, is_so: bool) -> None:
    assert is_normalized(location) is is_so
