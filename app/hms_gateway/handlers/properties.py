"""Methods on properties of the service, and its id."""

from hms_gateway.metastore.checks.errors import required
from hms_gateway.metastore.registry.properties import PropertyService
from hms_gateway.rpc.call import Call
from hms_gateway.structs import PropertyGetRequest, PropertyGetResponse, PropertySetRequest


class Properties:
    def __init__(self, properties: PropertyService) -> None:
        self._properties = properties

    def get_metastore_db_uuid(self, call: Call) -> str:
        return self._properties.metastore_uuid()

    def get_properties(self, call: Call, req: PropertyGetRequest) -> PropertyGetResponse:
        request = required(req, "req")
        return PropertyGetResponse(
            self._properties.maps(request.nameSpace, request.mapPrefix, request.mapPredicate, request.mapSelection)
        )

    def set_properties(self, call: Call, req: PropertySetRequest) -> bool:
        request = required(req, "req")
        self._properties.put(request.nameSpace, request.propertyMap)
        return True
