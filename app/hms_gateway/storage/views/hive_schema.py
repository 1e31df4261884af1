"""The tables of Hive's schema as SELECTs over ours: names, columns and numbers as a Hive Metastore reads them.

The tables and columns are those of Hive 2.3 and 3.1 together (`package.jdo` in Hive's metastore). The storage
descriptor of a partition has the partition's number, that of a table the table's from TABLES_FROM on. Columns and
serdes of partitions have the number of the descriptor that partitions share.
"""

from collections.abc import Iterable, Mapping
from typing import Final

import msgspec

from hms_gateway.storage.dialects.view_sql import Path, ViewSql

# Hive 2.3 and 3.1 take a schema that is as new as their own, or newer.
SCHEMA_VERSION: Final = "3.1.0"
TABLES_FROM: Final = 2**40
# A list of skewed values has the number of its descriptor times this and its place; those that name the directories
# of lists come behind.
_LISTS_EACH: Final = 2**20
_LISTS_OF_DIRECTORIES: Final = 2**19
# A list in Thrift's JSON begins with the type and the count of its elements, a map with two types and the count.
_HEAD: Final = 2
_MAP: Final = 3
# Fields of structs in their documents (schema/hive_metastore.thrift).
_SERDE: Final = ("7", "rec")
_SKEWED: Final = ("11", "rec")
_FIRST: Final = ("1", "str")
_SECOND: Final = ("2", "str")
_THIRD: Final = ("3", "str")
_FIELD_SCHEMA: Final = {"name": _FIRST, "type": _SECOND, "remark": _THIRD}
_FOREIGN_KEY: Final = 1
# The first of three flags of a constraint, by its kind.
_FLAGS: Final = {0: 6, 1: 12, 2: 7, 3: 6, 4: 7, 5: 7}
# Views of grants: the number of `HiveObjectType`, the prefix of the view's number, the privilege, the object.
_GRANTS: Final[Mapping[str, tuple[int, str, str, Mapping[str, str]]]] = {
    "GLOBAL_PRIVS": (1, "USER", "USER_PRIV", {}),
    "DB_PRIVS": (2, "DB", "DB_PRIV", {"DB_ID": "database_id"}),
    "TBL_PRIVS": (3, "TBL", "TBL_PRIV", {"TBL_ID": "table_id"}),
    "PART_PRIVS": (4, "PART", "PART_PRIV", {"PART_ID": "partition_id"}),
    "TBL_COL_PRIVS": (5, "TBL_COLUMN", "TBL_COL_PRIV", {"TBL_ID": "table_id", "COLUMN_NAME": "column_name"}),
    "PART_COL_PRIVS": (5, "PART_COLUMN", "PART_COL_PRIV", {"PART_ID": "partition_id", "COLUMN_NAME": "column_name"}),
}


class _Arm(msgspec.Struct, frozen=True):
    """Documents of one kind: the expressions of number and document, and the FROM with its condition."""

    number: str
    document: str
    source: str
    condition: str = "1 = 1"


_TABLES: Final = _Arm(
    f"t.table_id + {TABLES_FROM}", "('{' || t.descriptor || '}')", '"tables" t', "t.descriptor IS NOT NULL"
)
_SHARED: Final = _Arm("d.descriptor_id", "('{' || d.rest || '}')", "descriptors d")
_PARTITIONS: Final = _Arm(
    "p.partition_id", _SHARED.document, "partitions p JOIN descriptors d ON d.descriptor_id = p.descriptor_id"
)
_DESCRIPTORS: Final = (_TABLES, _PARTITIONS)
_SERDES: Final = (_TABLES, _SHARED)
_COLUMNS: Final = tuple(
    msgspec.structs.replace(arm, document=f'{alias}."columns"') for arm, alias in zip(_SERDES, "td", strict=True)
)
# Pairs of a list of values and its directory, in JSON of ours.
_DIRECTORIES: Final = tuple(
    msgspec.structs.replace(arm, document=f"{alias}.skew_locations")
    for arm, alias in zip(_DESCRIPTORS, "td", strict=True)
)


def hive_views(sql: ViewSql) -> dict[str, str]:
    """The SELECT of each view, by the name of Hive's table."""
    views = _Views(sql)
    return {**views.of_objects(), **views.of_descriptors(), **views.of_rights(), **views.of_statistics()}


