"""The public names of the pipeline, which `__init__.py` loads when they are used."""

from hms_gateway.pipeline.audit.apply_job import ApplyArguments as ApplyArguments
from hms_gateway.pipeline.audit.apply_job import apply as _apply
from hms_gateway.pipeline.audit.job import AuditArguments as AuditArguments
from hms_gateway.pipeline.audit.job import audit as _audit
from hms_gateway.pipeline.compact.job import CleanArguments as CleanArguments
from hms_gateway.pipeline.compact.job import CompactArguments as CompactArguments
from hms_gateway.pipeline.compact.job import clean as _clean
from hms_gateway.pipeline.compact.job import compact as _compact
from hms_gateway.pipeline.connection import Connection as Connection
from hms_gateway.pipeline.crawl.job import CrawlArguments as CrawlArguments
from hms_gateway.pipeline.crawl.job import crawl as _crawl
from hms_gateway.pipeline.errors import JobFailed as JobFailed
from hms_gateway.pipeline.jobs.options import JobOptions as JobOptions
from hms_gateway.pipeline.jobs.options import JobResult as JobResult
from hms_gateway.pipeline.migrate.job import MigrateArguments as MigrateArguments
from hms_gateway.pipeline.migrate.job import migrate as _migrate
from hms_gateway.pipeline.snapshot.diff import DiffArguments as DiffArguments
from hms_gateway.pipeline.snapshot.diff import diff as _diff
from hms_gateway.pipeline.snapshot.job import SnapshotArguments as SnapshotArguments
from hms_gateway.pipeline.snapshot.job import snapshot as _snapshot
from hms_gateway.pipeline.source.data_source import HmsDataSource as HmsDataSource
from hms_gateway.pipeline.source.data_source import register as register
from hms_gateway.pipeline.stats.job import StatsArguments as StatsArguments
from hms_gateway.pipeline.stats.job import stats as _stats

run_apply = _apply
run_audit = _audit
run_clean = _clean
run_compact = _compact
run_crawl = _crawl
run_diff = _diff
run_migrate = _migrate
run_snapshot = _snapshot
run_stats = _stats
