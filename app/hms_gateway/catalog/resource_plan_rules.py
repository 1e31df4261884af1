"""Resource plans of workload management as values: what may be changed, and how a plan looks afterwards.

A plan shares a cluster out between pools, which form a tree by their paths (`etl.nightly` lies in `etl`). Mappings send
users, groups and applications to pools; triggers move or stop queries. Only a disabled plan can be edited.
"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Final, TypeVar

import msgspec

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.vocabulary.names import normalize
from hms_gateway.metastore.vocabulary.texts import shown
from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    Struct,
    WMFullResourcePlan,
    WMMapping,
    WMNullablePool,
    WMNullableResourcePlan,
    WMPool,
    WMPoolTrigger,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMTrigger,
)

DEFAULT_NAMESPACE: Final = "default"
DEFAULT_POOL: Final = "default"
# hive.metastore.wm.default.pool.size
DEFAULT_POOL_QUERIES: Final = 4

_POLICIES: Final = frozenset({"fair", "fifo", "default"})
_ENTITY_TYPES: Final = frozenset({"USER", "GROUP", "APPLICATION"})
# How far the shares of sibling pools may be from a whole.
_SHARE_TOLERANCE: Final = 0.001

AnyStruct = TypeVar("AnyStruct", bound=Struct)


def plan_of(full: WMFullResourcePlan) -> WMResourcePlan:
    """The plan without what is in it."""
    assert full.plan is not None
    return full.plan


def new_plan(given: WMResourcePlan, copied: WMFullResourcePlan | None) -> WMFullResourcePlan:
    """A disabled plan: with the contents of `copied`, or with one pool that takes everything.

    Raises InvalidObjectException, MetaException.
    """
    name = normalize(required(given.name, "name of the resource plan"))
    if not name:
        raise InvalidObjectException("Resource name cannot be empty.")
    _check_positive("queryParallelism", given.queryParallelism)
    disabled, ns = WMResourcePlanStatus.DISABLED, namespace(given.ns)
    plan = WMResourcePlan(name, disabled, given.queryParallelism, DEFAULT_POOL, ns)
    if copied is None:
        pool = WMPool(name, DEFAULT_POOL, 1.0, DEFAULT_POOL_QUERIES, None, ns)
        return WMFullResourcePlan(plan, [pool], [], [], [])
    source = plan_of(copied)
    parallelism = given.queryParallelism if given.queryParallelism is not None else source.queryParallelism
    plan = msgspec.structs.replace(plan, queryParallelism=parallelism, defaultPoolPath=source.defaultPoolPath)
    return _renamed(msgspec.structs.replace(copied, plan=plan))


def namespace(given: str | None) -> str:
    """The namespace of a plan, which has a default."""
    return normalize(given) if given else DEFAULT_NAMESPACE


def check_editable(full: WMFullResourcePlan) -> WMFullResourcePlan:
    """Raises InvalidOperationException unless the plan is disabled."""
    if plan_of(full).status != WMResourcePlanStatus.DISABLED:
        raise InvalidOperationException("Resource plan must be disabled to edit it.")
    return full


def altered(full: WMFullResourcePlan, changes: WMNullableResourcePlan) -> WMFullResourcePlan:
    """With another name, parallelism or default pool, where the changes say so.

    Raises InvalidOperationException, NoSuchObjectException.
    """
    plan = plan_of(full)
    name = normalize(changes.name) if changes.name else plan.name
    changed = msgspec.structs.replace(plan, name=name)
    if changes.isSetQueryParallelism or changes.queryParallelism is not None:
        if changes.queryParallelism is not None and changes.queryParallelism < 1:
            raise InvalidOperationException("queryParallelism should be positive.")
        changed.queryParallelism = changes.queryParallelism
    if changes.isSetDefaultPoolPath or changes.defaultPoolPath is not None:
        if changes.defaultPoolPath is not None:
            _pool(full, changes.defaultPoolPath)
        changed.defaultPoolPath = changes.defaultPoolPath
    return _renamed(msgspec.structs.replace(full, plan=changed))


def changes_fields(plan: WMResourcePlan, changes: WMNullableResourcePlan) -> bool:
    """Whether anything but the status is to change."""
    return bool(
        (changes.name and normalize(changes.name) != plan.name)
        or changes.isSetQueryParallelism
        or changes.queryParallelism is not None
        or changes.isSetDefaultPoolPath
        or changes.defaultPoolPath is not None
    )


def check_status_change(
    full: WMFullResourcePlan, status: int, *, may_activate_disabled: bool, may_deactivate: bool
) -> None:
    """Whether the plan may get another status. Raises InvalidOperationException."""
    plan = plan_of(full)
    if plan.status == WMResourcePlanStatus.ACTIVE and not may_deactivate:
        raise InvalidOperationException(
            f"Resource plan {shown(plan.name)} is active; activate another plan first, or disable workload management."
        )
    if plan.status != WMResourcePlanStatus.DISABLED:
        return
    if status == WMResourcePlanStatus.ACTIVE and not may_activate_disabled:
        raise InvalidOperationException(
            f"Resource plan {shown(plan.name)} is disabled and should be enabled before activation"
            " (or in the same command)"
        )
    errors, _ = problems(full)
    if errors:
        raise InvalidOperationException(f"ResourcePlan: {shown(plan.name)} is invalid: [{', '.join(errors)}]")


def with_status(full: WMFullResourcePlan, status: int) -> WMFullResourcePlan:
    known = WMResourcePlanStatus(status)
    return msgspec.structs.replace(full, plan=msgspec.structs.replace(plan_of(full), status=known))


def with_name(full: WMFullResourcePlan, name: str) -> WMFullResourcePlan:
    """The plan under another name, all its parts as well."""
    return _renamed(msgspec.structs.replace(full, plan=msgspec.structs.replace(plan_of(full), name=name)))


def problems(full: WMFullResourcePlan) -> tuple[list[str], list[str]]:
    """What forbids a plan to be enabled, and what is only worth a warning."""
    plan, pools = plan_of(full), full.pools or []
    errors: list[str] = []
    warnings: list[str] = []
    if plan.queryParallelism is not None and plan.queryParallelism < 1:
        errors.append(f"Query parallelism should for resource plan be positive. Got: {plan.queryParallelism}")
    for pool in pools:
        if pool.queryParallelism is None or pool.queryParallelism < 1:
            errors.append(f"Invalid query parallelism for pool: {shown(pool.poolPath)}")
        if not _is_policy(pool.schedulingPolicy):
            errors.append(f"Invalid scheduling policy {shown(pool.schedulingPolicy)} for pool: {shown(pool.poolPath)}")
    total = sum(pool.queryParallelism or 0 for pool in pools)
    if plan.queryParallelism is not None and total > plan.queryParallelism:
        errors.append(
            f"Sum of all pools' query parallelism: {total} exceeds resource plan query parallelism:"
            f" {plan.queryParallelism}"
        )
    elif plan.queryParallelism is not None and total < plan.queryParallelism:
        warnings.append(
            f"Sum of all pools' query parallelism: {total} is less than resource plan query parallelism:"
            f" {plan.queryParallelism}"
        )
    errors.extend(_share_problems(pools))
    return errors, warnings


# Triggers.


def with_trigger(full: WMFullResourcePlan, trigger: WMTrigger) -> WMFullResourcePlan:
    """Raises InvalidObjectException, AlreadyExistsException, MetaException."""
    name = normalize(required(trigger.triggerName, "name of the trigger"))
    if not name:
        raise InvalidObjectException("Invalid trigger name")
    if any(one.triggerName == name for one in full.triggers or ()):
        raise AlreadyExistsException(f"Trigger already exists, trigger name: {shown(name)}")
    return msgspec.structs.replace(full, triggers=[*(full.triggers or ()), _own(full, trigger, triggerName=name)])


def with_altered_trigger(full: WMFullResourcePlan, trigger: WMTrigger) -> WMFullResourcePlan:
    """With the expressions and the reach that are given. Raises NoSuchObjectException, MetaException."""
    old = _trigger(full, trigger.triggerName)
    changed = msgspec.structs.replace(
        old,
        triggerExpression=_given_or(trigger.triggerExpression, old.triggerExpression),
        actionExpression=_given_or(trigger.actionExpression, old.actionExpression),
        isInUnmanaged=_given_or(trigger.isInUnmanaged, old.isInUnmanaged),
    )
    return msgspec.structs.replace(full, triggers=_replaced(full.triggers, old, changed))


def without_trigger(full: WMFullResourcePlan, name: str | None) -> WMFullResourcePlan:
    """Raises NoSuchObjectException, MetaException."""
    old = _trigger(full, name)
    return msgspec.structs.replace(
        full,
        triggers=_replaced(full.triggers, old),
        poolTriggers=[one for one in full.poolTriggers or () if one.trigger != old.triggerName],
    )


# Pools.


def with_pool(full: WMFullResourcePlan, pool: WMPool) -> WMFullResourcePlan:
    """Raises InvalidObjectException, NoSuchObjectException without a parent, AlreadyExistsException, MetaException."""
    path = _new_path(full, pool.poolPath)
    _check_policy(pool.schedulingPolicy)
    _check_positive("queryParallelism", pool.queryParallelism)
    share = 0.0 if pool.allocFraction is None else pool.allocFraction
    new = _own(full, pool, poolPath=path, allocFraction=share, queryParallelism=_given_or(pool.queryParallelism, 1))
    return msgspec.structs.replace(full, pools=[*(full.pools or ()), new])


def with_altered_pool(full: WMFullResourcePlan, path: str | None, changes: WMNullablePool) -> WMFullResourcePlan:
    """A pool with another share, parallelism, policy or path; pools below it move along.

    Raises InvalidObjectException, NoSuchObjectException, AlreadyExistsException, MetaException.
    """
    old = _pool(full, path)
    if changes.isSetSchedulingPolicy or changes.schedulingPolicy is not None:
        _check_policy(changes.schedulingPolicy)
        policy = changes.schedulingPolicy
    else:
        policy = old.schedulingPolicy
    _check_positive("queryParallelism", changes.queryParallelism)
    changed = msgspec.structs.replace(
        old,
        allocFraction=_given_or(changes.allocFraction, old.allocFraction),
        queryParallelism=_given_or(changes.queryParallelism, old.queryParallelism),
        schedulingPolicy=policy,
    )
    full = msgspec.structs.replace(full, pools=_replaced(full.pools, old, changed))
    if changes.poolPath is None or normalize(changes.poolPath) == old.poolPath:
        return full
    new_path = _new_path(full, changes.poolPath)
    if _is_below(new_path, old.poolPath or ""):
        raise InvalidObjectException("A pool cannot be moved into itself")
    return _moved(full, old.poolPath or "", new_path)


def without_pool(full: WMFullResourcePlan, path: str | None) -> WMFullResourcePlan:
    """Raises NoSuchObjectException, InvalidOperationException, MetaException."""
    old = _pool(full, path)
    if plan_of(full).defaultPoolPath == old.poolPath:
        raise InvalidOperationException("Cannot drop default pool of a resource plan")
    if any(_is_below(pool.poolPath or "", old.poolPath or "") for pool in full.pools or ()):
        raise InvalidOperationException(f"Pool {shown(old.poolPath)} has children, cannot drop.")
    if any(mapping.poolPath == old.poolPath for mapping in full.mappings or ()):
        raise InvalidOperationException(f"Pool {shown(old.poolPath)} has mappings, cannot drop.")
    return msgspec.structs.replace(
        full,
        pools=_replaced(full.pools, old),
        poolTriggers=[one for one in full.poolTriggers or () if one.pool != old.poolPath],
    )


# Mappings.


def with_mapping(full: WMFullResourcePlan, mapping: WMMapping, *, replaces: bool) -> WMFullResourcePlan:
    """A mapping to a pool, or with no pool to what no plan manages; `replaces` one that is there.

    Raises InvalidObjectException, NoSuchObjectException, AlreadyExistsException, MetaException.
    """
    kind, name = _entity(mapping)
    path = _pool(full, mapping.poolPath).poolPath if mapping.poolPath else None
    new = _own(full, mapping, entityType=kind, entityName=name, poolPath=path)
    old = _find_mapping(full, kind, name)
    if old is None and replaces:
        raise NoSuchObjectException(f"Cannot find mapping for {kind} {shown(name)}")
    if old is not None and not replaces:
        raise AlreadyExistsException(f"Mapping already exists for {kind} {shown(name)}")
    others = [one for one in full.mappings or () if one is not old]
    return msgspec.structs.replace(full, mappings=[*others, new])


def without_mapping(full: WMFullResourcePlan, mapping: WMMapping) -> WMFullResourcePlan:
    """Raises InvalidObjectException, NoSuchObjectException, MetaException."""
    kind, name = _entity(mapping)
    old = _find_mapping(full, kind, name)
    if old is None:
        raise NoSuchObjectException(f"Cannot find mapping for {kind} {shown(name)}")
    return msgspec.structs.replace(full, mappings=_replaced(full.mappings, old))


def with_trigger_in_pool(full: WMFullResourcePlan, trigger: str | None, path: str | None) -> WMFullResourcePlan:
    """Raises NoSuchObjectException, AlreadyExistsException, MetaException."""
    new = WMPoolTrigger(_pool(full, path).poolPath, _trigger(full, trigger).triggerName, plan_of(full).ns)
    if new in (full.poolTriggers or ()):
        raise AlreadyExistsException(f"Pool {shown(new.pool)} has trigger {shown(new.trigger)} already")
    return msgspec.structs.replace(full, poolTriggers=[*(full.poolTriggers or ()), new])


def without_trigger_in_pool(full: WMFullResourcePlan, trigger: str | None, path: str | None) -> WMFullResourcePlan:
    """A missing one is ignored. Raises NoSuchObjectException, MetaException."""
    old = WMPoolTrigger(_pool(full, path).poolPath, _trigger(full, trigger).triggerName, plan_of(full).ns)
    return msgspec.structs.replace(full, poolTriggers=[one for one in full.poolTriggers or () if one != old])


def _share_problems(pools: Sequence[WMPool]) -> Iterator[str]:
    paths = {pool.poolPath or "" for pool in pools}
    shares: dict[str, float] = {}
    for pool in pools:
        parent = _parent(pool.poolPath or "")
        shares[parent] = shares.get(parent, 0.0) + (pool.allocFraction or 0.0)
    if not pools:
        yield "Resource plan has no pools"
    for parent, share in shares.items():
        if not parent and abs(share - 1.0) > _SHARE_TOLERANCE:
            yield f"Sum of root children pools' alloc fraction should be 1.0 got: {share}"
        elif parent and parent not in paths:
            yield f"Pool does not exists but has children: {shown(parent)}"
        elif parent and share > 1.0 + _SHARE_TOLERANCE:
            yield f"Sum of children pools' alloc fraction should be less than 1 got: {share} for pool: {shown(parent)}"


def _renamed(full: WMFullResourcePlan) -> WMFullResourcePlan:
    """All parts under the plan's own name and namespace."""
    return msgspec.structs.replace(
        full,
        pools=[_own(full, one) for one in full.pools or ()],
        mappings=[_own(full, one) for one in full.mappings or ()],
        triggers=[_own(full, one) for one in full.triggers or ()],
        poolTriggers=[msgspec.structs.replace(one, ns=plan_of(full).ns) for one in full.poolTriggers or ()],
    )


