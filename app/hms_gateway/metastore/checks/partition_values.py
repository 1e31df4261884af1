"""Which characters partition values may have (semantics §1.1, §2.12)."""

import re
from collections.abc import Sequence

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.partition_names import (
    PartitionValueRefused,
    check_valid_characters,
    have_valid_characters,
)
from hms_gateway.structs import MetaException


class PartitionValues:
    """The whitelist an operator may set; without one every value is fine."""

    def __init__(self, whitelist_pattern: str) -> None:
        self._whitelist = re.compile(whitelist_pattern) if whitelist_pattern else None

    def are_valid(self, values: Sequence[str] | None) -> bool:
        """Whether every value matches the whitelist as a whole."""
        return have_valid_characters(required(values, "partition values"), self._whitelist)

    def check(self, values: Sequence[str] | None) -> None:
        """Raise MetaException for the first value that does not match."""
        try:
            check_valid_characters(required(values, "partition values"), self._whitelist)
        except PartitionValueRefused as error:
            raise MetaException(str(error)) from error
