"""The bounds of what callers may ask for: those that settings change, and those that are facts of the program."""

from typing import Annotated, Final

import msgspec
from msgspec import Meta

Count = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(gt=0, le=0.75)]


class FixedLimits(msgspec.Struct, frozen=True):
    """Bounds that no setting changes. Sizes are in bytes, the rest are counts."""

    body_memory_bytes_max: int = 768 * 1024 * 1024
    inflation_ratio_max: int = 300
    decoded_bytes_per_message_max: int = 128 * 1024 * 1024
    uploads_max: int = 200
    nesting_depth_max: int = 64
    container_elements_max: int = 10_000_000
    string_bytes_max: int = 100 * 1024 * 1024
    pattern_bytes_max: int = 64 * 1024
    pattern_alternatives_max: int = 1_000
    filter_depth_max: int = 64
    filter_bytes_max: int = 1024 * 1024
    filter_literals_max: int = 20_000
    filter_brackets_max: int = 10_000
    filters_per_request_max: int = 1_000
    table_filter_conditions_max: int = 1_000
    handshakes_max: int = 500
    password_checks_max: int = 400
    ticket_checks_max: int = 400
    delegation_tokens_per_user_max: int = 10_000
    delegation_tokens_per_proxy_max: int = 20_000
    unread_reply_bytes_max: int = 256 * 1024 * 1024
    waiting_calls_max: int = 1_000
    write_queue_max: int = 10_000
    lock_components_max: int = 10_000
    txns_per_call_max: int = 1_000_000
    error_text_characters_max: int = 10_000
    event_bytes_per_reply_max: int = 64 * 1024 * 1024
    cached_reply_bytes_max: int = 4 * 1024 * 1024
    iceberg_file_bytes_max: int = 128 * 1024 * 1024
    iceberg_decoded_bytes_max: int = 512 * 1024 * 1024


class Limits(FixedLimits, frozen=True):
    """Going over one of these is a clear error that names it; 0 or less never means "unlimited" here."""

    body_bytes_max: Count = 256 * 1024 * 1024
    """Size of a request's body, also when it is inflated."""
    body_read_seconds_max: Seconds = 60.0
    """Time for a request's body to arrive."""
    decoded_bytes_max: Count = 1024 * 1024 * 1024
    """Memory for decoded messages, and for metadata of Iceberg that requests read."""
    calls_in_flight_max: Count = 1_000
    """Calls at the same time."""
    connections_max: Count = 10_000
    """Connections of a process."""
    partitions_per_request_max: Count = 1_000_000
    """Partitions that one call may name or change."""
    cache_bytes_max: Count = 64 * 1024 * 1024
    """Memory for cached replies."""
    drain_seconds_max: Seconds = 30.0
    """Time for calls in flight to end when the gateway stops."""
    share_per_user: Fraction = 0.5
    """The part of each total that one user may hold."""
    share_per_address: Fraction = 0.75
    """The part of each total that one address may hold; IPv6 addresses count by /64."""


DEFAULT_LIMITS: Final = Limits()
