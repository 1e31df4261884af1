"""A cache of encoded replies that is never stale."""

from hms_gateway.cache.reader_lists import Reading, ReplyKey, TagReading
from hms_gateway.cache.replies import ChangeFeed, ReplyCache
from hms_gateway.txn.rules.write_ids import InvalidList

__all__ = ["ChangeFeed", "InvalidList", "Reading", "ReplyCache", "ReplyKey", "TagReading"]
