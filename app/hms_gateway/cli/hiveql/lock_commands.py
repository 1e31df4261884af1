"""Reads HiveQL statements, and the short forms of Hive's page about locking, as commands that need locks.

Only what decides about locks is understood; the rest of a statement may be anything.
"""

import re
from collections.abc import Callable, Sequence
from typing import Final

from hms_gateway.client.concurrency import Command, Equal, LockPlace, Operation
from hms_gateway.metastore.vocabulary.hiveql_tokens import Token, TokenReader
from hms_gateway.rpc.structs.catalogs import beside, marked

# Makes the name of a partition out of its keys and values.
MakeName = Callable[[Sequence[str], Sequence[str]], str]

# What may follow a table in a FROM clause and is not an alias.
_NO_ALIASES: Final = re.compile(
    "WHERE|GROUP|ORDER|SORT|CLUSTER|DISTRIBUTE|HAVING|LIMIT|UNION|LATERAL|WINDOW|ON|JOIN|LEFT|RIGHT|INNER|FULL|CROSS"
    "|INSERT|SELECT|TABLESAMPLE|PARTITION|,|"
).fullmatch


def parse_command(text: str, make_name: MakeName, default_db: str = "default") -> Command:
    """The command that a statement is. Raises CommandError.

    Understood are queries, INSERT, UPDATE, DELETE, MERGE, LOAD, ALTER TABLE, DROP, TRUNCATE, CREATE, ANALYZE, MSCK,
    EXPORT and LOCK, and the short forms `select .. t partition p` and `insert into t(partition p.q) select ..`.
    """
    return _Parser(text, make_name, default_db).command()


def parse_partition(text: str, make_name: MakeName) -> str:
    """The name of a partition that is described as in HiveQL, `ds='1', hr=2`. Raises CommandError."""
    return _Parser(f"({text})", make_name, "default").described_partition()


