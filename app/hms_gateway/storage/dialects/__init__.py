"""The kinds of databases: what differs between them, each question by its name. Nothing else compares kinds.

A kind's module is loaded when a database of the kind is opened.
"""

from hms_gateway.storage.dialects.base import Dialect
from hms_gateway.storage.dialects.kinds import dialect_of, dialect_of_url, parse_url, writing_engine

__all__ = ["Dialect", "dialect_of", "dialect_of_url", "parse_url", "writing_engine"]
