"""SQL that opens JSON documents in views, where databases differ in it.

Parts of statements are texts with identifiers in double quotes. A path is the names and indexes that lead into a
document; documents are what `storage/sql/fragments.py` writes.
"""

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import ClassVar, Final

from hms_gateway.storage.schema.column_types import MARIADB_COLLATION

Path = Sequence[str | int]

# A member of an object whose values are texts. MariaDB's JSON_KEYS leaves out the empty name.
_MARIADB_MEMBER: Final = r'("(?:[^"\\\\]|\\\\.)*+"): ?("(?:[^"\\\\]|\\\\.)*+")'
_MARIADB_TEXT: Final = f"LONGTEXT CHARACTER SET utf8mb4 COLLATE {MARIADB_COLLATION}"


class ViewSql(ABC):
    """One kind of database.

    before, after  statements around those about views
    home           the schema of the gateway's tables
    schemas        a query for the names and comments of all schemas
    grants         a query for the statements that grant again what goes with the views :names of schema :name: rights
                   to read a view or columns of it; None where they stay
    number         the type of CAST for integers
    """

    before: ClassVar[Sequence[str]] = ()
    after: ClassVar[Sequence[str]] = ()
    home: ClassVar[str]
    schemas: ClassVar[str]
    grants: ClassVar[str | None] = None
    number: ClassVar[str]

    @abstractmethod
    def create_schema(self, name: str, comment: str) -> Sequence[str]:
        """Statements that make a schema with a comment, whose quotes are doubled."""

    def collated(self, text: str) -> str:
        """A text that is made in the view, for comparisons with any other."""
        return text

    @abstractmethod
    def text(self, document: str, *path: str | int) -> str:
        """The text at a path; NULL where there is nothing."""

    @abstractmethod
    def flag(self, condition: str) -> str:
        """A condition in the type that Hive's schema has for it, in a SELECT of a union; false for NULL."""

    def once(self, select: str) -> str:
        """A SELECT of few rows as a part of FROM, whose expressions are computed once for each of its rows."""
        return f"({select})"

    @abstractmethod
    def real(self, text: str) -> str:
        """The floating-point number of a text; NULL for those that the database does not have."""

    @abstractmethod
    def hash(self, text: str) -> str:
        """A number of 60 bits for a text."""

    @abstractmethod
    def members(self, document: str, *path: str | int) -> str:
        """A part of FROM, `e` with the texts `name` and `value`: the members of the object at a path."""

    @abstractmethod
    def elements(
        self, alias: str, document: str, path: Path, texts: Mapping[str, Path], documents: Mapping[str, Path]
    ) -> str:
        """A part of FROM: the elements of the list at a path, with their `position` (from 1).

        Further columns are the `texts` and `documents` at paths of the element.
        """


class PostgresViewSql(ViewSql):
    schemas = "SELECT nspname, obj_description(oid, 'pg_namespace') FROM pg_namespace"
    number = "BIGINT"
    home = "current_schema()"
    grants = (
        "SELECT format('GRANT SELECT%s ON %I.%I TO %s%s', '(' || quote_ident(part.name) || ')', nspname, relname,"
        " CASE given.grantee WHEN 0 THEN 'PUBLIC' ELSE quote_ident(pg_get_userbyid(given.grantee)) END,"
        " CASE WHEN given.is_grantable THEN ' WITH GRANT OPTION' END)"
        " FROM pg_class AS view JOIN pg_namespace AS home ON home.oid = view.relnamespace,"
        " LATERAL (SELECT NULL, view.relacl"
        " UNION ALL SELECT attname, attacl FROM pg_attribute WHERE attrelid = view.oid) AS part(name, acl),"
        " LATERAL aclexplode(part.acl) AS given"
        " WHERE nspname = :name AND relname = ANY(:names)"
        " AND given.privilege_type = 'SELECT' AND given.grantee <> view.relowner"
    )

    def create_schema(self, name: str, comment: str) -> Sequence[str]:
        return f'CREATE SCHEMA "{name}"', f"COMMENT ON SCHEMA \"{name}\" IS '{comment}'"

    def text(self, document: str, *path: str | int) -> str:
        return f"({_json(document)} #>> '{_postgres_path(path)}')"

    def flag(self, condition: str) -> str:
        return f"COALESCE({condition}, false)"

    def real(self, text: str) -> str:
        return f"CAST({text} AS DOUBLE PRECISION)"

    def hash(self, text: str) -> str:
        return f"('x' || substr(md5({text}), 1, 15))::bit(60)::bigint"

    def members(self, document: str, *path: str | int) -> str:
        return f"json_each_text({_json(document)} #> '{_postgres_path(path)}') AS e(name, value)"

    def elements(
        self, alias: str, document: str, path: Path, texts: Mapping[str, Path], documents: Mapping[str, Path]
    ) -> str:
        columns = [f"item #>> '{_postgres_path(each)}' AS {name}" for name, each in {**texts, **documents}.items()]
        listed = f"json_array_elements({_json(document)} #> '{_postgres_path(path)}') WITH ORDINALITY"
        return f"LATERAL (SELECT {', '.join(['position', *columns])} FROM {listed} AS i(item, position)) AS {alias}"


