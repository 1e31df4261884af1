"""Resource plans of workload management (3.1 and later): load the plan, decide by `resource_plan_rules`, store it."""

from collections.abc import Callable

from hms_gateway.catalog.registry.resource_plan_rules import (
    altered,
    changes_fields,
    check_editable,
    check_status_change,
    namespace,
    new_plan,
    plan_of,
    problems,
    with_name,
    with_status,
)
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.registry import StoredPlan
from hms_gateway.metastore.ports.store import Snapshot, Store, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.structs import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    WMFullResourcePlan,
    WMNullableResourcePlan,
    WMResourcePlan,
    WMResourcePlanStatus,
)

Change = Callable[[WMFullResourcePlan], WMFullResourcePlan]


class ResourcePlanService:
    """Plans by namespace and name; both count without case. At most one plan of a namespace is active."""

    def __init__(self, store: Store) -> None:
        self._store = store

    def create(self, plan: WMResourcePlan | None, copied_name: str | None) -> None:
        """A disabled plan, with the contents of another one of its namespace if that is named.

        Raises AlreadyExistsException, InvalidObjectException, MetaException.
        """
        given = required(plan, "resource plan")

        def work(tx: Transaction) -> bool:
            copied = None
            if copied_name is not None:
                found = tx.resource_plans.find(namespace(given.ns), normalize(copied_name))
                if found is None:
                    raise InvalidObjectException(_missing(copied_name, given.ns))
                copied = found.plan
            return tx.resource_plans.insert(namespace(given.ns), new_plan(given, copied))

        if not self._store.write(work):
            raise AlreadyExistsException(f"Resource plan already exists: {shown(given.name)}")

    def get(self, name: str | None, ns: str | None) -> WMFullResourcePlan:
        """Raises NoSuchObjectException, MetaException."""
        return self._store.read(lambda snapshot: _load(snapshot, name, ns)).plan

    def active(self, ns: str | None) -> WMFullResourcePlan | None:
        """The plan queries run by, None where there is none."""
        found = self._store.read(lambda snapshot: _active(snapshot, namespace(ns)))
        return None if found is None else found.plan

    def all(self, ns: str | None) -> list[WMResourcePlan]:
        """Ordered by name, without their contents."""
        return [
            plan_of(stored.plan) for stored in self._store.read(lambda snap: snap.resource_plans.all(namespace(ns)))
        ]

    def alter(
        self,
        name: str | None,
        ns: str | None,
        changes: WMNullableResourcePlan | None,
        *,
        may_activate_disabled: bool,
        may_deactivate: bool,
    ) -> WMFullResourcePlan | None:
        """Change a plan, or the active one without a name; the whole plan when the change made it active.

        Raises NoSuchObjectException, InvalidOperationException, MetaException.
        """
        given = required(changes, "changes")
        status = _status(given.status)

        def work(tx: Transaction) -> WMFullResourcePlan | None:
            stored = _active_or_named(tx, name, ns)
            full = stored.plan
            if changes_fields(plan_of(full), given):
                full = altered(check_editable(full), given)
            if status is None or plan_of(full).status == status:
                _update(tx, stored, full)
                return None
            check_status_change(
                full, status, may_activate_disabled=may_activate_disabled, may_deactivate=may_deactivate
            )
            if status == WMResourcePlanStatus.ACTIVE:
                _deactivate(tx, namespace(ns))
            full = with_status(full, status)
            _update(tx, stored, full)
            return full if status == WMResourcePlanStatus.ACTIVE else None

        return self._store.write(work)

    def replace(
        self, name: str | None, ns: str | None, changes: WMNullableResourcePlan | None
    ) -> WMFullResourcePlan | None:
        """Let a plan take the name and status of another one, or of the active one; that one is kept, disabled.

        The whole plan when it is active now. Raises NoSuchObjectException, InvalidOperationException, MetaException.
        """
        given = required(changes, "changes")
        if name is None:
            raise InvalidOperationException("Cannot replace without specifying the source plan")
        if changes_fields(WMResourcePlan(normalize(given.name or "")), given):
            raise InvalidOperationException("Cannot change values during replace.")
        replaces_active = _status(given.status) == WMResourcePlanStatus.ACTIVE
        if replaces_active == bool(given.name):
            raise InvalidOperationException(f"Must specify a name, or the active plan; received {shown(given.name)}")

        def work(tx: Transaction) -> WMFullResourcePlan | None:
            new = _load(tx, name, ns)
            old = _active_or_named(tx, None if replaces_active else given.name, ns)
            if old.plan_id == new.plan_id:
                raise InvalidOperationException(f"A plan cannot replace itself: {shown(name)}")
            errors, _ = problems(new.plan)
            if errors:
                raise InvalidOperationException(f"ResourcePlan: {shown(name)} is invalid: [{', '.join(errors)}]")
            kept_name, status = plan_of(old.plan).name or "", plan_of(old.plan).status or 0
            disabled = with_status(old.plan, WMResourcePlanStatus.DISABLED)
            _update(tx, old, with_name(disabled, _free_name(tx, namespace(ns), kept_name)))
            full = with_status(with_name(new.plan, kept_name), status)
            _update(tx, new, full)
            return full if status == WMResourcePlanStatus.ACTIVE else None

        return self._store.write(work)

    def problems(self, name: str | None, ns: str | None) -> tuple[list[str], list[str]]:
        """Errors and warnings about a plan. Raises NoSuchObjectException, MetaException."""
        return problems(self.get(name, ns))

    def drop(self, name: str | None, ns: str | None) -> None:
        """Raises NoSuchObjectException, InvalidOperationException for the active plan, MetaException."""

        def work(tx: Transaction) -> None:
            stored = _load(tx, name, ns)
            if plan_of(stored.plan).status == WMResourcePlanStatus.ACTIVE:
                raise InvalidOperationException("Cannot drop an active resource plan")
            tx.resource_plans.delete(stored.plan_id)

        self._store.write(work)

    def edit(self, name: str | None, ns: str | None, change: Change, *, refuses_as_object: bool = False) -> None:
        """Change what is in a disabled plan. Raises NoSuchObjectException, MetaException, and what `change` raises.

        A plan that is not disabled is an InvalidOperationException; `refuses_as_object` is for methods that declare
        InvalidObjectException instead.
        """

        def work(tx: Transaction) -> None:
            stored = _load(tx, name, ns)
            try:
                full = check_editable(stored.plan)
            except InvalidOperationException as error:
                raise InvalidObjectException(error.message) if refuses_as_object else error from error
            _update(tx, stored, change(full))

        self._store.write(work)


