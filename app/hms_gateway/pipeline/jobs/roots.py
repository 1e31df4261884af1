"""Below which locations a job touches files: the roots of the gateway, and what its user names (`--root`).

A gateway's roots hold the directories of all databases that it manages. The location of a table, partition or other
database may have been recorded by any user, so that it is no reason to act there with the rights of who runs the job.
"""

from typing import Final

import msgspec

from hms_gateway.pipeline.errors import OptionError
from hms_gateway.pipeline.jobs.calling import PatientClient
from hms_gateway.pipeline.jobs.failures import UsageRefused
from hms_gateway.pipeline.jobs.options import JobOptions
from hms_gateway.pipeline.storage import Storage, absolute, place_of

# What a gateway answers with all of its roots, and other metastores with their warehouse.
_ROOTS: Final = "hive.metastore.file.roots"
_WAREHOUSE: Final = "hive.metastore.warehouse.dir"


def storage_of(client: PatientClient, options: JobOptions, *named: str) -> Storage:
    """Raises UsageRefused for a place that is not a location, and what PatientClient raises."""
    given = [absolute(location) for location in (*options.roots, *named)]
    for location in given:
        try:
            place_of(location)
        except OptionError as error:
            raise UsageRefused(f"location {location} cannot be used: {error}", "give a folder or URL") from error
    text = client.call("get_config_value", _ROOTS, "")
    found = msgspec.json.decode(text, type=list[str]) if text else [client.call("get_config_value", _WAREHOUSE, "")]
    return Storage(options.storage, (*filter(None, found), *given))
