"""How many partitions a call is paid for by: lists that are read while they are sent, specs, and changes."""

import pytest

from hms_gateway.rpc import structs
from hms_gateway.rpc.idl import ListType, StructType
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.objects import partitions_of
from hms_gateway.rpc.structs import (
    METHODS,
    AddPartitionsRequest,
    Partition,
    PartitionSpec,
    PartitionSpecWithSharedSD,
    PartitionWithoutSD,
)


class Unread:
    def __len__(self) -> int:
        return 1_000_000


def of(method: str, *, success=None, **arguments) -> int:
    one = METHODS[method]
    return partitions_of(method_facts()[method], one.arguments(**arguments), one.result(success=success))


SPECS = [
    PartitionSpec(sharedSDPartitionSpec=PartitionSpecWithSharedSD(partitions=[PartitionWithoutSD()] * 3)),
    PartitionSpec(sharedSDPartitionSpec=PartitionSpecWithSharedSD(partitions=Unread())),
    PartitionSpec(),
]


@pytest.mark.parametrize(
    ("count", "method", "values"),
    [
        (1_000_000, "get_partitions", {"success": Unread()}),
        (2, "get_partition_names", {"success": ["a=1", "a=2"]}),
        (0, "get_partitions", {"success": None}),
        (1_000_003, "get_partitions_pspec", {"success": SPECS}),
        (5, "add_partitions", {"new_parts": [Partition()] * 5}),
        (4, "add_partitions_req", {"request": AddPartitionsRequest(parts=[Partition()] * 4)}),
        (0, "get_all_tables", {"success": ["orders"]}),
    ],
)
def test_partitions_of_a_call(count, method, values):
    assert of(method, **values) == count


def test_a_call_that_failed_or_was_not_decoded_has_none():
    assert partitions_of(method_facts()["get_partitions"], None, None) == 0


def test_every_path_of_the_table_leads_to_a_list():
    for method, facts in method_facts().items():
        for path in facts.partitions_in:
            struct = METHODS[method].result if path.startswith("success") else METHODS[method].arguments
            for name in path.split("."):
                kind = {field.name: field.type for field in struct.definition.fields}[name.removesuffix("[]")]
                element = kind.element if isinstance(kind, ListType) else kind
                struct = getattr(structs, element.name) if isinstance(element, StructType) else struct
            assert isinstance(kind, ListType), (method, path)