def _load(snapshot: Snapshot, name: str | None, ns: str | None) -> StoredPlan:
    key = normalize(required(name, "name of the resource plan"))
    found = snapshot.resource_plans.find(namespace(ns), key)
    if found is None:
        raise NoSuchObjectException(_missing(name, ns))
    return found


def _active(snapshot: Snapshot, ns: str) -> StoredPlan | None:
    plans = snapshot.resource_plans.all(ns)
    return next((one for one in plans if plan_of(one.plan).status == WMResourcePlanStatus.ACTIVE), None)


def _active_or_named(snapshot: Snapshot, name: str | None, ns: str | None) -> StoredPlan:
    if name is not None:
        return _load(snapshot, name, ns)
    found = _active(snapshot, namespace(ns))
    if found is None:
        raise NoSuchObjectException("There is no active resource plan")
    return found


def _deactivate(tx: Transaction, ns: str) -> None:
    found = _active(tx, ns)
    if found is not None:
        _update(tx, found, with_status(found.plan, WMResourcePlanStatus.ENABLED))


def _update(tx: Transaction, stored: StoredPlan, full: WMFullResourcePlan) -> None:
    if full != stored.plan and not tx.resource_plans.update(stored.plan_id, full):
        raise InvalidOperationException(f"Resource plan already exists: {shown(plan_of(full).name)}")


def _free_name(snapshot: Snapshot, ns: str, name: str) -> str:
    number = 0
    while snapshot.resource_plans.find(ns, f"{name}_old_{number}") is not None:
        number += 1
    return f"{name}_old_{number}"


def _status(number: int | None) -> WMResourcePlanStatus | None:
    try:
        return None if number is None else WMResourcePlanStatus(number)
    except ValueError:
        raise MetaException(f"{number} is not a status of a resource plan") from None


def _missing(name: str | None, ns: str | None) -> str:
    return f"There is no resource plan named: {shown(name)} in {shown(namespace(ns))}"
