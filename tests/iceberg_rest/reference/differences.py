"""Where the gateway answers other than Iceberg's own REST adapter (1.10.2 over JdbcCatalog), and why."""

from collections.abc import Iterator
from typing import Any, Final

from tests.iceberg_rest.reference.answers import Answer

_OWNER: Final = "namespaces are databases of the metastore, which have owners"
_CLIENT: Final = "the adapter's library replaces what the client says of itself"
# Fields that differ in every answer that has them.
FIELDS: Final = {
    "config": "the adapter leaves out a configuration of clients that is empty",
    "properties.hive.metastore.database.owner": _OWNER,
    "properties.hive.metastore.database.owner-type": _OWNER,
    "metadata.properties.write.parquet.compression-codec": "the adapter's library sets it to the default of clients",
    "metadata.versions.0.summary.engine-name": _CLIENT,
    "metadata.versions.0.summary.iceberg-version": _CLIENT,
}
_NEWER: Final = "the document has it, the adapter of this version has not"
_ODD: Final = "what the document does not have is refused before a file has it"
_ILLEGAL: Final = "IllegalArgumentException"
_ABSENT: Final = "as the adapter has it for each other field that is absent"
_AGAIN: Final = "409: the client reads the table again and tries once more (iceberg#15126)"
# What differs in the answers to single requests, by the names of these, and why.
REQUESTS: Final[dict[str, tuple[str, str]]] = {
    "config": ("endpoints, idempotency-key-lifetime", "each server lists what it serves"),
    "make with an empty name": ("400, not 200", "a database has a name"),
    "make a nested one below none": ("400, not 200", "namespaces are databases, of one level"),
    "change odd properties": ("400, not 200", _ODD),
    "a method that is not there": ("405, not 400", "the status of HTTP"),
    "a route that is not there": ("404, not 400", "the status of HTTP"),
    "make without a schema": ("BadRequestException, not IllegalArgumentException", _ABSENT),
    "make without a table's name": ("BadRequestException, not IllegalArgumentException", _ABSENT),
    "stage": ("metadata.properties.created-at", "the adapter notes the time in the table's properties"),
    "add a spec that has a field of another": (
        "metadata.last-partition-id, metadata.partition-specs.2.fields.0.field-id,"
        " metadata.partition-specs.2.fields.1.field-id",
        "ids of partition fields are those of the same field, or new ones; the adapter counts each spec from 1000",
    ),
    "add a spec with an odd transform": ("400, not 200", _ODD),
    "an old sequence number": ("409, not 400", _AGAIN),
    "main as a tag": ("400, not 200", "the branch main is where writers commit"),
    "with null as its summary": ("200, not 400", "null is taken for an absent field, and not written"),
    "with an odd operation": ("400, not 200", _ODD),
    "rows that are taken": ("409, not 400", _AGAIN),
    "remove an encryption key": ("metadata.encryption-keys", "an empty list is left of it"),
    "register a missing file": ("404, not 500", "a file that is not there is no failure of the server"),
    "register again": ("200, not 409", _NEWER),
    "unregister": ("200, not 400", _NEWER),
    "unregister a missing table": ("404, not 400", _NEWER),
    "the same version again": ("metadata.current-version-id, metadata.version-log, metadata.versions", _CLIENT),
    "an update of tables": ("400, not 406", "the document has no 406 for it"),
    "register a view": ("200, not 400", _NEWER),
    "register a view again": ("409, not 400", _NEWER),
    "a page of namespaces": ("namespaces.0.0", "each metastore has a database default"),
    "a page of no size": ("400, not 200", "the document has 1 as the smallest page"),
}


def difference(ours: Answer, theirs: Answer) -> str | None:
    """What of two answers differs, but for FIELDS; None where nothing does."""
    is_mistake = ours.status == 400 and theirs.status in (400, 500)
    if is_mistake:
        # Clients take each other 400 for the same, and at many mistakes the adapter fails with an exception of Java.
        kinds = (_kind(ours), _kind(theirs))
        is_other = theirs.status == 400 and _ILLEGAL in kinds and kinds[0] != kinds[1]
        return f"{kinds[0]}, not {kinds[1]}" if is_other else None
    if ours.status != theirs.status:
        return f"{ours.status}, not {theirs.status}"
    return ", ".join(path for path in _differing(ours.body, theirs.body) if path not in FIELDS) or None


def _kind(answer: Answer) -> str:
    """The type of an error, which a refused token names in OAuth2's place."""
    error = answer.body["error"]
    return str(error["type"] if isinstance(error, dict) else error)


def _differing(ours: Any, theirs: Any, path: str = "") -> Iterator[str]:
    """Paths of the values that differ."""
    if isinstance(ours, dict) and isinstance(theirs, dict):
        for key in sorted({*ours, *theirs}):
            inner = f"{path}.{key}" if path else key
            if key in ours and key in theirs:
                yield from _differing(ours[key], theirs[key], inner)
            else:
                yield inner
    elif isinstance(ours, list) and isinstance(theirs, list) and len(ours) == len(theirs):
        for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
            yield from _differing(one, other, f"{path}.{number}")
    elif ours != theirs:
        yield path
