"""Lets a call through to its handler, refuses it, or has it find nothing: what `schema/methods.txt` says, enforced.

An object that the caller may not see is missing. So that it is missing in the very words of each method, the handler is
called with a name that no object has, and the words of its exception are given the caller's name again.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, Final, Protocol

import msgspec

from hms_gateway.catalog.rights.decisions import ROLE, Permissions
from hms_gateway.catalog.rights.keeper import Remembered
from hms_gateway.catalog.rights.policy import (
    ALL,
    EVERYTHING,
    PUBLIC_ROLE,
    GrantedPrivilege,
    Policy,
    Principal,
)
from hms_gateway.handlers.rights.answers import ANSWERS, Asked, events_answer
from hms_gateway.handlers.rights.checks import CallCheck, known_names
from hms_gateway.handlers.rights.locations import LocationCheck
from hms_gateway.metastore.ports.store import Store
from hms_gateway.rpc.binding import Bound
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.idl.method_facts import MethodFacts, MethodRights, method_rights
from hms_gateway.rpc.structs import (
    Method,
    Struct,
    ThriftException,
)
from hms_gateway.runtime.call_keys import current_call_key
from hms_gateway.runtime.suspension import Deferred, Outdated, in_thread, waited
from hms_gateway.txn.ports.txn import Assumption


class PermissionSource(Protocol):
    """`catalog.rights.keeper.PolicyKeeper`."""

    def permissions(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Permissions: ...

    def remembered(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Remembered | None: ...


class Authorizer:
    """Safe to call from several threads."""

    def __init__(
        self,
        permissions: PermissionSource,
        store: Store,
        administrators: frozenset[str],
        locations: Callable[[Permissions], LocationCheck] | None = None,
        rights: Mapping[str, MethodRights] | None = None,
    ) -> None:
        """Without `locations` a call may name any, without `rights` those of `method_rights` hold."""
        self._known = permissions
        self._store = store
        self._administrators = administrators
        self._locations = locations
        self._rights = method_rights() if rights is None else rights
        self._answers = {**ANSWERS, "events": events_answer(store)}

    def concerns(self, method: Method, facts: MethodFacts) -> bool:
        rights = self._rights.get(method.name)
        return rights is not None and bool(rights.needs or rights.answer)

    def answer(self, bound: Bound, call: Call, arguments: Struct, handle: Callable[[], Any]) -> Any:
        """Answer of the handler, as far as the caller may see it. Raises MetaException for what is refused."""
        if call.principal in self._administrators:
            return handle()
        if bound.facts.suspendable:
            return self._deferred(bound, call, arguments, handle)
        return self._checked(bound, call, arguments, handle)

    def _deferred(self, bound: Bound, call: Call, arguments: Struct, handle: Callable[[], Any]) -> Deferred[Any]:
        """Answer by the rights that are remembered, if they still hold where the unit of work is run.

        What they refuse, and what is no such unit of work, is checked by the rights of now, in a thread.
        """
        checked = partial(self._checked, bound, call, arguments, handle)
        remembered = self._known.remembered(call.principal, call.groups, call.may_administer)
        key = current_call_key()
        # The answer of before is given without a batch, which would look whether the rights still hold.
        is_repetition = key is not None and key.recalled is not None
        if remembered is None or is_repetition:
            return in_thread(checked)
        permissions = remembered.permissions
        is_admin = permissions.admin_because is not None
        check = CallCheck(None, permissions, call, arguments, self._locations, is_refused=True)
        otherwise = in_thread(partial(check.undone, checked))
        try:
            for need in () if is_admin else self._rights[bound.method.name].needs:
                # Whose the locks and transactions are is seen by the unit of work that names them.
                if need.verb != "own":
                    check.check(need)
            deferred = handle()
        except (ThriftException, Outdated):
            return otherwise
        if not isinstance(deferred, Deferred) or deferred.store is None or not check.is_keepable:
            return otherwise
        holds = partial(remembered.holds, frozenset(check.tables))
        assumed = Assumption(None if is_admin else call.principal, remembered.version, holds)
        return deferred._replace(work=msgspec.structs.replace(deferred.work, assumed=assumed), otherwise=otherwise)

    def _checked(self, bound: Bound, call: Call, arguments: Struct, handle: Callable[[], Any]) -> Any:
        rights = self._rights[bound.method.name]
        permissions = self._known.permissions(call.principal, call.groups, call.may_administer)
        if permissions.admin_because is not None:
            return waited(handle())
        check = CallCheck(self._store, permissions, call, arguments, self._locations, is_refused=rights.refused)
        for need in rights.needs:
            check.check(need)
        if bound.method.name == "get_all_tables" and (names := known_names(permissions, arguments)) is not None:
            return names
        value = check.through(handle)
        if not rights.answer:
            return value
        kind, *paths = rights.answer
        return self._answers[kind](Asked(permissions, arguments, value, tuple(paths), handle))


# While authorization is off everybody may do everything, but for what `lasting_rights` says.
_ALL_FOR_ALL: Final = Policy(held={Principal(ROLE, PUBLIC_ROLE): (GrantedPrivilege(ALL, EVERYTHING),)})


class NoGrants:
    """The `PermissionSource` of a gateway without authorization: no user has a role or owns anything."""

    def permissions(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Permissions:
        return Permissions(user, groups, _ALL_FOR_ALL)

    def remembered(self, user: str, groups: frozenset[str], may_administer: bool = True) -> Remembered | None:
        return None
