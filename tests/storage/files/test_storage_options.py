"""Options of fsspec in the table of a scheme, and of schemes that are spellings of one file system."""

import pytest

from hms_gateway.pipeline.audit.places import location_of
from hms_gateway.pipeline.storage import scheme_of
from hms_gateway.storage.files.places import options_of

OWN, COMMON, OTHER = {"key": "own"}, {"key": "common"}, {"key": "other"}


@pytest.mark.parametrize(
    ("scheme", "tables", "expected"),
    [
        ("s3a", {"s3": COMMON, "s3a": OWN, "s3n": OTHER}, OWN),
        ("s3a", {"s3": COMMON, "s3n": OTHER}, COMMON),
        ("s3a", {"s3n": OTHER, "abfs": OWN}, OTHER),
        ("abfs", {"abfss": OTHER}, OTHER),
        ("wasbs", {"abfss": OTHER, "wasbs": {}}, OTHER),
        ("hdfs", {"s3": COMMON}, {}),
    ],
)
def test_own_options_come_before_those_of_other_spellings(scheme, tables, expected):
    assert options_of(scheme, tables) == expected


@pytest.mark.parametrize("scheme", ["abfss", "wasb", "wasbs", "s3a", "s3n"])
def test_an_audit_finds_the_options_of_the_scheme_of_a_location(scheme):
    audited = location_of(f"{scheme}://lake@corp.test/sales/orders")
    assert options_of(scheme_of(audited), {scheme: OWN}) == OWN
