"""Words and names that the shell offers, by what its reader of statements could go on with."""

import pytest
from prompt_toolkit.completion import CompleteEvent
from prompt_toolkit.document import Document

from hms_gateway.cli.sql.conversation import SqlCompleter


class Names:
    def databases(self):
        return ["default", "sales"]

    def tables(self, database):
        return {"default": ["flat", "parts"], "sales": ["orders"]}[database]

    def partitioned_tables(self, database):
        return [name for name in self.tables(database) if name != "flat"]

    def columns(self, database, table):
        return [f"{database}_{table}_a"]


def offered(text):
    completer = SqlCompleter(Names(), lambda: "default")
    return {each.text for each in completer.get_completions(Document(text), CompleteEvent())}


# What is offered among others, and what is not.
OFFERED = {
    "": ({"SHOW", "DESCRIBE", "LOCK"}, {"sales", "INSERT", "?"}),
    "sho": ({"show"}, {"SHOW", "describe"}),
    "SHOW ": ({"TABLES", "LOCKS", "LEASE", "CREATE"}, {"SHOW", "sales"}),
    "show create ": ({"TABLE", "DATABASE"}, {"TABLES"}),
    "use ": ({"default", "sales"}, {"flat"}),
    "show tables ": ({"IN", "FROM", "LIKE"}, {"flat"}),
    "show tables in s": ({"sales"}, {"default"}),
    "describe ": ({"FORMATTED", "DATABASE", "flat", "sales"}, {"SHOW"}),
    "show partitions ": ({"parts", "sales"}, {"flat"}),
    "show snapshots ": ({"FROM", "IN", "flat", "sales"}, {"LIMIT"}),
    "show partitions sales.": ({"orders"}, {"parts", "sales"}),
    "alter table flat ": ({"ADD", "RENAME", "SET", "COMPACT", "PARTITION"}, {"sales"}),
    "alter table flat rename ": ({"TO"}, {"ADD"}),
    "alter table sales.orders change ": ({"COLUMN", "sales_orders_a"}, {"ADD"}),
    "alter table parts drop partition (": ({"default_parts_a"}, {"flat"}),
    "create table t (a int) stored as ": ({"PARQUET", "ORC"}, {"STORED"}),
    "lock table flat ": ({"SHARED", "EXCLUSIVE", "PARTITION"}, {"flat"}),
    "unlock ": ({"TABLE", "DATABASE"}, {"flat"}),
    "grant ": ({"SELECT", "ALL"}, {"TO"}),
    "grant select on flat ": ({"TO"}, {"ON"}),
    "show foo bar ": (set(), {"TABLES"}),
    "show tables; use ": ({"sales"}, {"TABLES"}),
    "show tables like 'a": (set(), {"LIKE"}),
}


@pytest.mark.parametrize(("text", "expected"), OFFERED.items())
def test_what_is_offered(text, expected):
    among, absent = expected
    found = offered(text)
    assert among <= found
    assert not absent & found
