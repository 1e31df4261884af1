"""Resource plans of workload management, as a client of Hive 4 calls them."""

from typing import Any

import pytest

from hms_gateway.rpc.structs import (
    AlreadyExistsException,
    InvalidObjectException,
    InvalidOperationException,
    NoSuchObjectException,
    WMAlterPoolRequest,
    WMAlterResourcePlanRequest,
    WMAlterTriggerRequest,
    WMCreateOrDropTriggerToPoolMappingRequest,
    WMCreateOrUpdateMappingRequest,
    WMCreatePoolRequest,
    WMCreateResourcePlanRequest,
    WMCreateTriggerRequest,
    WMDropMappingRequest,
    WMDropPoolRequest,
    WMDropResourcePlanRequest,
    WMDropTriggerRequest,
    WMFullResourcePlan,
    WMGetActiveResourcePlanRequest,
    WMGetAllResourcePlanRequest,
    WMGetResourcePlanRequest,
    WMGetTriggersForResourePlanRequest,
    WMMapping,
    WMNullablePool,
    WMNullableResourcePlan,
    WMPool,
    WMPoolTrigger,
    WMResourcePlan,
    WMResourcePlanStatus,
    WMTrigger,
    WMValidateResourcePlanRequest,
)
from tests.handlers.peers import Peer

DISABLED, ENABLED, ACTIVE = WMResourcePlanStatus.DISABLED, WMResourcePlanStatus.ENABLED, WMResourcePlanStatus.ACTIVE


class Plans:
    """The calls in short."""

    def __init__(self, peer: Peer) -> None:
        self.peer = peer

    def create(self, name: str, copied: str | None = None, **fields: Any) -> None:
        self.peer.ask("create_resource_plan", WMCreateResourcePlanRequest(WMResourcePlan(name, **fields), copied))

    def get(self, name: str) -> WMFullResourcePlan:
        found: WMFullResourcePlan = self.peer.ask("get_resource_plan", WMGetResourcePlanRequest(name)).resourcePlan
        return found

    def alter(self, plan: str | None, /, *switches: bool, **changes: Any) -> WMFullResourcePlan | None:
        request = WMAlterResourcePlanRequest(plan, WMNullableResourcePlan(**changes), *switches)
        found: WMFullResourcePlan | None = self.peer.ask("alter_resource_plan", request).fullResourcePlan
        return found

    def pool(self, path: str, share: float = 0.5, queries: int = 2, plan: str = "day", **fields: Any) -> None:
        self.peer.ask("create_wm_pool", WMCreatePoolRequest(WMPool(plan, path, share, queries, **fields)))

    def alter_pool(self, path: str, new_path: str, **fields: Any) -> None:
        self.peer.ask("alter_wm_pool", WMAlterPoolRequest(WMNullablePool("day", new_path, **fields), path))

    def trigger(self, name: str, expression: str = "ELAPSED_TIME > 10", action: str = "KILL") -> None:
        self.peer.ask("create_wm_trigger", WMCreateTriggerRequest(WMTrigger("day", name, expression, action)))

    def map(self, kind: str, name: str, pool: str | None, update: bool = False) -> None:
        request = WMCreateOrUpdateMappingRequest(WMMapping("day", kind, name, pool, 1), update)
        self.peer.ask("create_or_update_wm_mapping", request)

    def trigger_in_pool(self, trigger: str, pool: str, drop: bool = False) -> None:
        request = WMCreateOrDropTriggerToPoolMappingRequest("day", trigger, pool, drop)
        self.peer.ask("create_or_drop_wm_trigger_to_pool_mapping", request)

    def active(self) -> str | None:
        found = self.peer.ask("get_active_resource_plan", WMGetActiveResourcePlanRequest()).resourcePlan
        return None if found is None else str(found.plan.name)

    def statuses(self) -> dict[str, int]:
        found = self.peer.ask("get_all_resource_plans", WMGetAllResourcePlanRequest()).resourcePlans
        return {plan.name: plan.status for plan in found}


@pytest.fixture
def plans(newer: Peer) -> Plans:
    plans = Plans(newer)
    plans.create("Day", queryParallelism=6)
    return plans


def test_a_new_plan_is_disabled_and_has_one_pool(plans: Plans) -> None:
    assert plans.get("DAY") == WMFullResourcePlan(
        WMResourcePlan("day", DISABLED, 6, "default", "default"),
        [WMPool("day", "default", 1.0, 4, None, "default")],
        [],
        [],
        [],
    )
    with pytest.raises(AlreadyExistsException):
        plans.create("day")
    for refused in ({"name": ""}, {"name": "x", "queryParallelism": 0}):
        with pytest.raises(InvalidObjectException):
            plans.create(**refused)
    with pytest.raises(NoSuchObjectException):
        plans.get("night")


