"""Routes of the REST catalog: operations of Iceberg's OpenAPI document, their parameters, answers and errors."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, Final, NamedTuple
from urllib.parse import parse_qsl, unquote_to_bytes

import msgspec

from hms_gateway.catalog.tables.catalogs import CatalogRows
from hms_gateway.iceberg.catalog import Catalog, Page
from hms_gateway.iceberg.errors import IcebergError, bad_request
from hms_gateway.iceberg.files import MetadataFile
from hms_gateway.iceberg.json_values import Json, checked, needed, objects, text_map
from hms_gateway.iceberg.metastore import Metastore, Name, Perform, missing, no_namespace, translated
from hms_gateway.iceberg.rows import TABLE, VIEW
from hms_gateway.metastore.ports.store import Store
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.rpc.call import Call, Failed, Unavailable, Waiting
from hms_gateway.rpc.structs import ThriftException
from hms_gateway.rpc.structs.catalogs import DEFAULT_CATALOG, TRIMMED, shown_text
from hms_gateway.runtime.call_keys import AlreadyConcluded
from hms_gateway.runtime.limits import DEFAULT_LIMITS
from hms_gateway.runtime.tracebacks import forget_frames

_NAMESPACE_SEPARATOR: Final = "\x1f"
# First segments behind /v1, which no prefix is.
_HEADS: Final = ("namespaces", "tables", "views", "transactions")
_PAGE_SIZE_MAX: Final = 10_000
_TEXT_CHARACTERS_MAX: Final = 4_000
# Longer bodies are sent in parts, and no cache keeps them.
_WHOLE_BYTES_MAX: Final = DEFAULT_LIMITS.cached_reply_bytes_max


class Answer(NamedTuple):
    """An HTTP response: its status, JSON body and headers; a long body comes in `parts` instead.

    `row` is the table or view whose row decides on the answer together with the request and the caller's rights.
    """

    status: int
    body: bytes | None = None
    headers: Mapping[str, str] = {}
    parts: Sequence[bytes] = ()
    row: Name | None = None

    @classmethod
    def of(cls, value: Any, status: int = 200, **headers: str) -> "Answer":
        return cls(status, msgspec.json.encode(value), headers)


class Operation(NamedTuple):
    """An operation of the OpenAPI document; `path` is behind /v1/{prefix}."""

    method: str
    path: str
    id: str
    answer: Callable[["RestCatalog", "Asked"], Answer]

    @property
    def endpoint(self) -> str:
        """As `config` lists it."""
        return f"{self.method} /v1/{{prefix}}/{self.path}"


class Request(NamedTuple):
    """A request as it came: the operation, parameters of its path and query, and the body."""

    operation: Operation
    catalog: str
    path: Mapping[str, str]
    query: Mapping[str, str]
    held: str | None = None
    body: bytes = b""

    @property
    def objects(self) -> tuple[str, ...]:
        """The namespace, table or view that the path names, for logs."""
        names = [self.path[each] for each in ("namespace", "table", "view") if each in self.path]
        return (".".join(names).lower(),) if names else ()


class Asked:
    """A request on its way: its parameters, checked where they are read."""

    def __init__(self, metastore: Metastore, request: Request) -> None:
        self.metastore = metastore
        self.request = request
        self._body: Json | None = None

    @property
    def body(self) -> Json:
        """Raises IcebergError for a body that is no JSON object."""
        if self._body is None:
            try:
                decoded = msgspec.json.decode(self.request.body or b"null")
            except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
                raise bad_request(f"the body is no JSON: {error}") from None
            self._body = checked("the body", decoded, dict)
        return self._body

    @property
    def namespace(self) -> str:
        return _known_level(self.request.path["namespace"].split(_NAMESPACE_SEPARATOR))

    def name(self, kind: str) -> Name:
        catalog, path = self.request.catalog, self.request.path
        name = path["view" if kind == VIEW else "table"]
        levels = path["namespace"].split(_NAMESPACE_SEPARATOR)
        if len(levels) > 1:
            # Java's clients ask for `files` in the namespace `sales.orders`, and then for the table itself.
            raise missing(Name(catalog, ".".join(levels), name), kind)
        return Name(catalog, _level(levels), name)

    def named(self, value: Json) -> Name:
        """The table or view of an identifier in a body."""
        return Name(self.request.catalog, _known_level(_levels(value)), needed(value, "name", str))

    def new_name(self) -> Name:
        name = needed(self.body, "name", str)
        if not name:
            raise bad_request("name is empty")
        return Name(self.request.catalog, self.namespace, name)

    @property
    def page(self) -> Page:
        size = self.request.query.get("pageSize")
        if size is not None and not (size.isdecimal() and len(size) < 10 and int(size) > 0):
            raise bad_request("pageSize must be a number from 1 to 999999999")
        return Page(self.request.query.get("pageToken"), None if size is None else min(int(size), _PAGE_SIZE_MAX))


def _levels(value: Json) -> list[str]:
    return [checked("namespace", each, str) for each in needed(value, "namespace", list)]


def _known_level(levels: Sequence[str]) -> str:
    """The database of a namespace that is there. Raises IcebergError."""
    if len(levels) > 1:
        raise no_namespace(".".join(levels))
    return _level(levels)


def _level(levels: Sequence[str]) -> str:
    if len(levels) != 1 or not levels[0]:
        shown = ".".join(levels)
        raise bad_request(f"namespace {shown!r} is not of one level; a namespace is a database of the metastore")
    if "\0" in levels[0] or levels[0].lstrip(TRIMMED).startswith("@"):
        raise bad_request(f"namespace {levels[0]!r} is no name of a database")
    return levels[0]


class RestCatalog:
    """Answers requests, in a worker thread."""

    def __init__(
        self,
        catalog: Catalog,
        perform: Perform,
        store: Store,
        translate: Callable[[Exception], Exception],
        key_lifetime_seconds: int,
        issuers: Mapping[str, Callable[[], str | None]],
    ) -> None:
        """`perform` is `Processor.perform`; `translate` is as for `Processor`; `issuers` have the functions that find
        their token endpoints.
        """
        self._catalog = catalog
        self._translate = translate
        self._perform = perform
        self._store = store
        self._key_lifetime_seconds = key_lifetime_seconds
        self._issuers = issuers

    def answer(self, call: Call, request: Request) -> Answer:
        """Raises Unavailable, Waiting, AlreadyConcluded."""
        try:
            if request.catalog != DEFAULT_CATALOG and not self._has_catalog(request.catalog):
                raise _no_warehouse(request.catalog)
            return request.operation.answer(self, Asked(Metastore(self._perform, call), request))
        except (Waiting, AlreadyConcluded):
            raise
        except Exception as error:
            # Without a name for the error here, which would be a cycle with its traceback.
            answer = self._refused(error, request.catalog)
            if answer is None:
                raise
            forget_frames(error)
            return answer

    def _refused(self, error: Exception, catalog: str) -> Answer | None:
        """The answer in place of an error, None for one of a server that cannot answer. Raises Unavailable."""
        refused = self._refusal(error)
        if refused is None:
            return None
        # Keys of databases are the metastore's own.
        return failure(IcebergError(refused.kind, shown_text(str(refused), (f"{catalog}.database.table",))))

    def _refusal(self, error: Exception) -> IcebergError | None:
        """The error as clients see it, None for one of a server that cannot answer. Raises Unavailable."""
        if isinstance(error, IcebergError):
            return error
        raised = self._translate(error)
        if isinstance(raised, ThriftException):
            return translated(raised)
        if isinstance(raised, Failed):
            return IcebergError("InternalServerError", str(raised))
        if isinstance(raised, Unavailable) and raised is not error:
            raise raised from error
        return None

    def _has_catalog(self, name: str) -> bool:
        return self._store.read(lambda snapshot: CatalogRows(snapshot).find(name) is not None)

    def config(self, asked: Asked) -> Answer:
        warehouse = asked.request.query.get("warehouse", "")
        overrides: dict[str, str] = {}
        # PyIceberg and Spark send the place of a warehouse here.
        if warehouse and not set("/:") & set(warehouse):
            name = normalize(warehouse)
            if name != DEFAULT_CATALOG:
                if not self._has_catalog(name):
                    raise _no_warehouse(warehouse)
                overrides["prefix"] = name
        endpoints = [one.endpoint for one in OPERATIONS]
        lifetime = f"PT{self._key_lifetime_seconds // 60}M"
        # A client has one place for its tokens.
        url = next(iter(self._issuers.values()))() if len(self._issuers) == 1 else None
        defaults = {"oauth2-server-uri": url} if url else {}
        return Answer.of(
            {"defaults": defaults, "overrides": overrides, "endpoints": endpoints, "idempotency-key-lifetime": lifetime}
        )

    def list_namespaces(self, asked: Asked) -> Answer:
        parent = asked.request.query.get("parent")
        parent = _known_level(parent.split(_NAMESPACE_SEPARATOR)) if parent else None
        return _listed(self._catalog.list_namespaces(asked.metastore, asked.request.catalog, parent, asked.page))

    def create_namespace(self, asked: Asked) -> Answer:
        namespace, properties = _level(_levels(asked.body)), text_map(asked.body, "properties")
        return Answer.of(self._catalog.create_namespace(asked.metastore, asked.request.catalog, namespace, properties))

    def load_namespace(self, asked: Asked) -> Answer:
        return Answer.of(self._catalog.load_namespace(asked.metastore, asked.request.catalog, asked.namespace))

    def check_namespace(self, asked: Asked) -> Answer:
        self._catalog.load_namespace(asked.metastore, asked.request.catalog, asked.namespace)
        return Answer(204)

    def drop_namespace(self, asked: Asked) -> Answer:
        self._catalog.drop_namespace(asked.metastore, asked.request.catalog, asked.namespace)
        return Answer(204)

    def update_namespace(self, asked: Asked) -> Answer:
        return Answer.of(
            self._catalog.update_namespace(asked.metastore, asked.request.catalog, asked.namespace, asked.body)
        )

    def list_tables(self, asked: Asked) -> Answer:
        return self._list(asked, TABLE)

    def list_views(self, asked: Asked) -> Answer:
        return self._list(asked, VIEW)

    def _list(self, asked: Asked, kind: str) -> Answer:
        return _listed(
            self._catalog.list_named(asked.metastore, asked.request.catalog, asked.namespace, kind, asked.page)
        )

    def create_table(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.create_table(asked.metastore, asked.new_name(), asked.body))

    def create_view(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.create_view(asked.metastore, asked.new_name(), asked.body))

    def register_table(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.register(asked.metastore, asked.new_name(), asked.body))

    def register_view(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.register(asked.metastore, asked.new_name(), asked.body, VIEW))

    def load_table(self, asked: Asked) -> Answer:
        shown = asked.request.query.get("snapshots", "all")
        if shown not in ("all", "refs"):
            raise bad_request("snapshots must be all or refs")
        return self._load(asked, TABLE, shown)

    def load_view(self, asked: Asked) -> Answer:
        return self._load(asked, VIEW, "all")

    def _load(self, asked: Asked, kind: str, shown: str) -> Answer:
        """304 where the client has this answer already; the file is not read then, since none is ever changed."""
        name = asked.name(kind)
        found = self._catalog.pointer(asked.metastore, name, kind)
        tag, held = _tag(found.location, shown), asked.request.held
        row = name if found.is_own else None
        if held is not None and tag in {each.strip().removeprefix("W/") for each in held.split(",")}:
            return Answer(304, None, {"etag": tag}, row=row)
        file = self._catalog.read(found, kind)
        return _loaded(file if shown == "all" else _with_refs_only(file))._replace(headers={"etag": tag}, row=row)

    def check_table(self, asked: Asked) -> Answer:
        self._catalog.check_exists(asked.metastore, asked.name(TABLE))
        return Answer(204)

    def check_view(self, asked: Asked) -> Answer:
        self._catalog.check_exists(asked.metastore, asked.name(VIEW), VIEW)
        return Answer(204)

    def commit_table(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.commit(asked.metastore, [(asked.name(TABLE), asked.body)])[0])

    def commit_transaction(self, asked: Asked) -> Answer:
        changes = [
            (asked.named(needed(each, "identifier", dict)), each) for each in objects(asked.body, "table-changes")
        ]
        if not changes:
            raise bad_request("table-changes is empty")
        if len({name.stored for name, _ in changes}) < len(changes):
            raise bad_request("table-changes names a table twice")
        self._catalog.commit(asked.metastore, changes)
        return Answer(204)

    def replace_view(self, asked: Asked) -> Answer:
        return _loaded(self._catalog.replace_view(asked.metastore, asked.name(VIEW), asked.body))

    def drop_table(self, asked: Asked) -> Answer:
        purges = asked.request.query.get("purgeRequested", "false").lower() == "true"
        self._catalog.drop(asked.metastore, asked.name(TABLE), purges=purges)
        return Answer(204)

    def unregister_table(self, asked: Asked) -> Answer:
        name = asked.name(TABLE)
        # The answer is the table's metadata, so it is read first; the file may be gone when the table is dropped.
        read = self._catalog.load(asked.metastore, name)
        return _loaded(self._catalog.drop(asked.metastore, name) or read)

    def drop_view(self, asked: Asked) -> Answer:
        self._catalog.drop(asked.metastore, asked.name(VIEW), VIEW)
        return Answer(204)

    def rename_table(self, asked: Asked) -> Answer:
        return self._rename(asked, TABLE)

    def rename_view(self, asked: Asked) -> Answer:
        return self._rename(asked, VIEW)

    def _rename(self, asked: Asked, kind: str) -> Answer:
        source, target = (asked.named(needed(asked.body, each, dict)) for each in ("source", "destination"))
        self._catalog.rename(asked.metastore, source, target, kind)
        return Answer(204)

    def report_metrics(self, asked: Asked) -> Answer:
        needed(asked.body, "report-type", str)
        return Answer(204)

    def refuse_token(self, asked: Asked | None = None) -> Answer:
        """In the words of OAuth2, as the document has it for this operation."""
        own = "send a password (header.Authorization, or Basic), a token (token), or a client certificate"
        places = " or ".join(find() or issuer for issuer, find in self._issuers.items())
        issued = f"set oauth2-server-uri to {places}, or " if places else ""
        text = f"this server issues no tokens; {issued}{own}"
        return Answer.of({"error": "unsupported_grant_type", "error_description": text}, 400)


_TABLES: Final = "namespaces/{namespace}/tables"
_VIEWS: Final = "namespaces/{namespace}/views"
OPERATIONS: Final = (
    Operation("GET", "namespaces", "listNamespaces", RestCatalog.list_namespaces),
    Operation("POST", "namespaces", "createNamespace", RestCatalog.create_namespace),
    Operation("GET", "namespaces/{namespace}", "loadNamespaceMetadata", RestCatalog.load_namespace),
    Operation("HEAD", "namespaces/{namespace}", "namespaceExists", RestCatalog.check_namespace),
    Operation("DELETE", "namespaces/{namespace}", "dropNamespace", RestCatalog.drop_namespace),
    Operation("POST", "namespaces/{namespace}/properties", "updateProperties", RestCatalog.update_namespace),
    Operation("POST", "namespaces/{namespace}/register", "registerTable", RestCatalog.register_table),
    Operation("POST", "namespaces/{namespace}/register-view", "registerView", RestCatalog.register_view),
    Operation("GET", _TABLES, "listTables", RestCatalog.list_tables),
    Operation("POST", _TABLES, "createTable", RestCatalog.create_table),
    Operation("GET", f"{_TABLES}/{{table}}", "loadTable", RestCatalog.load_table),
    Operation("POST", f"{_TABLES}/{{table}}", "updateTable", RestCatalog.commit_table),
    Operation("HEAD", f"{_TABLES}/{{table}}", "tableExists", RestCatalog.check_table),
    Operation("DELETE", f"{_TABLES}/{{table}}", "dropTable", RestCatalog.drop_table),
    Operation("POST", f"{_TABLES}/{{table}}/unregister", "unregisterTable", RestCatalog.unregister_table),
    Operation("POST", f"{_TABLES}/{{table}}/metrics", "reportMetrics", RestCatalog.report_metrics),
    Operation("POST", "tables/rename", "renameTable", RestCatalog.rename_table),
    Operation("POST", "transactions/commit", "commitTransaction", RestCatalog.commit_transaction),
    Operation("GET", _VIEWS, "listViews", RestCatalog.list_views),
    Operation("POST", _VIEWS, "createView", RestCatalog.create_view),
    Operation("GET", f"{_VIEWS}/{{view}}", "loadView", RestCatalog.load_view),
    Operation("POST", f"{_VIEWS}/{{view}}", "replaceView", RestCatalog.replace_view),
    Operation("HEAD", f"{_VIEWS}/{{view}}", "viewExists", RestCatalog.check_view),
    Operation("DELETE", f"{_VIEWS}/{{view}}", "dropView", RestCatalog.drop_view),
    Operation("POST", "views/rename", "renameView", RestCatalog.rename_view),
)
"""All that is served with a prefix. Credentials, signatures, plans of scans and functions are left out."""
_TEMPLATES: Final = [
    (path.split("/"), [one for one in OPERATIONS if one.path == path])
    for path in dict.fromkeys(one.path for one in OPERATIONS)
]
"""Segments of each path, and the operations there."""
_CONFIG: Final = Operation("GET", "config", "getConfig", RestCatalog.config)
TOKEN: Final = Operation("POST", "oauth/tokens", "getToken", RestCatalog.refuse_token)
"""Needs no login: clients ask before they have one."""
_WITHOUT_PREFIX: Final = {("config",): (_CONFIG,), ("oauth", "tokens"): (TOKEN,)}


def routed(method: str, path: bytes, query: bytes, held: str | None) -> Request:
    """The request for a path behind the door's own, such as `/v1/namespaces`. Raises IcebergError: 404, 405, 400."""
    try:
        segments = [unquote_to_bytes(each).decode() for each in path.strip(b"/").split(b"/")]
        asked = dict(parse_qsl(query.decode("ascii"), keep_blank_values=True, errors="strict")) if query else {}
    except (UnicodeDecodeError, ValueError):
        raise bad_request("the path or the query is not UTF-8") from None
    if segments[0] != "v1" or len(segments) < 2:
        raise _no_route(method, path)
    behind = segments[1:]
    catalog = DEFAULT_CATALOG
    known = _WITHOUT_PREFIX.get(tuple(behind))
    if known is not None:
        return Request(_of_method(known, method), catalog, {}, asked, held)
    if behind[0] not in _HEADS or (len(behind) > 1 and behind[1] in _HEADS and behind[0] not in ("namespaces",)):
        catalog, behind = normalize(behind[0]), behind[1:]
    for template, operations in _TEMPLATES:
        found = _fit(template, behind)
        if found is not None:
            return Request(_of_method(operations, method), catalog, found, asked, held)
    raise _no_route(method, path)


