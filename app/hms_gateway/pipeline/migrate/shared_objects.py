"""Databases, functions, roles and grants: few enough to be brought in line by the driver."""

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final

from hms_gateway.metastore.vocabulary.names import DEFAULT_DATABASE
from hms_gateway.pipeline.catalog import BUILT_IN_ROLES, CatalogReader
from hms_gateway.pipeline.jobs.batches import Refusal
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.migrate.sides import Difference, Plain, Sides, of_chunk
from hms_gateway.pipeline.migrate.writing import REFUSALS, Writer, reason
from hms_gateway.rpc.structs import (
    Function,
    HiveObjectPrivilege,
    HiveObjectType,
    PrincipalType,
    RolePrincipalGrant,
    Struct,
)

# In an order in which each kind finds what it refers to; grants are on tables, and come after these.
BEFORE_TABLES: Final = ("database", "role", "role grant")
AFTER_TABLES: Final = ("function", "grant")
KINDS: Final = (*BEFORE_TABLES, *AFTER_TABLES)


@dataclass
class SharedObjects:
    """Both sides of them. `made` has, by kind, what the run has brought, and `note` is called before that grows."""

    options: JobOptions
    sides: Sides
    source: CatalogReader
    target: CatalogReader
    writer: Writer
    made: dict[str, set[str]]
    note: Callable[[dict[str, set[str]]], None]
    empty_default: bool = False
    counts: Counter[str] = field(default_factory=Counter)
    refused: dict[str, Refusal] = field(default_factory=dict)

    def bring_in_line(self, kinds: Iterable[str]) -> None:
        """Make those of the target what the source has; what others have made there stays."""
        for kind in kinds:
            if self.sides.wants(_KINDS[kind].option):
                self._bring(kind, self._read(self.source, kind), self._read(self.target, kind))

    def differences(self) -> Iterator[Difference]:
        """Differences of the source's objects, field by field."""
        for kind in KINDS:
            if self.sides.wants(_KINDS[kind].option):
                here, there = self._read(self.source, kind), self._read(self.target, kind)
                wanted = {name: one for name, one in there.items() if name in here or name in self._made(kind)}
                self.counts[f"compared {kind}s"] = len(here)
                yield from of_chunk(kind, *(self._all_compared(kind, side) for side in (here, wanted)))

    def _all_compared(self, kind: str, found: Mapping[str, Any]) -> dict[str, Plain]:
        return {name: self._compared(kind, name, one) for name, one in found.items()}

    def _bring(self, kind: str, here: Mapping[str, Any], there: Mapping[str, Any]) -> None:
        changes = _KINDS[kind]
        for name in self._made(kind) & (there.keys() - here.keys()):
            self._do(kind, name, "dropped", changes.drop, there[name])
        missing = {name: wanted for name, wanted in here.items() if name not in there}
        made = (self._made(kind) & here.keys()) | missing.keys()
        if made != self._made(kind):
            self.made[kind] = made
            self.note(self.made)
        if not self._grant_at_once(kind, list(missing.values())):
            for name, wanted in missing.items():
                self._do(kind, name, "", changes.create, wanted)
        for name, wanted in here.items():
            found = there.get(name)
            if found is None:
                continue
            if self._differ(kind, name, wanted, found) and self._replaces(kind, name):
                self._do(kind, name, "replaced", changes.replace, wanted)

    def _grant_at_once(self, kind: str, missing: Sequence[Any]) -> bool:
        """Many grants in a call; when one is refused, all are tried alone."""
        if kind != "grant" or not missing:
            return False
        try:
            self.writer.grant(missing)
        except REFUSALS:
            return False
        self.counts["grants"] += len(missing)
        return True

    def _do(self, kind: str, name: str, done: str, change: Callable[[Writer, Any], None], value: Any) -> None:
        try:
            change(self.writer, value)
        except REFUSALS as refused:
            self.refused[f"{kind} {name}"] = Refusal(f"{kind} {name}", reason(refused))
            return
        self.refused.pop(f"{kind} {name}", None)
        self.counts[f"{done} {kind}s".strip()] += 1

    def _replaces(self, kind: str, name: str) -> bool:
        if name in self._made(kind) or self.sides.on_conflict == "replace":
            return True
        if kind == "database" and name == DEFAULT_DATABASE and self.empty_default:
            return True
        item = f"{kind} {name}"
        self.refused[item] = Refusal(item, self.sides.conflict(item))
        return False

    def _differ(self, kind: str, name: str, one: Struct, other: Struct) -> bool:
        return self._compared(kind, name, one) != self._compared(kind, name, other)

    def _made(self, kind: str) -> set[str]:
        return self.made.setdefault(kind, set())

    def _compared(self, kind: str, name: str, value: Struct) -> Plain:
        compared = dict(self.sides.compared(kind, value))
        if kind == "database" and name == DEFAULT_DATABASE and not self.sides.is_gateway:
            # alter_database of 2.3 changes neither, and every metastore has this database.
            compared = {key: each for key, each in compared.items() if key not in ("locationUri", "description")}
        if kind == "function":
            compared["functionName"] = str(compared.get("functionName", "")).lower()
        if kind == "role" and not compared.get("createTime"):
            compared.pop("ownerName", None)
        return compared

    def _read(self, reader: CatalogReader, kind: str) -> dict[str, Any]:
        """The objects of a kind by name that the options let through."""
        of = _KINDS[kind]
        return {of.name(one): one for one in of.read(reader) if of.wants(one, self.options)}