def test_a_plan_is_copied_with_all_that_is_in_it(plans: Plans) -> None:
    plans.pool("etl")
    plans.trigger("slow")
    plans.trigger_in_pool("slow", "etl")
    plans.map("USER", "ann", "etl")
    plans.create("night", "day")
    copied = plans.get("night")
    assert {pool.resourcePlanName for pool in copied.pools or ()} == {"night"}
    assert (len(copied.pools or ()), len(copied.mappings or ()), len(copied.triggers or ())) == (2, 1, 1)
    assert copied.poolTriggers == [WMPoolTrigger("etl", "slow", "default")]
    with pytest.raises(InvalidObjectException):
        plans.create("x", "nowhere")


def test_plans_of_namespaces_do_not_meet(plans: Plans) -> None:
    plans.create("day", ns="other")
    assert plans.statuses() == {"day": DISABLED}
    other = plans.peer.ask("get_all_resource_plans", WMGetAllResourcePlanRequest("OTHER")).resourcePlans
    assert [(plan.name, plan.ns) for plan in other] == [("day", "other")]


def test_one_plan_is_active(plans: Plans) -> None:
    assert plans.active() is None
    with pytest.raises(InvalidOperationException, match="is disabled and should be enabled before activation"):
        plans.alter("day", status=ACTIVE)
    assert plans.alter("day", status=ENABLED) is None
    activated = plans.alter("day", status=ACTIVE)
    assert activated is not None
    assert activated == plans.get("day")
    plans.create("night")
    assert plans.alter("night", True, status=ACTIVE) is not None
    assert plans.active() == "night"
    assert plans.statuses() == {"day": ENABLED, "night": ACTIVE}
    with pytest.raises(InvalidOperationException, match="Resource plan night is active"):
        plans.alter("night", status=DISABLED)
    with pytest.raises(InvalidOperationException, match="Cannot drop an active resource plan"):
        plans.peer.ask("drop_resource_plan", WMDropResourcePlanRequest("night"))
    assert plans.alter(None, False, True, status=DISABLED) is None
    assert plans.active() is None
    with pytest.raises(NoSuchObjectException):
        plans.alter(None, status=DISABLED)


def test_only_a_disabled_plan_is_edited(plans: Plans) -> None:
    plans.alter("day", status=ENABLED)
    with pytest.raises(InvalidObjectException, match="must be disabled to edit it"):
        plans.pool("etl")
    with pytest.raises(InvalidOperationException, match="must be disabled to edit it"):
        plans.alter("day", name="x")
    with pytest.raises(InvalidOperationException, match="must be disabled to edit it"):
        plans.peer.ask("drop_wm_pool", WMDropPoolRequest("day", "default"))


def test_a_plan_is_renamed_and_changed(plans: Plans) -> None:
    plans.pool("etl")
    plans.alter("day", name="Night", isSetQueryParallelism=True, defaultPoolPath="etl")
    assert plans.get("night").plan == WMResourcePlan("night", DISABLED, None, "etl", "default")
    plans.create("day")
    with pytest.raises(InvalidOperationException, match="already exists"):
        plans.alter("day", name="night")
    with pytest.raises(NoSuchObjectException):
        plans.alter("day", defaultPoolPath="nowhere")


def test_a_plan_takes_the_place_of_another(plans: Plans) -> None:
    plans.create("new", "day")
    plans.alter("day", True, status=ACTIVE)
    replaced = plans.alter("new", False, False, True, status=ACTIVE)
    assert replaced is not None
    assert replaced.plan == WMResourcePlan("day", ACTIVE, 6, "default", "default")
    assert plans.statuses() == {"day": ACTIVE, "day_old_0": DISABLED}
    plans.create("newer")
    plans.alter("newer", False, False, True, name="day_old_0")
    assert plans.statuses() == {"day": ACTIVE, "day_old_0": DISABLED, "day_old_0_old_0": DISABLED}
    for name, changes in ((None, {"name": "day"}), ("day", {"name": "day"}), ("day", {})):
        with pytest.raises(InvalidOperationException):
            plans.alter(name, False, False, True, **changes)


def test_an_invalid_plan_is_not_enabled(plans: Plans) -> None:
    plans.pool("etl", share=0.25)
    answer = plans.peer.ask("validate_resource_plan", WMValidateResourcePlanRequest("day"))
    assert answer.errors == ["Sum of root children pools' alloc fraction should be 1.0 got: 1.25"]
    assert answer.warnings == []
    with pytest.raises(InvalidOperationException, match="ResourcePlan: day is invalid"):
        plans.alter("day", status=ENABLED)
    plans.alter_pool("default", "default", allocFraction=0.75, queryParallelism=3)
    answer = plans.peer.ask("validate_resource_plan", WMValidateResourcePlanRequest("day"))
    assert answer.errors == []
    assert answer.warnings == ["Sum of all pools' query parallelism: 5 is less than resource plan query parallelism: 6"]
    plans.alter("day", status=ENABLED)


