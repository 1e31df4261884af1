"""Every bound of the server in one place, by name (design D15)."""

from typing import Final

import msgspec


class Limits(msgspec.Struct, frozen=True):
    """Going over one of these is a clear error that names it; 0 or less never means "unlimited" here.

    Sizes are in bytes, times in seconds, the rest are counts.
    """

    body_bytes_max: int = 256 * 1024 * 1024
    body_read_seconds_max: float = 60.0
    body_memory_bytes_max: int = 768 * 1024 * 1024
    body_memory_bytes_per_user_max: int = 384 * 1024 * 1024
    body_memory_bytes_per_address_max: int = 512 * 1024 * 1024
    inflation_ratio_max: int = 300
    decoded_bytes_per_message_max: int = 128 * 1024 * 1024
    decoded_bytes_max: int = 1024 * 1024 * 1024
    decoded_bytes_per_user_max: int = 512 * 1024 * 1024
    decoded_bytes_per_address_max: int = 768 * 1024 * 1024
    uploads_max: int = 200
    uploads_per_user_max: int = 50
    uploads_per_address_max: int = 100
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
    connections_max: int = 10_000
    connections_per_user_max: int = 5_000
    connections_per_address_max: int = 2_500
    handshakes_max: int = 500
    handshakes_per_address_max: int = 250
    password_checks_max: int = 400
    password_checks_per_user_max: int = 100
    password_checks_per_address_max: int = 100
    ticket_checks_max: int = 400
    ticket_checks_per_address_max: int = 100
    delegation_tokens_per_user_max: int = 10_000
    delegation_tokens_per_proxy_max: int = 20_000
    calls_in_flight_max: int = 1_000
    calls_per_user_max: int = 200
    calls_per_address_max: int = 500
    threads_per_user_max: int = 24
    threads_per_address_max: int = 28
    streams_per_user_max: int = 12
    streams_per_address_max: int = 50
    unread_reply_bytes_max: int = 256 * 1024 * 1024
    unread_reply_bytes_per_user_max: int = 128 * 1024 * 1024
    unread_reply_bytes_per_address_max: int = 192 * 1024 * 1024
    waiting_calls_max: int = 1_000
    waiting_calls_per_user_max: int = 250
    waiting_calls_per_address_max: int = 500
    write_queue_max: int = 10_000
    lock_components_max: int = 10_000
    txns_per_call_max: int = 1_000_000
    partitions_per_request_max: int = 1_000_000
    error_text_characters_max: int = 10_000
    event_bytes_per_reply_max: int = 64 * 1024 * 1024
    cache_bytes_max: int = 64 * 1024 * 1024
    cached_reply_bytes_max: int = 4 * 1024 * 1024
    drain_seconds_max: float = 30.0


DEFAULT_LIMITS: Final = Limits()