def loading(request: Request) -> Request | None:
    """The request for the table or view that a request changes; None where it names none in its path."""
    path = request.operation.path
    found = next((one for one in OPERATIONS if one.method == "GET" and one.path == path), None)
    if found is None or not path.endswith(("{table}", "{view}")):
        return None
    return Request(found, request.catalog, request.path, {})


def _fit(template: Sequence[str], segments: Sequence[str]) -> dict[str, str] | None:
    if len(template) != len(segments):
        return None
    found: dict[str, str] = {}
    for part, segment in zip(template, segments, strict=True):
        if part.startswith("{"):
            found[part[1:-1]] = segment
        elif part != segment:
            return None
    return found


def _of_method(operations: Sequence[Operation], method: str) -> Operation:
    for one in operations:
        if one.method == method:
            return one
    allowed = ", ".join(one.method for one in operations)
    raise IcebergError("MethodNotAllowedException", f"{method} is not served here; {allowed} is")


def _no_route(method: str, path: bytes) -> IcebergError:
    shown = path[:200].decode("ascii", "replace")
    return IcebergError("NotFoundException", f"{method} {shown} is no route of this catalog; /v1/config lists them")


def _no_warehouse(name: str) -> IcebergError:
    return IcebergError("NoSuchWarehouseException", f"Warehouse does not exist: {name}; it is the name of a catalog")