def test_pools_form_a_tree_that_moves_as_one(plans: Plans) -> None:
    plans.pool("etl", schedulingPolicy="fifo")
    plans.pool("etl.nightly")
    plans.trigger("slow")
    plans.trigger_in_pool("slow", "etl.nightly")
    plans.map("GROUP", "staff", "etl.nightly")
    plans.alter_pool("ETL", "batch")
    full = plans.get("day")
    assert [pool.poolPath for pool in full.pools or ()] == ["default", "batch", "batch.nightly"]
    assert [mapping.poolPath for mapping in full.mappings or ()] == ["batch.nightly"]
    assert full.poolTriggers == [WMPoolTrigger("batch.nightly", "slow", "default")]
    for path, error in (
        ("batch", AlreadyExistsException),
        ("nowhere.x", NoSuchObjectException),
        ("a..b", InvalidObjectException),
    ):
        with pytest.raises(error):
            plans.pool(path)
    with pytest.raises(InvalidObjectException, match="Invalid scheduling policy"):
        plans.pool("x", schedulingPolicy="lifo")
    with pytest.raises(InvalidObjectException):
        plans.alter_pool("batch", "batch.nightly.x")


def test_which_pools_can_be_dropped(plans: Plans) -> None:
    plans.pool("etl")
    plans.pool("etl.nightly")
    plans.map("USER", "ann", "etl.nightly")
    for path in ("default", "etl", "etl.nightly"):
        with pytest.raises(InvalidOperationException):
            plans.peer.ask("drop_wm_pool", WMDropPoolRequest("day", path))
    plans.peer.ask("drop_wm_mapping", WMDropMappingRequest(WMMapping("day", "user", "ann")))
    for path in ("etl.nightly", "etl"):
        plans.peer.ask("drop_wm_pool", WMDropPoolRequest("day", path))
    assert [pool.poolPath for pool in plans.get("day").pools or ()] == ["default"]
    with pytest.raises(NoSuchObjectException):
        plans.peer.ask("drop_wm_pool", WMDropPoolRequest("day", "etl"))


def test_triggers(plans: Plans) -> None:
    plans.trigger("Slow")
    with pytest.raises(AlreadyExistsException):
        plans.trigger("slow")
    changed = WMTrigger("day", "slow", None, "MOVE TO etl", True)
    plans.peer.ask("alter_wm_trigger", WMAlterTriggerRequest(changed))
    found = plans.peer.ask("get_triggers_for_resourceplan", WMGetTriggersForResourePlanRequest("day")).triggers
    assert found == [WMTrigger("day", "slow", "ELAPSED_TIME > 10", "MOVE TO etl", True, "default")]
    plans.trigger_in_pool("slow", "default")
    with pytest.raises(AlreadyExistsException):
        plans.trigger_in_pool("slow", "default")
    plans.trigger_in_pool("slow", "default", drop=True)
    assert plans.get("day").poolTriggers == []
    plans.trigger_in_pool("slow", "default")
    plans.peer.ask("drop_wm_trigger", WMDropTriggerRequest("day", "slow"))
    assert (plans.get("day").triggers, plans.get("day").poolTriggers) == ([], [])
    for method, request in (
        ("drop_wm_trigger", WMDropTriggerRequest("day", "slow")),
        ("alter_wm_trigger", WMAlterTriggerRequest(changed)),
        ("get_triggers_for_resourceplan", WMGetTriggersForResourePlanRequest("x")),
    ):
        with pytest.raises(NoSuchObjectException):
            plans.peer.ask(method, request)


def test_mappings(plans: Plans) -> None:
    plans.map("user", "ann", None)
    with pytest.raises(AlreadyExistsException):
        plans.map("USER", "ann", "default")
    plans.map("USER", "ann", "default", update=True)
    assert plans.get("day").mappings == [WMMapping("day", "USER", "ann", "default", 1, "default")]
    for kind, name, pool, error in (
        ("ROBOT", "x", None, InvalidObjectException),
        ("USER", "", None, InvalidObjectException),
        ("USER", "x", "nowhere", NoSuchObjectException),
    ):
        with pytest.raises(error):
            plans.map(kind, name, pool)
    with pytest.raises(NoSuchObjectException):
        plans.map("GROUP", "staff", "default", update=True)
    with pytest.raises(NoSuchObjectException):
        plans.peer.ask("drop_wm_mapping", WMDropMappingRequest(WMMapping("day", "GROUP", "staff")))


def test_a_plan_is_dropped(plans: Plans) -> None:
    plans.peer.ask("drop_resource_plan", WMDropResourcePlanRequest("DAY"))
    assert plans.statuses() == {}
    with pytest.raises(NoSuchObjectException):
        plans.peer.ask("drop_resource_plan", WMDropResourcePlanRequest("day"))