class _Parser(TokenReader):
    def __init__(self, text: str, make_name: MakeName, default_db: str) -> None:
        super().__init__(text)
        self._make_name = make_name
        self._default_db = default_db

    def command(self) -> Command:
        for words, read in _STATEMENTS:
            if self._takes(*words):
                return read(self)
        if self._peek() in ("WITH", "FROM", "INSERT"):
            return self._query()
        raise self._expected("a statement whose locks are known")

    def _changed(self, operation: Operation) -> Command:
        """UPDATE and DELETE."""
        return Command(operation, (self._place(),), self._reads(), self._equals(0))

    def _repair(self) -> Command:
        self._takes("REPAIR")
        self._needs("TABLE")
        return Command(Operation.REPAIR, (self._table(),))

    def _truncate(self) -> Command:
        self._takes("TABLE")
        return Command(Operation.TRUNCATE, (self._place(),))

    def _drop_table(self) -> Command:
        self._takes("IF", "EXISTS")
        return Command(Operation.DROP_TABLE, (self._place(),))

    def _drop_database(self) -> Command:
        self._takes("IF", "EXISTS")
        return Command(Operation.DROP_DATABASE, (LockPlace(self._name().lower()),))

    def described_partition(self) -> str:
        self._needs("(")
        keys, values = self._known_values()
        if not keys or self._at < len(self._tokens):
            raise self._expected("KEY=VALUE for each key")
        return self._make_name(keys, values)

    def _query(self) -> Command:
        """A query, which may insert into several places: `FROM u INSERT INTO t SELECT …`."""
        begin = self._at
        places = []
        for at in self._outside_brackets("INSERT"):
            self._at = at + 1
            places += self._inserted()
        self._at = begin
        operation = Operation.INSERT if places else Operation.SELECT
        return Command(operation, tuple(places), self._reads(), self._equals(1) if len(places) < 2 else ())

    def _merge(self) -> Command:
        place = self._table()
        if not self._finds("USING"):
            raise self._expected("USING")
        return Command(Operation.MERGE, (place,), (*self._sources(), *self._reads()))

    def _outside_brackets(self, word: str) -> list[int]:
        """The position of `word` from here on."""
        depth, found = 0, []
        for place in range(self._at, len(self._tokens)):
            upper = self._tokens[place].upper
            depth += (upper == "(") - (upper == ")")
            if upper == word and depth <= 0:
                found.append(place)
        return found

    def _inserted(self) -> list[LockPlace]:
        """The table after INSERT; nothing for a directory."""
        if not (self._takes("INTO") or self._takes("OVERWRITE")):
            raise self._expected("INTO or OVERWRITE")
        if self._takes("LOCAL", "DIRECTORY") or self._takes("DIRECTORY"):
            return []
        self._takes("TABLE")
        return [self._place()]

    def _load(self) -> Command:
        if not self._finds("INTO"):
            raise self._expected("INTO TABLE")
        self._needs("TABLE")
        return Command(Operation.INSERT, (self._place(),))

    def _create(self) -> Command:
        if self._takes("DATABASE") or self._takes("SCHEMA"):
            self._takes("IF", "NOT", "EXISTS")
            return Command(Operation.CREATE_DATABASE, (LockPlace(self._name().lower()),))
        while self._takes("EXTERNAL") or self._takes("TEMPORARY") or self._takes("TRANSACTIONAL"):
            pass
        if not (self._takes("TABLE") or self._takes("VIEW")):
            raise self._expected("TABLE, VIEW or DATABASE")
        self._takes("IF", "NOT", "EXISTS")
        place = self._table()
        if self._takes("LIKE"):
            return Command(Operation.CREATE_TABLE, (place,), (self._table(),))
        return Command(Operation.CREATE_TABLE, (place,), self._reads() if self._finds("SELECT") else ())

    def _lock(self) -> Command:
        if self._takes("DATABASE") or self._takes("SCHEMA"):
            place = LockPlace(self._name().lower())
        elif self._takes("TABLE"):
            place = self._place()
        else:
            raise self._expected("TABLE or DATABASE")
        if self._takes("SHARED"):
            return Command(Operation.LOCK_SHARED, (place,))
        if self._takes("EXCLUSIVE"):
            return Command(Operation.LOCK_EXCLUSIVE, (place,))
        raise self._expected("SHARED or EXCLUSIVE")

    def _alter_table(self) -> Command:
        place = self._place()
        for words, operation in _ALTERATIONS:
            if self._takes(*words):
                return self._altered(operation, place)
        raise self._expected("an alteration whose locks are known")

    def _altered(self, operation: Operation, place: LockPlace) -> Command:
        if operation is Operation.RENAME_TABLE and place.partition:
            self._takes("TO")
            return Command(Operation.RENAME_PARTITION, (place, self._partition_of(place.table)))
        if operation not in _OF_PARTITIONS:
            return Command(operation, (place,))
        self._takes("IF", "NOT", "EXISTS")
        self._takes("IF", "EXISTS")
        places = []
        while self._finds("PARTITION", after=False):
            places.append(self._partition_of(place.table))
        return Command(operation, tuple(places) or (place,))

    def _place(self) -> LockPlace:
        """A table with or without a partition."""
        table = self._table()
        if self._takes("(", "PARTITION"):
            self._at -= 1
            place = self._partition_of(table)
            self._needs(")")
            return place
        return self._partition_of(table) if self._peek() == "PARTITION" and self._peek(1) != "COLUMN" else table

    def _table(self) -> LockPlace:
        first = self._name().lower()
        if not self._takes("."):
            return LockPlace(self._default_db.lower(), first)
        second = self._name().lower()
        if not self._takes("."):
            return LockPlace(beside(self._default_db, first), second)
        return LockPlace(marked(first, second), self._name().lower())

    def _partition_of(self, table: LockPlace) -> LockPlace:
        self._needs("PARTITION")
        if not self._takes("("):
            parts = [self._name()]
            while self._takes("."):
                parts.append(self._name())
            return LockPlace(table.db_name, table.table_name, tuple(parts))
        keys, values = self._known_values()
        name = self._make_name(keys, values) if keys else ""
        return LockPlace(table.db_name, table.table_name, tuple(name.split("/")) if name else ())

    def _known_values(self) -> tuple[list[str], list[str]]:
        """The leading keys with one value each, up to the `)`; what follows a key without one is not known."""
        keys: list[str] = []
        values: list[str] = []
        is_known = True
        while not self._takes(")"):
            key = self._name()
            if is_known and self._takes("="):
                keys.append(key)
                values.append(self._literal())
            else:
                is_known = False
                self._skip_to(",", ")")
            self._takes(",")
        return keys, values

    def _reads(self) -> tuple[LockPlace, ...]:
        """The tables after each FROM and JOIN from here on, but those that the statement itself names."""
        own = self._named_queries()
        if not any(token.upper == "FROM" for token in self._tokens[self._at :]):
            return tuple(self._short_sources())
        places: list[LockPlace] = []
        # For each open bracket whether it has a query in it: `trim('x' FROM a)` reads no table.
        is_query = [True]
        while self._at < len(self._tokens):
            word = self._tokens[self._at].upper
            self._at += 1
            if word == "(":
                is_query.append(False)
            elif word == ")":
                is_query = is_query[:-1] or [True]
            elif word in ("SELECT", "WITH"):
                is_query[-1] = True
            elif word == "JOIN" or (word == "FROM" and (is_query[-1] or self._begins_query())):
                places += self._sources()
        unqualified = {LockPlace(self._default_db.lower(), name) for name in own}
        return tuple(dict.fromkeys(place for place in places if place not in unqualified))

    def _equals(self, selects_max: int) -> tuple[Equal, ...]:
        """The conditions `column = value` that all rows fulfil; none of a statement in which other words may decide."""
        words = [token.upper for token in self._tokens]
        if words.count("WHERE") != 1 or words.count("SELECT") > selects_max or not _DECIDING.isdisjoint(words):
            return ()
        where = words.index("WHERE")
        if "FROM" in words[:where] and "," in words[words.index("FROM") : where]:
            return ()
        depth, parts = 0, [list[Token]()]
        for token in self._tokens[where + 1 :]:
            depth += (token.upper == "(") - (token.upper == ")")
            if depth == 0 and token.upper == "AND":
                parts.append([])
            elif depth < 0 or (depth == 0 and token.upper in _ENDS):
                break
            else:
                parts[-1].append(token)
        return tuple(found for part in parts for found in self._equal(part))

    def _equal(self, tokens: Sequence[Token]) -> list[Equal]:
        tokens = tokens[2:] if len(tokens) > 1 and tokens[1].upper == "." else tokens
        if len(tokens) != 3 or not tokens[0].is_name or tokens[1].upper != "=":
            return []
        column, value = tokens[0].text.lower(), tokens[2]
        if not value.text or not (value.is_string or value.text.isdecimal()):
            return []
        return [Equal(column, self._make_name([column], [value.text]), value.text, value.is_string)]

    def _begins_query(self) -> bool:
        """True if the word before is the first of a bracket: `(FROM u SELECT …)`."""
        return self._at >= 2 and self._tokens[self._at - 2].upper == "("

    def _sources(self) -> list[LockPlace]:
        places = []
        while self._at < len(self._tokens) and self._tokens[self._at].is_name:
            places.append(self._place())
            self._takes("AS")
            if self._is_name() and (self._tokens[self._at].upper == "" or not _NO_ALIASES(self._peek())):
                self._at += 1
            if not self._takes(","):
                break
        return places

    def _short_sources(self) -> list[LockPlace]:
        """`select .. T1 partition P1`: the columns are dots."""
        if self._peek() != ".":
            self._finds("SELECT")
        if not self._takes(".", "."):
            return []
        return self._sources()

    def _named_queries(self) -> set[str]:
        """The names of `name AS (SELECT`."""
        tokens = self._tokens
        return {
            tokens[place].text.lower()
            for place in range(len(tokens) - 3)
            if tokens[place].is_name
            and [token.upper for token in tokens[place + 1 : place + 4]] == ["AS", "(", "SELECT"]
        }


