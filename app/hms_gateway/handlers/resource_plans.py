"""Methods on the resource plans of workload management (3.1 and later)."""

from hms_gateway.catalog.registry.resource_plan_rules import (
    with_altered_pool,
    with_altered_trigger,
    with_mapping,
    with_pool,
    with_trigger,
    with_trigger_in_pool,
    without_mapping,
    without_pool,
    without_trigger,
    without_trigger_in_pool,
)
from hms_gateway.catalog.registry.resource_plans import ResourcePlanService
from hms_gateway.metastore.checks.errors import required
from hms_gateway.rpc.call import Call
from hms_gateway.structs import (
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
    WMGetActiveResourcePlanRequest,
    WMGetActiveResourcePlanResponse,
    WMGetAllResourcePlanRequest,
    WMGetAllResourcePlanResponse,
    WMGetResourcePlanRequest,
    WMGetResourcePlanResponse,
    WMGetTriggersForResourePlanRequest,
    WMGetTriggersForResourePlanResponse,
    WMValidateResourcePlanRequest,
    WMValidateResourcePlanResponse,
)


class ResourcePlans:
    """A plan that is not disabled cannot be edited: InvalidOperationException, or what the method declares instead."""

    def __init__(self, plans: ResourcePlanService) -> None:
        self._plans = plans

    def create_resource_plan(self, call: Call, request: WMCreateResourcePlanRequest) -> WMCreateResourcePlanResponse:
        given = required(request, "request")
        self._plans.create(given.resourcePlan, given.copyFrom)
        return WMCreateResourcePlanResponse()

    def get_resource_plan(self, call: Call, request: WMGetResourcePlanRequest) -> WMGetResourcePlanResponse:
        given = required(request, "request")
        return WMGetResourcePlanResponse(self._plans.get(given.resourcePlanName, given.ns))

    def get_active_resource_plan(
        self, call: Call, request: WMGetActiveResourcePlanRequest
    ) -> WMGetActiveResourcePlanResponse:
        return WMGetActiveResourcePlanResponse(self._plans.active(required(request, "request").ns))

    def get_all_resource_plans(self, call: Call, request: WMGetAllResourcePlanRequest) -> WMGetAllResourcePlanResponse:
        return WMGetAllResourcePlanResponse(self._plans.all(required(request, "request").ns))

    def alter_resource_plan(self, call: Call, request: WMAlterResourcePlanRequest) -> WMAlterResourcePlanResponse:
        given = required(request, "request")
        if given.isReplace:
            full = self._plans.replace(given.resourcePlanName, given.ns, given.resourcePlan)
        else:
            full = self._plans.alter(
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
        given = required(request, "request")
        return WMValidateResourcePlanResponse(*self._plans.problems(given.resourcePlanName, given.ns))

    def drop_resource_plan(self, call: Call, request: WMDropResourcePlanRequest) -> WMDropResourcePlanResponse:
        given = required(request, "request")
        self._plans.drop(given.resourcePlanName, given.ns)
        return WMDropResourcePlanResponse()

    def create_wm_trigger(self, call: Call, request: WMCreateTriggerRequest) -> WMCreateTriggerResponse:
        trigger = required(required(request, "request").trigger, "trigger")
        self._plans.edit(
            trigger.resourcePlanName, trigger.ns, lambda plan: with_trigger(plan, trigger), refuses_as_object=True
        )
        return WMCreateTriggerResponse()

    def alter_wm_trigger(self, call: Call, request: WMAlterTriggerRequest) -> WMAlterTriggerResponse:
        trigger = required(required(request, "request").trigger, "trigger")
        self._plans.edit(
            trigger.resourcePlanName,
            trigger.ns,
            lambda plan: with_altered_trigger(plan, trigger),
            refuses_as_object=True,
        )
        return WMAlterTriggerResponse()

    def drop_wm_trigger(self, call: Call, request: WMDropTriggerRequest) -> WMDropTriggerResponse:
        given = required(request, "request")
        self._plans.edit(given.resourcePlanName, given.ns, lambda plan: without_trigger(plan, given.triggerName))
        return WMDropTriggerResponse()

    def get_triggers_for_resourceplan(
        self, call: Call, request: WMGetTriggersForResourePlanRequest
    ) -> WMGetTriggersForResourePlanResponse:
        given = required(request, "request")
        return WMGetTriggersForResourePlanResponse(self._plans.get(given.resourcePlanName, given.ns).triggers)

    def create_wm_pool(self, call: Call, request: WMCreatePoolRequest) -> WMCreatePoolResponse:
        pool = required(required(request, "request").pool, "pool")
        self._plans.edit(pool.resourcePlanName, pool.ns, lambda plan: with_pool(plan, pool), refuses_as_object=True)
        return WMCreatePoolResponse()

    def alter_wm_pool(self, call: Call, request: WMAlterPoolRequest) -> WMAlterPoolResponse:
        given = required(request, "request")
        pool = required(given.pool, "pool")
        self._plans.edit(
            pool.resourcePlanName,
            pool.ns,
            lambda plan: with_altered_pool(plan, given.poolPath, pool),
            refuses_as_object=True,
        )
        return WMAlterPoolResponse()

    def drop_wm_pool(self, call: Call, request: WMDropPoolRequest) -> WMDropPoolResponse:
        given = required(request, "request")
        self._plans.edit(given.resourcePlanName, given.ns, lambda plan: without_pool(plan, given.poolPath))
        return WMDropPoolResponse()

    def create_or_update_wm_mapping(
        self, call: Call, request: WMCreateOrUpdateMappingRequest
    ) -> WMCreateOrUpdateMappingResponse:
        given = required(request, "request")
        mapping = required(given.mapping, "mapping")
        self._plans.edit(
            mapping.resourcePlanName,
            mapping.ns,
            lambda plan: with_mapping(plan, mapping, replaces=bool(given.update)),
            refuses_as_object=True,
        )
        return WMCreateOrUpdateMappingResponse()

    def drop_wm_mapping(self, call: Call, request: WMDropMappingRequest) -> WMDropMappingResponse:
        mapping = required(required(request, "request").mapping, "mapping")
        self._plans.edit(mapping.resourcePlanName, mapping.ns, lambda plan: without_mapping(plan, mapping))
        return WMDropMappingResponse()

    def create_or_drop_wm_trigger_to_pool_mapping(
        self, call: Call, request: WMCreateOrDropTriggerToPoolMappingRequest
    ) -> WMCreateOrDropTriggerToPoolMappingResponse:
        given = required(request, "request")
        change = without_trigger_in_pool if given.drop else with_trigger_in_pool
        self._plans.edit(
            given.resourcePlanName,
            given.ns,
            lambda plan: change(plan, given.triggerName, given.poolPath),
            refuses_as_object=True,
        )
        return WMCreateOrDropTriggerToPoolMappingResponse()
