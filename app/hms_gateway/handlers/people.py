"""Methods for people who look for something in the catalog."""

from hms_gateway.catalog.arguments import database_name
from hms_gateway.handlers.table_names import table_named
from hms_gateway.metastore.registry.people import PeopleService
from hms_gateway.rpc.call import Call
from hms_gateway.structs import DatabaseCounts, FoundName, PartitionGroup


class People:
    def __init__(self, people: PeopleService) -> None:
        self._people = people

    def search_names(self, call: Call, text: str, max_names: int, details: bool) -> list[FoundName]:
        return self._people.search_names(text, max_names or 0, details=bool(details))

    def count_objects(self, call: Call, db_name: str, details: bool) -> list[DatabaseCounts]:
        return self._people.count_objects(database_name(db_name), details=bool(details))

    def get_create_text(self, call: Call, db_name: str, tbl_name: str) -> str:
        return self._people.create_text(table_named(db_name, tbl_name))

    def list_partition_names(
        self, call: Call, db_name: str, tbl_name: str, filter: str, after: str, descending: bool, max_names: int
    ) -> list[str]:
        table = table_named(db_name, tbl_name)
        return self._people.partition_names(table, filter, after, descending=bool(descending), max_names=max_names or 0)

    def count_partition_groups(
        self, call: Call, db_name: str, tbl_name: str, filter: str, keys: int, max_groups: int
    ) -> list[PartitionGroup]:
        return self._people.partition_groups(table_named(db_name, tbl_name), filter, keys or 0, max_groups or 0)

    def translate_condition(self, call: Call, db_name: str, tbl_name: str, condition: str) -> str:
        return self._people.translated_condition(table_named(db_name, tbl_name), condition)
