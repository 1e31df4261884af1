"""Methods on types (semantics §2.4)."""

from hms_gateway.metastore.registry.types import TypeService
from hms_gateway.rpc.call import Call
from hms_gateway.structs import MetaException, Type


class Types:
    def __init__(self, types: TypeService) -> None:
        self._types = types

    def get_type(self, call: Call, name: str) -> Type:
        return self._types.get(name)

    def create_type(self, call: Call, type: Type) -> bool:
        self._types.create(type)
        return True

    def drop_type(self, call: Call, type: str) -> bool:
        """True whether it was there or not."""
        self._types.drop(type)
        return True

    def get_type_all(self, call: Call, name: str) -> dict[str, Type]:
        raise MetaException("Not yet implemented")