def _listed(found: Json) -> Answer:
    if found.get("next-page-token") is None:
        found.pop("next-page-token", None)
    return Answer.of(found)


def _loaded(file: MetadataFile) -> Answer:
    """The answer with a table or view: the text of its file, as it is."""
    place = b'"metadata-location":%b,' % msgspec.json.encode(file.location) if file.location else b""
    parts = (b'{%b"metadata":' % place, file.text, b',"config":{}}')
    headers = {"etag": _tag(file.location, "all")} if file.location else {}
    if len(file.text) > _WHOLE_BYTES_MAX:
        return Answer(200, None, headers, parts)
    return Answer(200, b"".join(parts), headers)


def _tag(location: str, shown: str) -> str:
    return f'"{hashlib.blake2b(f"{shown} {location}".encode(), digest_size=12).hexdigest()}"'


def _with_refs_only(file: MetadataFile) -> MetadataFile:
    """The file with the snapshots that branches and tags name, and the current one."""
    named = {ref["snapshot-id"] for ref in (file.value.get("refs") or {}).values()}
    named.add(file.value.get("current-snapshot-id"))
    kept = [one for one in file.value.get("snapshots") or () if one["snapshot-id"] in named]
    return MetadataFile(file.location, msgspec.json.encode({**file.value, "snapshots": kept}), file.value)


def failure(error: IcebergError, status: int | None = None) -> Answer:
    """The answer to a refused request, with another status than that of its type where there is one."""
    status = status or error.status
    text = str(error)
    if len(text) > _TEXT_CHARACTERS_MAX:
        # It repeats what the client sent.
        text = f"{text[:_TEXT_CHARACTERS_MAX]}…"
    return Answer.of({"error": {"message": text, "type": error.kind, "code": status}}, status)
