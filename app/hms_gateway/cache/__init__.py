"""A cache of encoded replies that is never stale."""

from hms_gateway.cache.replies import ChangeFeed, ReplyCache, ReplyKey

__all__ = ["ChangeFeed", "ReplyCache", "ReplyKey"]
