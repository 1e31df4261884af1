"""The privileges a client sends with a new table, as grants on it (semantics §2.18, §3.3)."""

from collections.abc import Iterator

from hms_gateway.metastore.ports.access import Grant, GrantObject, Principal
from hms_gateway.metastore.vocabulary.ids import TableId
from hms_gateway.structs import HiveObjectType, PrincipalPrivilegeSet, PrincipalType


def creation_grants(privileges: PrincipalPrivilegeSet | None, table_id: TableId, now_seconds: int) -> Iterator[Grant]:
    """Each once; what names no principal or no privilege is left out. The time of a grant is the client's, if any."""
    if privileges is None:
        return
    on = GrantObject(HiveObjectType.TABLE, table_id=table_id)
    seen: set[tuple[Principal, str, str | None]] = set()
    for principal_type, given in (
        (PrincipalType.USER, privileges.userPrivileges),
        (PrincipalType.GROUP, privileges.groupPrivileges),
        (PrincipalType.ROLE, privileges.rolePrivileges),
    ):
        for name, infos in (given or {}).items():
            for info in infos or ():
                principal = Principal(name, int(principal_type))
                for privilege in split_privileges(info.privilege):
                    if (principal, privilege, info.grantor) in seen:
                        continue
                    seen.add((principal, privilege, info.grantor))
                    yield Grant(
                        on=on,
                        principal=principal,
                        privilege=privilege,
                        create_time=info.createTime or now_seconds,
                        grant_option=bool(info.grantOption),
                        grantor=info.grantor,
                        grantor_type=info.grantorType,
                    )


def split_privileges(text: str | None) -> list[str]:
    """`select, insert` as two privileges, without the blanks Hive would keep (semantics §13 row 39b)."""
    return list(dict.fromkeys(part for each in (text or "").split(",") if (part := each.strip())))
