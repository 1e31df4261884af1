"""Resource plans of workload management (3.1 and later): load the plan, decide by `resource_plan_rules`, store it."""

from collections.abc import Callable
from typing import Any, NewType

import msgspec
from sqlalchemy import Row, delete, insert, select, update

from hms_gateway.catalog.resource_plan_rules import (
    altered,
    changes_fields,
    check_editable,
    check_status_change,
    namespace,
    new_plan,
    plan_of,
    problems,
    with_altered_pool,
    with_altered_trigger,
    with_mapping,
    with_name,
    with_pool,
    with_status,
    with_trigger,
    with_trigger_in_pool,
    without_mapping,
    without_pool,
    without_trigger,
    without_trigger_in_pool,
)
from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.ports.store import Store, Transaction
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.rpc.call import Call
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    MetaException,
    NoSuchObjectException,
    ThriftException,
    WMAlterPoolRequest,
    WMAlterPoolResponse,
    WMAlterResourcePlanRequest,
    WMAlterResourcePlanResponse,
    WMAlterTriggerRequest,
    WMAlterTriggerResponse,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrDropTriggerToPoolMappingResponse,
    WMCreateOrUpdateMappingRequest,
    WMCreateOrUpdateMappingResponse,
    WMCreatePoolRequest,
    WMCreatePoolResponse,
    WMCreateResourcePlanRequest,
    WMCreateResourcePlanResponse,
    WMCreateTriggerRequest,
    WMCreateTriggerResponse,
    WMDropMappingRequest,
    WMDropMappingResponse,
    WMDropPoolRequest,
    WMDropPoolResponse,
    WMDropResourcePlanRequest,
    WMDropResourcePlanResponse,
    WMDropTriggerRequest,
    WMDropTriggerResponse,
    WMFullResourcePlan,
    WMGetActiveResourcePlanRequest,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanRequest,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanRequest,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanRequest,
    WMGetTriggersForResourePlanResponse,
    WMNullableResourcePlan,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMValidateResourcePlanRequest,
    WMValidateResourcePlanResponse,
)
from hms_gateway.storage.schema.catalog import RESOURCE_PLANS
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, text_hash
from hms_gateway.storage.sql.repository import AggregateRows

Change = Callable[[WMFullResourcePlan], WMFullResourcePlan]


PlanId = NewType("PlanId", int)


class StoredPlan(msgspec.Struct, frozen=True):
    """A resource plan with all that is in it. Its namespace is said by the plan itself."""

    plan_id: PlanId
    plan: WMFullResourcePlan


