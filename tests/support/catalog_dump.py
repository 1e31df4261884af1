"""Everything that a metastore says of its catalog, for comparisons of two."""

from typing import Any

import msgspec

from hms_gateway.rpc.structs import (
    GetPrincipalsInRoleRequest,
    HiveObjectRef,
    HiveObjectType,
    NoSuchObjectException,
    PrincipalType,
)


def dump(client: Any) -> dict[str, Any]:
    """Everything that a metastore says of its catalog, to a client of Apache Thrift."""
    found: dict[str, Any] = {}
    for database in client.get_all_databases():
        found[database] = client.get_database(database)
        for name in client.get_all_tables(database):
            place = f"{database}.{name}"
            found[place] = table = client.get_table(database, name)
            columns = [column.name for column in table.sd.cols]
            for column in columns if table.tableType != "VIRTUAL_VIEW" else ():
                found[f"{place} {column}"] = statistics(client.get_table_column_statistics, database, name, column)
            for part in client.get_partition_names(database, name, -1) if table.partitionKeys else ():
                (found[f"{place}/{part}"],) = client.get_partitions_by_names(database, name, [part])
                for column in columns:
                    ask = client.get_partition_column_statistics
                    found[f"{place}/{part} {column}"] = statistics(ask, database, name, part, column)
    for function in client.get_all_functions().functions or ():
        found[f"function {function.functionName}"] = function
    for role in client.get_role_names():
        for grant in client.get_principals_in_role(GetPrincipalsInRoleRequest(role)).principalGrants:
            found[f"{role} to {grant.principalName}"] = without_time(grant) if role == "admin" else grant
    for kind in list(HiveObjectType)[:5]:
        for grant in client.list_privileges(None, None, HiveObjectRef(objectType=kind)):
            if grant.principalName != "admin":
                found[f"{grant.hiveObject} {grant.grantInfo.privilege} {grant.principalName}"] = grant
    found["roles of ann"] = client.list_roles("ann", PrincipalType.USER)
    return {name: bare(msgspec.to_builtins(value)) for name, value in found.items() if value is not None}


def without_time(grant: Any) -> Any:
    return msgspec.structs.replace(grant, grantTime=None)


def statistics(ask: Any, *arguments: str) -> Any:
    """Without when they were made, which no call can set."""
    try:
        found = ask(*arguments)
    except NoSuchObjectException:
        return None
    return None if found is None else found.statsObj


def bare(value: Any) -> Any:
    """Without what is unset or empty: metastores differ in that."""
    if isinstance(value, dict):
        kept = {key: bare(each) for key, each in value.items() if key != "privileges"}
        return {key: each for key, each in kept.items() if each not in (None, {}, [], 0, False)}
    return [bare(each) for each in value] if isinstance(value, list) else value


def differing(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    return {
        name: (one.get(name), other.get(name))
        for name in sorted(one.keys() | other.keys())
        if one.get(name) != other.get(name)
    }