def _own(full: WMFullResourcePlan, part: AnyStruct, **fields: object) -> AnyStruct:
    plan = plan_of(full)
    return msgspec.structs.replace(part, resourcePlanName=plan.name, ns=plan.ns, **fields)


def _moved(full: WMFullResourcePlan, old: str, new: str) -> WMFullResourcePlan:
    def moved(path: str | None) -> str | None:
        if path is None or not (path == old or _is_below(path, old)):
            return path
        return new + path[len(old) :]

    plan = plan_of(full)
    return msgspec.structs.replace(
        full,
        plan=msgspec.structs.replace(plan, defaultPoolPath=moved(plan.defaultPoolPath)),
        pools=[msgspec.structs.replace(one, poolPath=moved(one.poolPath)) for one in full.pools or ()],
        mappings=[msgspec.structs.replace(one, poolPath=moved(one.poolPath)) for one in full.mappings or ()],
        poolTriggers=[msgspec.structs.replace(one, pool=moved(one.pool)) for one in full.poolTriggers or ()],
    )


def _new_path(full: WMFullResourcePlan, path: str | None) -> str:
    new = normalize(required(path, "path of the pool"))
    if not all(new.split(".")):
        raise InvalidObjectException(f"{shown(new)} is not the path of a pool")
    paths = {pool.poolPath for pool in full.pools or ()}
    if new in paths:
        raise AlreadyExistsException(f"Pool already exists: {shown(new)}")
    if _parent(new) and _parent(new) not in paths:
        raise NoSuchObjectException("Pool path is invalid, the parent does not exist")
    return new


