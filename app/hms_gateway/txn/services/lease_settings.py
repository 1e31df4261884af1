"""The settings of leases."""

import msgspec


class LeaseSettings(msgspec.Struct, frozen=True):
    """administrators      who may take leases away from others
    duration_seconds_max   the longest time a lease may last, extensions included
    wait_seconds_max       the longest time a request may wait
    objects_max            objects of one request
    name_bytes_max         of a database's or table's name, and of a partition's; they share an index entry
    poll_seconds           how often a waiting request looks, since it does not learn what other servers do
    forgotten_seconds      a waiting request whose server does not look for so long no longer counts
    """

    administrators: frozenset[str] = frozenset({"admin"})
    duration_seconds_max: int = 86_400
    wait_seconds_max: int = 300
    objects_max: int = 10_000
    name_bytes_max: tuple[int, int] = (256, 2_000)
    poll_seconds: float = 1.0
    forgotten_seconds: float = 10.0