def _replace_function(writer: Writer, function: Function) -> None:
    writer.drop_function(function.dbName or "", function.functionName or "")
    writer.create_function(function)


def _replace_role_grant(writer: Writer, grant: RolePrincipalGrant) -> None:
    writer.revoke_role(grant)
    writer.grant_role(grant)


def _replace_grant(writer: Writer, grant: HiveObjectPrivilege) -> None:
    writer.revoke([grant])
    writer.grant([grant])


def _keep_role(writer: Writer, role: Any) -> None:
    """A role that is there keeps its members; its owner and time of creation cannot be changed by any call."""


def _role_grant_name(grant: RolePrincipalGrant) -> str:
    return f"{grant.roleName} to {_principal(grant.principalType, grant.principalName)}"


def _grant_name(grant: HiveObjectPrivilege) -> str:
    on, info = grant.hiveObject, grant.grantInfo
    assert on is not None
    assert info is not None
    values = ",".join(on.partValues or ())
    place = "/".join(filter(None, (on.dbName, on.objectName, values, on.columnName)))
    kind = HiveObjectType(on.objectType or 1).name.lower()
    who = _principal(grant.principalType, grant.principalName)
    by = _principal(info.grantorType, info.grantor)
    return f"{(info.privilege or '').upper()} on {kind} {place} to {who} by {by}"


def _principal(kind: int | None, name: str | None) -> str:
    return f"{PrincipalType(kind or 1).name.lower()} {name}"


def _wants_grant(grant: HiveObjectPrivilege, options: JobOptions) -> bool:
    on = grant.hiveObject
    if on is None or on.objectType == HiveObjectType.GLOBAL:
        return not options.only and not (
            grant.principalType == PrincipalType.ROLE and grant.principalName in BUILT_IN_ROLES
        )
    if not on.objectName or on.objectType == HiveObjectType.DATABASE:
        return options.wants(on.dbName or on.objectName or "")
    return options.wants(on.dbName or "", on.objectName)


def _wants_any(one: Any, options: JobOptions) -> bool:
    return True


@dataclass(frozen=True, slots=True, kw_only=True)
class SharedKind:
    """Functions to read, name, choose and change objects of a kind; `option` turns the kind on."""

    option: str
    read: Callable[[CatalogReader], Iterable[Any]]
    name: Callable[[Any], str]
    wants: Callable[[Any, JobOptions], bool] = _wants_any
    create: Callable[[Writer, Any], None]
    replace: Callable[[Writer, Any], None]
    drop: Callable[[Writer, Any], None]


_KINDS: Final = {
    "database": SharedKind(
        option="databases",
        read=CatalogReader.databases,
        name=lambda one: (one.name or "").lower(),
        wants=lambda one, options: options.wants(one.name or ""),
        create=Writer.create_database,
        replace=Writer.alter_database,
        drop=lambda writer, one: writer.drop_database(one.name or ""),
    ),
    "role": SharedKind(
        option="roles",
        read=CatalogReader.roles,
        name=lambda one: one.roleName or "",
        create=Writer.create_role,
        replace=_keep_role,
        drop=lambda writer, one: writer.drop_role(one.roleName or ""),
    ),
    "role grant": SharedKind(
        option="roles",
        read=CatalogReader.role_grants,
        name=_role_grant_name,
        create=Writer.grant_role,
        replace=_replace_role_grant,
        drop=Writer.revoke_role,
    ),
    "function": SharedKind(
        option="functions",
        read=CatalogReader.functions,
        name=lambda one: f"{one.dbName}.{(one.functionName or '').lower()}",
        wants=lambda one, options: options.wants(one.dbName or ""),
        create=Writer.create_function,
        replace=_replace_function,
        drop=lambda writer, one: writer.drop_function(one.dbName or "", one.functionName or ""),
    ),
    "grant": SharedKind(
        option="grants",
        read=CatalogReader.grants,
        name=_grant_name,
        wants=_wants_grant,
        create=lambda writer, one: writer.grant([one]),
        replace=_replace_grant,
        drop=lambda writer, one: writer.revoke([one]),
    ),
}
