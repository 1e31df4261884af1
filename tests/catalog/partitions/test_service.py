"""What holds for all changes of partitions."""

from pathlib import Path
from typing import Any

import pytest

from hms_gateway.rpc.structs import MetaException, RequestPartsSpec
from hms_gateway.runtime.limits import Limits
from tests.metastore.partition_world import SALES, partition_world, to_tjson
from tests.support.partition_calls import PartitionCalls


def test_a_request_may_be_about_so_many_partitions(tmp_path: Path) -> None:
    with partition_world(tmp_path) as world:
        limits = Limits(partitions_per_request_max=2)
        service = PartitionCalls(world.store, world.files, world.clock, world.settings, to_tjson, limits)
        partitions = [world.partition("a", hour) for hour in "123"]
        names = RequestPartsSpec(names=["ds=a/hr=1", "ds=a/hr=2", "ds=a/hr=3"])
        calls: list[Any] = [
            lambda: service.add_all(partitions),
            lambda: service.add_to(SALES, partitions, skips_existing=True),
            lambda: service.alter_all(SALES, partitions),
            lambda: service.drop_all(SALES, names, ignores_missing=True, deletes_data=True),
        ]
        for call in calls:
            with pytest.raises(MetaException) as caught:
                call()
            assert caught.value == MetaException("More partitions in one request than partitions_per_request_max = 2")
        assert service.add_all(partitions[:2]) == 2