def _pool(full: WMFullResourcePlan, path: str | None) -> WMPool:
    key = normalize(required(path, "path of the pool"))
    return _first(full.pools, lambda pool: pool.poolPath == key, f"Cannot find pool: {shown(key)}")


def _trigger(full: WMFullResourcePlan, name: str | None) -> WMTrigger:
    key = normalize(required(name, "name of the trigger"))
    return _first(full.triggers, lambda one: one.triggerName == key, f"Cannot find trigger with name: {shown(key)}")


def _first(parts: Iterable[AnyStruct] | None, is_it: Callable[[AnyStruct], bool], complaint: str) -> AnyStruct:
    for part in parts or ():
        if is_it(part):
            return part
    raise NoSuchObjectException(complaint)


def _replaced(parts: Iterable[AnyStruct] | None, old: AnyStruct, *new: AnyStruct) -> list[AnyStruct]:
    return [one for part in parts or () for one in (new if part is old else (part,))]


def _find_mapping(full: WMFullResourcePlan, kind: str, name: str) -> WMMapping | None:
    return next((one for one in full.mappings or () if (one.entityType, one.entityName) == (kind, name)), None)


def _entity(mapping: WMMapping) -> tuple[str, str]:
    kind = required(mapping.entityType, "type of the entity").strip().upper()
    name = required(mapping.entityName, "name of the entity")
    if kind not in _ENTITY_TYPES:
        raise InvalidObjectException(f"{shown(kind)} is not a type of entity: USER, GROUP or APPLICATION")
    if not name:
        raise InvalidObjectException("the name of an entity must not be empty")
    return kind, name


def _is_policy(policy: str | None) -> bool:
    return policy is None or policy.strip().lower() in _POLICIES


def _check_policy(policy: str | None) -> None:
    if not _is_policy(policy):
        raise InvalidObjectException(f"Invalid scheduling policy {shown(policy)}")


def _check_positive(name: str, number: int | None) -> None:
    if number is not None and number < 1:
        raise InvalidObjectException(f"{name} should be positive.")


def _parent(path: str) -> str:
    return path.rpartition(".")[0]


def _is_below(path: str, ancestor: str) -> bool:
    return path.startswith(f"{ancestor}.")


_Value = TypeVar("_Value")


def _given_or(given: _Value | None, otherwise: _Value) -> _Value:
    return otherwise if given is None else given