def _json(document: str) -> str:
    """A document with U+FFFD for U+0000, which texts of PostgreSQL cannot have."""
    replaced = rf"regexp_replace({document}, '(?<!\\)((\\\\)*)\\u0000', '\1\\ufffd', 'g')"
    return rf"(CASE WHEN strpos({document}, '\u0000') > 0 THEN {replaced} ELSE {document} END)::json"


def _postgres_path(path: Path) -> str:
    return f"{{{','.join(map(str, path))}}}"


class MariadbViewSql(ViewSql):
    before = ("SET @mode_before = @@sql_mode, SESSION sql_mode = 'ANSI_QUOTES,PIPES_AS_CONCAT'",)
    after = ("SET SESSION sql_mode = @mode_before",)
    schemas = "SELECT schema_name, schema_comment FROM information_schema.schemata"
    number = "SIGNED"
    home = "DATABASE()"

    def create_schema(self, name: str, comment: str) -> Sequence[str]:
        return (f"CREATE DATABASE \"{name}\" COMMENT '{comment}'",)

    def collated(self, text: str) -> str:
        return f"({text} COLLATE {MARIADB_COLLATION})"

    def text(self, document: str, *path: str | int) -> str:
        return self.collated(f"JSON_UNQUOTE(JSON_EXTRACT({document}, '{_mariadb_path(path)}'))")

    def flag(self, condition: str) -> str:
        # Hive needs the type BIT(1), which only a table of JSON has; only a union keeps its value.
        byte = rf"CASE WHEN {condition} THEN '\"\\u0001\"' ELSE '\"\\u0000\"' END"
        return f"(SELECT f.value FROM JSON_TABLE({byte}, '$' COLUMNS (value BIT(1) PATH '$')) AS f)"

    def once(self, select: str) -> str:
        # Not merged into the statement around it.
        return f"({select.replace('SELECT', 'SELECT DISTINCT', 1)})"

    def real(self, text: str) -> str:
        return f"CASE WHEN {text} REGEXP '[0-9]' THEN CAST({text} AS DOUBLE) END"

    def hash(self, text: str) -> str:
        return f"CAST(CONV(LEFT(MD5({text}), 15), 16, 10) AS SIGNED)"

    def members(self, document: str, *path: str | int) -> str:
        found = f"JSON_EXTRACT({document}, '{_mariadb_path(path)}')"
        pairs = rf"REGEXP_REPLACE({found}, '{_MARIADB_MEMBER}', '[\\1,\\2]')"
        listed = f"'[' || TRIM(LEADING '{{' FROM TRIM(TRAILING '}}' FROM {pairs})) || ']'"
        columns = f"name {_MARIADB_TEXT} PATH '$[0]', value {_MARIADB_TEXT} PATH '$[1]'"
        return f"JSON_TABLE({listed}, '$[*]' COLUMNS ({columns})) AS e"

    def elements(
        self, alias: str, document: str, path: Path, texts: Mapping[str, Path], documents: Mapping[str, Path]
    ) -> str:
        kinds = ((_MARIADB_TEXT, texts), ("JSON", documents))
        columns = [f"{name} {kind} PATH '{_mariadb_path(at)}'" for kind, some in kinds for name, at in some.items()]
        listed = f"{document}, '{_mariadb_path(path)}[*]'"
        return f"JSON_TABLE({listed} COLUMNS ({', '.join(['position FOR ORDINALITY', *columns])})) AS {alias}"


def _mariadb_path(path: Path) -> str:
    return "$" + "".join(f"[{part}]" if isinstance(part, int) else f'."{part}"' for part in path)
