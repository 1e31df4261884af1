"""Resource plans as rows, each plan one."""

from sqlalchemy import delete, insert, select, update

from hms_gateway.metastore.ports.registry import PlanId, StoredPlan
from hms_gateway.storage.schema.catalog import RESOURCE_PLANS
from hms_gateway.storage.sql.fragments import decode_struct, encode_struct, text_hash
from hms_gateway.storage.sql.repository import Repository
from hms_gateway.structs import WMFullResourcePlan


class ResourcePlanRepository(Repository):
    """`registry_ports.ResourcePlanWrites`."""

    def find(self, namespace: str, name: str) -> StoredPlan | None:
        statement = select(RESOURCE_PLANS).where(
            RESOURCE_PLANS.c.namespace_hash == text_hash(namespace), RESOURCE_PLANS.c.name_hash == text_hash(name)
        )
        row = self._connection.execute(statement).first()
        return None if row is None else StoredPlan(PlanId(row.plan_id), decode_struct(WMFullResourcePlan, row.content))

    def all(self, namespace: str) -> list[StoredPlan]:
        statement = select(RESOURCE_PLANS).where(RESOURCE_PLANS.c.namespace_hash == text_hash(namespace))
        found = [
            StoredPlan(PlanId(row.plan_id), decode_struct(WMFullResourcePlan, row.content))
            for row in self._connection.execute(statement)
        ]
        return sorted(found, key=lambda stored: _name(stored.plan))

    def insert(self, namespace: str, plan: WMFullResourcePlan) -> bool:
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


def _name(plan: WMFullResourcePlan) -> str:
    return (plan.plan.name if plan.plan else None) or ""