class _Views:
    def __init__(self, sql: ViewSql) -> None:
        self._sql = sql
        self._hive = sql.collated("'hive'")

    # Databases, tables, partitions, functions and constraints.

    def of_objects(self) -> dict[str, str]:
        text, number = self._sql.text, self._number_at
        return {
            "VERSION": _select(
                {
                    "VER_ID": "1",
                    "SCHEMA_VERSION": self._sql.collated(f"'{SCHEMA_VERSION}'"),
                    "VERSION_COMMENT": self._sql.collated("'views of hms-gateway'"),
                },
            ),
            "CTLGS": _union(
                self._catalog("1", self._hive, '"databases"', "name = 'default'"),
                self._catalog(self._sql.hash("name"), "name", "catalogs"),
            ),
            "DBS": _select(
                {
                    "DB_ID": "database_id",
                    "DESC": "description",
                    "DB_LOCATION_URI": "location",
                    "NAME": _database_name("name"),
                    "OWNER_NAME": "owner_name",
                    "OWNER_TYPE": self._principal_type("owner_type"),
                    "CTLG_NAME": self._catalog_name("name"),
                    "CREATE_TIME": "create_time",
                },
                '"databases"',
            ),
            "DATABASE_PARAMS": self._members("DB_ID", [_Arm("database_id", "parameters", '"databases"')]),
            "TBLS": _select(
                {
                    "TBL_ID": "table_id",
                    "CREATE_TIME": "create_time",
                    "DB_ID": "database_id",
                    "LAST_ACCESS_TIME": "last_access_time",
                    "OWNER": "owner",
                    "OWNER_TYPE": self._principal_type(f"COALESCE({number('extra', '18', 'i32')}, 1)"),
                    "RETENTION": "retention",
                    "SD_ID": f"CASE WHEN descriptor IS NOT NULL THEN table_id + {TABLES_FROM} END",
                    "TBL_NAME": "name",
                    "TBL_TYPE": "table_type",
                    "VIEW_EXPANDED_TEXT": "view_expanded_text",
                    "VIEW_ORIGINAL_TEXT": "view_original_text",
                    "IS_REWRITE_ENABLED": f"COALESCE({text('extra', '15', 'tf')} = '1', false)",
                },
                '"tables"',
            ),
            "TABLE_PARAMS": self._members("TBL_ID", [_Arm("table_id", "parameters", '"tables"')]),
            "PARTITION_KEYS": self._elements(
                {"TBL_ID": None, "PKEY_COMMENT": "e.remark", "PKEY_NAME": "e.name", "PKEY_TYPE": "e.type"},
                [_Arm("table_id", "partition_keys", '"tables"')],
                (),
                _FIELD_SCHEMA,
            ),
            "PARTITIONS": _select(
                {
                    "PART_ID": "partition_id",
                    "CREATE_TIME": "create_time",
                    "LAST_ACCESS_TIME": "last_access_time",
                    "PART_NAME": "part_name",
                    "SD_ID": "CASE WHEN descriptor_id IS NOT NULL THEN partition_id END",
                    "TBL_ID": "table_id",
                },
                "partitions",
                # MariaDB keeps the partitions of a dropped table for a while.
                "table_id NOT IN (SELECT table_id FROM dropped_tables)",
            ),
            "PARTITION_PARAMS": self._members("PART_ID", [_Arm("partition_id", "parameters", "partitions")]),
            "PARTITION_KEY_VALS": self._elements(
                {"PART_ID": None, "PART_KEY_VAL": "e.value"},
                [_Arm("partition_id", "part_values", "partitions")],
                (),
                {"value": ()},
            ),
            "FUNCS": _select(
                {
                    "FUNC_ID": "function_id",
                    "CLASS_NAME": text("extra", *_THIRD),
                    "CREATE_TIME": number("extra", "6", "i32"),
                    "DB_ID": "database_id",
                    "FUNC_NAME": "name",
                    "FUNC_TYPE": number("extra", "7", "i32"),
                    "OWNER_NAME": text("extra", "4", "str"),
                    "OWNER_TYPE": self._principal_type(number("extra", "5", "i32")),
                },
                "functions",
            ),
            "FUNC_RU": self._elements(
                {"FUNC_ID": None, "RESOURCE_TYPE": self._number("e.type"), "RESOURCE_URI": "e.uri"},
                [_Arm("function_id", "extra", "functions")],
                ("8", "lst"),
                {"type": ("1", "i32"), "uri": _SECOND},
            ),
            "KEY_CONSTRAINTS": self._constraints(),
        }

    def _catalog(self, number: str, name: str, source: str, condition: str = "") -> str:
        columns = {
            "CTLG_ID": number,
            "NAME": name,
            "DESC": "description",
            "LOCATION_URI": "location",
            "CREATE_TIME": "create_time",
        }
        return _select(columns, source, condition)

    def _catalog_name(self, key: str) -> str:
        """The catalog of a database, whose key is its name, or @catalog#name outside of the default one."""
        other = f"substr({key}, 2, position('#' IN {key}) - 2)"
        return self._sql.collated(f"(CASE WHEN substr({key}, 1, 1) = '@' THEN {other} ELSE {self._hive} END)")

    def _constraints(self) -> str:
        """A row for each column of a constraint, which is the parent's; a foreign key has a child's as well."""
        is_foreign = f"k.kind = {_FOREIGN_KEY}"
        column = f"CASE WHEN {is_foreign} THEN k.parent_column_name ELSE k.column_name END"
        text = self._sql.text
        flags = " + ".join(
            f"CASE {self._constraint_flag(place)} WHEN '1' THEN {weight} ELSE 0 END"
            for place, weight in enumerate("421")
        )
        return _select(
            {
                **self._column_of("CHILD", "child", "k.column_name"),
                **self._column_of("PARENT", "parent", column),
                "POSITION": "k.position",
                "CONSTRAINT_NAME": "k.name",
                "CONSTRAINT_TYPE": "k.kind",
                "UPDATE_RULE": self._number(f"CASE WHEN {is_foreign} THEN {text('k.extra', '8', 'i32')} END"),
                "DELETE_RULE": self._number(f"CASE WHEN {is_foreign} THEN {text('k.extra', '9', 'i32')} END"),
                "ENABLE_VALIDATE_RELY": flags,
                "DEFAULT_VALUE": f"CASE WHEN k.kind > 3 THEN {text('k.extra', '5', 'str')} END",
            },
            f'constraints k LEFT JOIN "tables" child ON child.table_id = k.table_id AND {is_foreign}'
            f' LEFT JOIN "tables" parent ON parent.table_id = CASE WHEN {is_foreign} THEN k.parent_table_id ELSE'
            " k.table_id END",
        )

    def _constraint_flag(self, place: int) -> str:
        """The field `enable_cstr`, `validate_cstr` or `rely_cstr`, whose number depends on the kind."""
        text = self._sql.text
        fields = (f"WHEN {kind} THEN {text('k.extra', str(first + place), 'tf')}" for kind, first in _FLAGS.items())
        return f"CASE k.kind {' '.join(fields)} END"

    def _column_of(self, side: str, alias: str, column: str) -> dict[str, str]:
        """The table and the column, which is one of the table's or a key of its partitions."""
        places = [self._place(f"{alias}.{listed}", column) for listed in ('"columns"', "partition_keys")]
        return {
            f"{side}_CD_ID": f"CASE WHEN {places[0]} IS NOT NULL THEN {alias}.table_id + {TABLES_FROM} END",
            f"{side}_INTEGER_IDX": f"COALESCE({', '.join(places)})",
            f"{side}_TBL_ID": f"{alias}.table_id",
        }

    def _place(self, document: str, column: str) -> str:
        listed = self._sql.elements("e", document, (), {"name": _FIRST}, {})
        return f"(SELECT MIN(e.position) - {_HEAD + 1} FROM {listed} WHERE e.name = {column})"

    # Storage descriptors, with their columns, serdes and lists.

    def of_descriptors(self) -> dict[str, str]:
        return {
            "SDS": self._storage(),
            "SD_PARAMS": self._members("SD_ID", _DESCRIPTORS, "10", "map"),
            "CDS": _union(*(_select({"CD_ID": arm.number}, arm.source, arm.condition) for arm in _COLUMNS)),
            "COLUMNS_V2": self._elements(
                {"CD_ID": None, "COMMENT": "e.remark", "COLUMN_NAME": "e.name", "TYPE_NAME": "e.type"},
                _COLUMNS,
                (),
                _FIELD_SCHEMA,
            ),
            "SERDES": _union(*map(self._serde, _SERDES)),
            "SERDE_PARAMS": self._members("SERDE_ID", _SERDES, *_SERDE, "3", "map"),
            "BUCKETING_COLS": self._elements(
                {"SD_ID": None, "BUCKET_COL_NAME": "e.name"}, _DESCRIPTORS, ("8", "lst"), {"name": ()}
            ),
            "SORT_COLS": self._elements(
                {"SD_ID": None, "COLUMN_NAME": "e.name", "ORDER": self._number("e.direction")},
                _DESCRIPTORS,
                ("9", "lst"),
                {"name": _FIRST, "direction": ("2", "i32")},
            ),
            "SKEWED_COL_NAMES": self._elements(
                {"SD_ID": None, "SKEWED_COL_NAME": "e.name"}, _DESCRIPTORS, (*_SKEWED, "1", "lst"), {"name": ()}
            ),
            **self._skewed_values(),
        }

    def _storage(self) -> str:
        """Storage descriptors; those of partitions take what they share from one reading of each document."""
        shared = {**self._descriptor(_SHARED.document), "base": "d.base_location", "id": _SHARED.number}
        formats = self._sql.once(_select(shared, _SHARED.source))
        below_base = """d."base" || COALESCE(p.location, '/' || p.part_name)"""
        return _union(
            _select(
                {
                    "SD_ID": _TABLES.number,
                    **self._descriptor(_TABLES.document),
                    "LOCATION": "t.location",
                    "SERDE_ID": _TABLES.number,
                    "CD_ID": _TABLES.number,
                },
                _TABLES.source,
                _TABLES.condition,
            ),
            _select(
                {
                    "SD_ID": _PARTITIONS.number,
                    **{name: f'd."{name}"' for name in shared if name.isupper()},
                    "LOCATION": f"COALESCE({below_base}, p.location)",
                    "SERDE_ID": 'd."id"',
                    "CD_ID": 'd."id"',
                },
                f'partitions p JOIN {formats} d ON d."id" = p.descriptor_id',
            ),
        )

    def _descriptor(self, document: str) -> dict[str, str]:
        text, flag = self._sql.text, self._sql.flag
        return {
            "INPUT_FORMAT": text(document, *_THIRD),
            "IS_COMPRESSED": flag(f"{text(document, '5', 'tf')} = '1'"),
            "NUM_BUCKETS": self._number_at(document, "6", "i32"),
            "OUTPUT_FORMAT": text(document, "4", "str"),
            "IS_STOREDASSUBDIRECTORIES": flag(f"{text(document, '12', 'tf')} = '1'"),
        }

    def _serde(self, arm: _Arm) -> str:
        texts = {"NAME": 1, "SLIB": 2, "DESCRIPTION": 4, "SERIALIZER_CLASS": 5, "DESERIALIZER_CLASS": 6}
        columns = {name: self._sql.text(arm.document, *_SERDE, str(field), "str") for name, field in texts.items()}
        kind = self._number_at(arm.document, *_SERDE, "7", "i32")
        return _select({"SERDE_ID": arm.number, **columns, "SERDE_TYPE": kind}, arm.source, arm.condition)

    def _skewed_values(self) -> dict[str, str]:
        """Lists of skewed values, and directories of such lists."""
        lists, places, directories, values = [], [], [], []
        for arm in _DESCRIPTORS:
            listed = self._sql.elements("e", arm.document, (*_SKEWED, "2", "lst"), {}, {"item": ()})
            source, place = f"{arm.source}, {listed}", f"e.position - {_HEAD + 1}"
            condition = f"{arm.condition} AND e.position > {_HEAD}"
            number = f"({arm.number}) * {_LISTS_EACH} + {place}"
            lists.append(_select({"STRING_LIST_ID": number}, source, condition))
            columns = {"SD_ID_OID": arm.number, "STRING_LIST_ID_EID": number, "INTEGER_IDX": place}
            places.append(_select(columns, source, condition))
            values.append(self._values(number, source, condition, _HEAD))
        for arm in _DIRECTORIES:
            listed = self._sql.elements("e", arm.document, (), {"directory": (1,)}, {"item": (0,)})
            source, number = (
                f"{arm.source}, {listed}",
                f"({arm.number}) * {_LISTS_EACH} + {_LISTS_OF_DIRECTORIES} + e.position",
            )
            lists.append(_select({"STRING_LIST_ID": number}, source, arm.condition))
            columns = {"SD_ID": arm.number, "STRING_LIST_ID_KID": number, "LOCATION": "e.directory"}
            directories.append(_select(columns, source, arm.condition))
            values.append(self._values(number, source, arm.condition, 0))
        return {
            "SKEWED_STRING_LIST": _union(*lists),
            "SKEWED_STRING_LIST_VALUES": _union(*values),
            "SKEWED_VALUES": _union(*places),
            "SKEWED_COL_VALUE_LOC_MAP": _union(*directories),
        }

    def _values(self, number: str, source: str, condition: str, head: int) -> str:
        columns = {"STRING_LIST_ID": number, "STRING_LIST_VALUE": "v.value", "INTEGER_IDX": f"v.position - {head + 1}"}
        listed = self._sql.elements("v", "e.item", (), {"value": ()}, {})
        return _select(columns, f"{source}, {listed}", f"{condition} AND v.position > {head}")

    # Roles and grants.

    def of_rights(self) -> dict[str, str]:
        return {
            "ROLES": _select(
                {
                    "ROLE_ID": "role_id",
                    "CREATE_TIME": "create_time",
                    "OWNER_NAME": "owner_name",
                    "ROLE_NAME": "name",
                },
                "roles",
            ),
            "ROLE_MAP": _select(
                {
                    "ROLE_GRANT_ID": "member_id",
                    "ADD_TIME": "grant_time",
                    "GRANT_OPTION": _flag_number("grant_option"),
                    "GRANTOR": "grantor_name",
                    "GRANTOR_TYPE": self._principal_type("grantor_type"),
                    "PRINCIPAL_NAME": "principal_name",
                    "PRINCIPAL_TYPE": self._principal_type("principal_type"),
                    "ROLE_ID": "role_id",
                },
                "role_members",
            ),
            **{name: self._grants(*row) for name, row in _GRANTS.items()},
        }

    def _grants(self, kind: int, prefix: str, privilege: str, on: Mapping[str, str]) -> str:
        is_of_partition = f"partition_id IS {'NOT ' * ('PART_ID' in on)}NULL"
        return _select(
            {
                f"{prefix}_GRANT_ID": "privilege_id",
                "CREATE_TIME": "create_time",
                "GRANT_OPTION": _flag_number("grant_option"),
                "GRANTOR": "grantor_name",
                "GRANTOR_TYPE": self._principal_type("grantor_type"),
                "PRINCIPAL_NAME": "principal_name",
                "PRINCIPAL_TYPE": self._principal_type("principal_type"),
                privilege: "privilege",
                "AUTHORIZER": "authorizer",
                **on,
            },
            "privileges",
            f"object_type = {kind} AND {is_of_partition}",
        )

    # Column statistics.

    def of_statistics(self) -> dict[str, str]:
        named = {
            "CAT_NAME": self._catalog_name("b.name"),
            "DB_NAME": _database_name("b.name"),
            "TABLE_NAME": "t.name",
        }
        source = ' s JOIN "tables" t ON t.table_id = s.table_id JOIN "databases" b ON b.database_id = t.database_id'
        partition = " JOIN partitions p ON p.partition_id = s.partition_id"
        return {
            "TAB_COL_STATS": self._statistics(
                "s.table_id", {**named, "TBL_ID": "t.table_id"}, f"table_statistics{source}"
            ),
            "PART_COL_STATS": self._statistics(
                "s.partition_id",
                {**named, "PARTITION_NAME": "p.part_name", "PART_ID": "p.partition_id"},
                f"partition_statistics{source}{partition}",
            ),
        }

    def _statistics(self, number: str, on: Mapping[str, str], source: str) -> str:
        """Those of Hive itself; bounds of decimals, which are base64 of their bytes, and sketches are NULL.

        A document is {"kind":{"rec":fields}}: the kind is a digit, and the fields begin at the 13th character.
        """
        kind, fields = "substr(s.data, 3, 1)", "substr(s.data, 13, char_length(s.data) - 14)"

        def of(kinds: str, value: str) -> str:
            return f"CASE WHEN {kind} IN ({', '.join(map(repr, kinds))}) THEN {value} END"

        def long(*path: str) -> str:
            return self._number_at(fields, *path, "i64")

        def bound(field: str) -> str:
            return f"CASE {kind} WHEN '2' THEN {long(field)} ELSE {of('78', long(field, 'rec', '1'))} END"

        def real(field: str) -> str:
            return self._sql.real(self._sql.text(fields, field, "dbl"))

        return _select(
            {
                "CS_ID": self._sql.hash(f"concat({number}, '/', s.column_name)"),
                **on,
                "COLUMN_NAME": "s.column_name",
                "COLUMN_TYPE": "s.column_type",
                "LONG_LOW_VALUE": bound("1"),
                "LONG_HIGH_VALUE": bound("2"),
                "DOUBLE_LOW_VALUE": of("3", real("1")),
                "DOUBLE_HIGH_VALUE": of("3", real("2")),
                "BIG_DECIMAL_LOW_VALUE": "NULL",
                "BIG_DECIMAL_HIGH_VALUE": "NULL",
                "NUM_NULLS": long("3"),
                "NUM_DISTINCTS": long("4"),
                "BIT_VECTOR": "NULL",
                "AVG_COL_LEN": of("45", real("2")),
                "MAX_COL_LEN": of("45", long("1")),
                "NUM_TRUES": of("1", long("1")),
                "NUM_FALSES": of("1", long("2")),
                "LAST_ANALYZED": "s.last_analyzed",
            },
            source,
            "s.engine = 'hive'",
        )

    # Parts of SELECTs.

    def _principal_type(self, number: str) -> str:
        """The name of a `PrincipalType`."""
        return self._sql.collated(f"(CASE {number} WHEN 1 THEN 'USER' WHEN 2 THEN 'ROLE' WHEN 3 THEN 'GROUP' END)")

    def _number(self, expression: str) -> str:
        return f"CAST({expression} AS {self._sql.number})"

    def _number_at(self, document: str, *path: str | int) -> str:
        return self._number(self._sql.text(document, *path))

    def _members(self, number: str, arms: Iterable[_Arm], *path: str) -> str:
        """The entries of maps of texts."""
        return _union(
            *(
                _select(
                    {number: arm.number, "PARAM_KEY": "e.name", "PARAM_VALUE": "e.value"},
                    f"{arm.source}, {self._sql.members(arm.document, *path, _MAP)}",
                    arm.condition,
                )
                for arm in arms
            )
        )

    def _elements(
        self, columns: Mapping[str, str | None], arms: Iterable[_Arm], path: Path, texts: Mapping[str, Path]
    ) -> str:
        """The elements of lists, with their places; None among the columns is the number of the arm."""
        return _union(
            *(
                _select(
                    {
                        **{name: each or arm.number for name, each in columns.items()},
                        "INTEGER_IDX": f"e.position - {_HEAD + 1}",
                    },
                    f"{arm.source}, {self._sql.elements('e', arm.document, path, texts, {})}",
                    f"{arm.condition} AND e.position > {_HEAD}",
                )
                for arm in arms
            )
        )


def _database_name(key: str) -> str:
    return f"substr({key}, position('#' IN {key}) + 1)"


def _flag_number(flag: str) -> str:
    return f"CASE WHEN {flag} THEN 1 ELSE 0 END"


def _select(columns: Mapping[str, str], source: str = "", condition: str = "") -> str:
    listed = ", ".join(f'{expression} AS "{name}"' for name, expression in columns.items())
    return f"SELECT {listed}{f' FROM {source}' * bool(source)}{f' WHERE {condition}' * bool(condition)}"


def _union(*selects: str) -> str:
    return " UNION ALL ".join(selects)