class ResourcePlanRows(AggregateRows):
    """Resource plans, each one row."""

    def find(self, namespace: str, name: str) -> StoredPlan | None:
        statement = select(RESOURCE_PLANS).where(
            RESOURCE_PLANS.c.namespace_hash == text_hash(namespace), RESOURCE_PLANS.c.name_hash == text_hash(name)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else _stored(row)

    def all(self, namespace: str) -> list[StoredPlan]:
        """Ordered by name."""
        statement = select(RESOURCE_PLANS).where(RESOURCE_PLANS.c.namespace_hash == text_hash(namespace))
        return sorted(map(_stored, self._connection.execute(statement)), key=lambda stored: _name(stored.plan))

    def insert(self, namespace: str, plan: WMFullResourcePlan) -> bool:
        """False when the namespace has one of its name."""
        if self.find(namespace, _name(plan)) is not None:
            return False
        row = {
            "namespace_hash": text_hash(namespace),
            "name_hash": text_hash(_name(plan)),
            "content": encode_struct(plan),
        }
        self._connection.execute(insert(RESOURCE_PLANS).values(row))
        return True

    def update(self, plan_id: PlanId, plan: WMFullResourcePlan) -> bool:
        """False when another plan of its namespace has its new name."""
        is_it = RESOURCE_PLANS.c.plan_id == plan_id
        namespace = select(RESOURCE_PLANS.c.namespace_hash).where(is_it).scalar_subquery()
        hashed = text_hash(_name(plan))
        others = select(RESOURCE_PLANS.c.plan_id).where(
            RESOURCE_PLANS.c.namespace_hash == namespace,
            RESOURCE_PLANS.c.name_hash == hashed,
            RESOURCE_PLANS.c.plan_id != plan_id,
        )
        if self._connection.execute(others).first() is not None:
            return False
        values = {"name_hash": hashed, "content": encode_struct(plan)}
        self._connection.execute(update(RESOURCE_PLANS).where(is_it).values(values))
        return True

    def delete(self, plan_id: PlanId) -> None:
        self._connection.execute(delete(RESOURCE_PLANS).where(RESOURCE_PLANS.c.plan_id == plan_id))


class ResourcePlans:
    """Methods on plans by namespace and name; both count without case. At most one plan of a namespace is active.

    A plan that is not disabled cannot be edited: InvalidOperationException, or what the method declares instead.
    """

    def __init__(self, store: Store) -> None:
        self._store = store

    def create_resource_plan(self, call: Call, request: WMCreateResourcePlanRequest) -> WMCreateResourcePlanResponse:
        """A disabled plan, with the contents of another one of its namespace if that is named."""
        copied_name = required(request, "request").copyFrom
        given = required(request.resourcePlan, "resource plan")

        def work(tx: Transaction) -> bool:
            rows, copied = ResourcePlanRows(tx), None
            if copied_name is not None:
                found = rows.find(namespace(given.ns), normalize(copied_name))
                if found is None:
                    raise InvalidObjectException(_missing(copied_name, given.ns))
                copied = found.plan
            return rows.insert(namespace(given.ns), new_plan(given, copied))

        if not self._store.write(work):
            raise AlreadyExistsException(f"Resource plan already exists: {shown(given.name)}")
        return WMCreateResourcePlanResponse()

    def get_resource_plan(self, call: Call, request: WMGetResourcePlanRequest) -> WMGetResourcePlanResponse:
        return WMGetResourcePlanResponse(self._get(request))

    def get_active_resource_plan(
        self, call: Call, request: WMGetActiveResourcePlanRequest
    ) -> WMGetActiveResourcePlanResponse:
        """The plan queries run by, None where there is none."""
        ns = namespace(required(request, "request").ns)
        found = self._store.read(lambda snapshot: _active(ResourcePlanRows(snapshot), ns))
        return WMGetActiveResourcePlanResponse(None if found is None else found.plan)

    def get_all_resource_plans(self, call: Call, request: WMGetAllResourcePlanRequest) -> WMGetAllResourcePlanResponse:
        """Ordered by name, without their contents."""
        ns = namespace(required(request, "request").ns)
        found = self._store.read(lambda snapshot: ResourcePlanRows(snapshot).all(ns))
        return WMGetAllResourcePlanResponse([plan_of(stored.plan) for stored in found])

    def alter_resource_plan(self, call: Call, request: WMAlterResourcePlanRequest) -> WMAlterResourcePlanResponse:
        given = required(request, "request")
        if given.isReplace:
            full = self._replace(given.resourcePlanName, given.ns, given.resourcePlan)
        else:
            full = self._alter(
                given.resourcePlanName,
                given.ns,
                given.resourcePlan,
                may_activate_disabled=bool(given.isEnableAndActivate),
                may_deactivate=bool(given.isForceDeactivate),
            )
        return WMAlterResourcePlanResponse(full)

    def validate_resource_plan(
        self, call: Call, request: WMValidateResourcePlanRequest
    ) -> WMValidateResourcePlanResponse:
        """Errors and warnings about a plan."""
        return WMValidateResourcePlanResponse(*problems(self._get(request)))

    def drop_resource_plan(self, call: Call, request: WMDropResourcePlanRequest) -> WMDropResourcePlanResponse:
        """The active plan cannot be dropped."""
        given = required(request, "request")

        def work(tx: Transaction) -> None:
            rows = ResourcePlanRows(tx)
            stored = _load(rows, given.resourcePlanName, given.ns)
            if plan_of(stored.plan).status == WMResourcePlanStatus.ACTIVE:
                raise InvalidOperationException("Cannot drop an active resource plan")
            rows.delete(stored.plan_id)

        self._store.write(work)
        return WMDropResourcePlanResponse()

    def create_wm_trigger(self, call: Call, request: WMCreateTriggerRequest) -> WMCreateTriggerResponse:
        trigger = required(required(request, "request").trigger, "trigger")
        self._edit(trigger, lambda plan: with_trigger(plan, trigger), InvalidObjectException)
        return WMCreateTriggerResponse()

    def alter_wm_trigger(self, call: Call, request: WMAlterTriggerRequest) -> WMAlterTriggerResponse:
        trigger = required(required(request, "request").trigger, "trigger")
        self._edit(trigger, lambda plan: with_altered_trigger(plan, trigger), InvalidObjectException)
        return WMAlterTriggerResponse()

    def drop_wm_trigger(self, call: Call, request: WMDropTriggerRequest) -> WMDropTriggerResponse:
        given = required(request, "request")
        self._edit(given, lambda plan: without_trigger(plan, given.triggerName), InvalidOperationException)
        return WMDropTriggerResponse()

    def get_triggers_for_resourceplan(
        self, call: Call, request: WMGetTriggersForResourePlanRequest
    ) -> WMGetTriggersForResourePlanResponse:
        return WMGetTriggersForResourePlanResponse(self._get(request).triggers)

    def create_wm_pool(self, call: Call, request: WMCreatePoolRequest) -> WMCreatePoolResponse:
        pool = required(required(request, "request").pool, "pool")
        self._edit(pool, lambda plan: with_pool(plan, pool), InvalidObjectException)
        return WMCreatePoolResponse()

    def alter_wm_pool(self, call: Call, request: WMAlterPoolRequest) -> WMAlterPoolResponse:
        given = required(request, "request")
        pool = required(given.pool, "pool")
        self._edit(pool, lambda plan: with_altered_pool(plan, given.poolPath, pool), InvalidObjectException)
        return WMAlterPoolResponse()

    def drop_wm_pool(self, call: Call, request: WMDropPoolRequest) -> WMDropPoolResponse:
        given = required(request, "request")
        self._edit(given, lambda plan: without_pool(plan, given.poolPath), InvalidOperationException)
        return WMDropPoolResponse()

    def create_or_update_wm_mapping(
        self, call: Call, request: WMCreateOrUpdateMappingRequest
    ) -> WMCreateOrUpdateMappingResponse:
        mapping, replaces = required(required(request, "request").mapping, "mapping"), bool(request.update)
        self._edit(mapping, lambda plan: with_mapping(plan, mapping, replaces=replaces), InvalidObjectException)
        return WMCreateOrUpdateMappingResponse()

    def drop_wm_mapping(self, call: Call, request: WMDropMappingRequest) -> WMDropMappingResponse:
        mapping = required(required(request, "request").mapping, "mapping")
        self._edit(mapping, lambda plan: without_mapping(plan, mapping), InvalidOperationException)
        return WMDropMappingResponse()

    def create_or_drop_wm_trigger_to_pool_mapping(
        self, call: Call, request: WMCreateOrDropTriggerToPoolMappingRequest
    ) -> WMCreateOrDropTriggerToPoolMappingResponse:
        given = required(request, "request")
        change = without_trigger_in_pool if given.drop else with_trigger_in_pool
        self._edit(given, lambda plan: change(plan, given.triggerName, given.poolPath), InvalidObjectException)
        return WMCreateOrDropTriggerToPoolMappingResponse()

    def _get(self, request: Any) -> WMFullResourcePlan:
        given = required(request, "request")
        found = self._store.read(lambda snapshot: _load(ResourcePlanRows(snapshot), given.resourcePlanName, given.ns))
        return found.plan

    def _alter(
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
            rows = ResourcePlanRows(tx)
            stored = _active_or_named(rows, name, ns)
            full = stored.plan
            if changes_fields(plan_of(full), given):
                full = altered(check_editable(full), given)
            if status is None or plan_of(full).status == status:
                _update(rows, stored, full)
                return None
            check_status_change(
                full, status, may_activate_disabled=may_activate_disabled, may_deactivate=may_deactivate
            )
            if status == WMResourcePlanStatus.ACTIVE:
                _deactivate(rows, namespace(ns))
            full = with_status(full, status)
            _update(rows, stored, full)
            return full if status == WMResourcePlanStatus.ACTIVE else None

        return self._store.write(work)

    def _replace(
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
            rows = ResourcePlanRows(tx)
            new = _load(rows, name, ns)
            old = _active_or_named(rows, None if replaces_active else given.name, ns)
            if old.plan_id == new.plan_id:
                raise InvalidOperationException(f"A plan cannot replace itself: {shown(name)}")
            errors, _ = problems(new.plan)
            if errors:
                raise InvalidOperationException(f"ResourcePlan: {shown(name)} is invalid: [{', '.join(errors)}]")
            kept_name, status = plan_of(old.plan).name or "", plan_of(old.plan).status or 0
            disabled = with_status(old.plan, WMResourcePlanStatus.DISABLED)
            _update(rows, old, with_name(disabled, _free_name(rows, namespace(ns), kept_name)))
            full = with_status(with_name(new.plan, kept_name), status)
            _update(rows, new, full)
            return full if status == WMResourcePlanStatus.ACTIVE else None

        return self._store.write(work)

    def _edit(self, part: Any, change: Change, refusal: type[ThriftException]) -> None:
        """Change what is in the disabled plan of `part`. Raises NoSuchObjectException, MetaException.

        What `change` raises passes; a plan that is not disabled is a `refusal`, as the method declares it.
        """

        def work(tx: Transaction) -> None:
            rows = ResourcePlanRows(tx)
            stored = _load(rows, part.resourcePlanName, part.ns)
            try:
                full = check_editable(stored.plan)
            except InvalidOperationException as error:
                raise refusal(error.message) from error
            _update(rows, stored, change(full))

        self._store.write(work)


def _load(rows: ResourcePlanRows, name: str | None, ns: str | None) -> StoredPlan:
    key = normalize(required(name, "name of the resource plan"))
    found = rows.find(namespace(ns), key)
    if found is None:
        raise NoSuchObjectException(_missing(name, ns))
    return found


def _active(rows: ResourcePlanRows, ns: str) -> StoredPlan | None:
    plans = rows.all(ns)
    return next((one for one in plans if plan_of(one.plan).status == WMResourcePlanStatus.ACTIVE), None)


def _active_or_named(rows: ResourcePlanRows, name: str | None, ns: str | None) -> StoredPlan:
    if name is not None:
        return _load(rows, name, ns)
    found = _active(rows, namespace(ns))
    if found is None:
        raise NoSuchObjectException("There is no active resource plan")
    return found


def _deactivate(rows: ResourcePlanRows, ns: str) -> None:
    found = _active(rows, ns)
    if found is not None:
        _update(rows, found, with_status(found.plan, WMResourcePlanStatus.ENABLED))


def _update(rows: ResourcePlanRows, stored: StoredPlan, full: WMFullResourcePlan) -> None:
    if full != stored.plan and not rows.update(stored.plan_id, full):
        raise InvalidOperationException(f"Resource plan already exists: {shown(plan_of(full).name)}")


def _free_name(rows: ResourcePlanRows, ns: str, name: str) -> str:
    number = 0
    while rows.find(ns, f"{name}_old_{number}") is not None:
        number += 1
    return f"{name}_old_{number}"


def _status(number: int | None) -> WMResourcePlanStatus | None:
    try:
        return None if number is None else WMResourcePlanStatus(number)
    except ValueError:
        raise MetaException(f"{number} is not a status of a resource plan") from None


def _missing(name: str | None, ns: str | None) -> str:
    return f"There is no resource plan named: {shown(name)} in {shown(namespace(ns))}"


def _name(plan: WMFullResourcePlan) -> str:
    return (plan.plan.name if plan.plan else None) or ""


def _stored(row: Row[Any]) -> StoredPlan:
    return StoredPlan(PlanId(row.plan_id), decode_struct(WMFullResourcePlan, row.content))