_STATEMENTS: Final[Sequence[tuple[tuple[str, ...], Callable[[_Parser], Command]]]] = (
    (("SELECT",), lambda parser: Command(Operation.SELECT, reads=parser._reads(), where=parser._equals(1))),
    (("UPDATE",), lambda parser: parser._changed(Operation.UPDATE)),
    (("DELETE", "FROM"), lambda parser: parser._changed(Operation.DELETE)),
    (("MERGE", "INTO"), _Parser._merge),
    (("ANALYZE", "TABLE"), lambda parser: Command(Operation.ANALYZE, (parser._place(),))),
    (("MSCK",), _Parser._repair),
    (("EXPORT", "TABLE"), lambda parser: Command(Operation.EXPORT, reads=(parser._place(),))),
    (("LOAD", "DATA"), _Parser._load),
    (("ALTER", "TABLE"), _Parser._alter_table),
    (("CREATE",), _Parser._create),
    (("LOCK",), _Parser._lock),
    (("TRUNCATE",), _Parser._truncate),
    (("DROP", "TABLE"), _Parser._drop_table),
    (("DROP", "VIEW"), _Parser._drop_table),
    (("DROP", "DATABASE"), _Parser._drop_database),
    (("DROP", "SCHEMA"), _Parser._drop_database),
)
# What may make a condition hold for some rows only, or bring in other tables.
_DECIDING: Final = frozenset(
    ["WITH", "JOIN", "UNION", "INTERSECT", "EXCEPT", "MINUS", "LATERAL", "OR", "BETWEEN", "CASE", "IF", "QUALIFY"]
)
_ENDS: Final = frozenset(["AND", "GROUP", "ORDER", "HAVING", "LIMIT", "SORT", "CLUSTER", "DISTRIBUTE", "WINDOW", ";"])

