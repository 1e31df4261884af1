"""Privileges as calls carry them."""

from hms_gateway.rpc.structs import (
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
)


def bag(privilege: str, on: str, to: str, kind: int, option: bool = False) -> PrivilegeBag:
    database, _, table = on.partition(".")
    level = HiveObjectType.TABLE if table else HiveObjectType.DATABASE if database else HiveObjectType.GLOBAL
    ref = HiveObjectRef(objectType=level, dbName=database or None, objectName=table or None)
    info = PrivilegeGrantInfo(privilege, 0, "root", PrincipalType.USER, option)
    return PrivilegeBag([HiveObjectPrivilege(ref, to, kind, info)])