_OF_PARTITIONS: Final = frozenset(
    {Operation.ADD_PARTITION, Operation.DROP_PARTITION, Operation.TOUCH, Operation.ARCHIVE}
)

# The longer ones of those that begin alike come first.
_ALTERATIONS: Final[Sequence[tuple[tuple[str, ...], Operation]]] = [
    (("RENAME",), Operation.RENAME_TABLE),
    (("ADD", "COLUMNS"), Operation.ADD_COLUMNS),
    (("ADD", "COLS"), Operation.ADD_COLUMNS),
    (("ADD", "CONSTRAINT"), Operation.CONSTRAINT),
    (("ADD",), Operation.ADD_PARTITION),
    (("REPLACE", "COLUMNS"), Operation.REPLACE_COLUMNS),
    (("REPLACE", "COLS"), Operation.REPLACE_COLUMNS),
    (("CHANGE",), Operation.CHANGE_COLUMN),
    (("CONCATENATE",), Operation.CONCATENATE),
    (("DROP", "CONSTRAINT"), Operation.CONSTRAINT),
    (("DROP",), Operation.DROP_PARTITION),
    (("TOUCH",), Operation.TOUCH),
    (("SET", "SERDEPROPERTIES"), Operation.SET_SERDE_PROPERTIES),
    (("UNSET", "SERDEPROPERTIES"), Operation.SET_SERDE_PROPERTIES),
    (("SET", "SERDE"), Operation.SET_SERDE),
    (("SET", "SERIALIZER"), Operation.SET_SERDE),
    (("SET", "FILEFORMAT"), Operation.SET_FILE_FORMAT),
    (("SET", "FILE", "FORMAT"), Operation.SET_FILE_FORMAT),
    (("SET", "TBLPROPERTIES"), Operation.SET_TABLE_PROPERTIES),
    (("UNSET", "TBLPROPERTIES"), Operation.UNSET_TABLE_PROPERTIES),
    (("SET", "LOCATION"), Operation.SET_LOCATION),
    (("SET", "SKEWED"), Operation.SET_STORAGE),
    (("CLUSTERED",), Operation.SET_STORAGE),
    (("SKEWED",), Operation.SET_STORAGE),
    (("NOT",), Operation.SET_STORAGE),
    (("INTO",), Operation.SET_STORAGE),
    (("ARCHIVE",), Operation.ARCHIVE),
    (("UNARCHIVE",), Operation.ARCHIVE),
    (("PARTITION", "COLUMN"), Operation.PARTITION_COLUMN),
    (("COMPACT",), Operation.COMPACT),
]
