"""`hms-gateway pipeline crawl`."""

from typing import TYPE_CHECKING

import click

from hms_gateway.cli.pipeline.job_options import Job, with_job_options

if TYPE_CHECKING:
    from hms_gateway.pipeline.crawl.job import CrawlResult

_EXAMPLES = """\b
Examples:
  hms-gateway pipeline crawl -k /data/lake
  hms-gateway pipeline crawl -k /data/lake --dry-run --json
  hms-gateway pipeline crawl -k s3://lake/sales.db --only 'sales.o*' --prune
"""
_SHOWN = 20


@click.command("crawl", short_help="Register the tables and partitions of a tree.", epilog=_EXAMPLES)
@click.argument("location", help="Folder or URL below which to look.")
@click.option("--database", default="default", metavar="NAME", help="For new tables that lie in no folder NAME.db.")
@click.option(
    "--table", default="", show_default=False, metavar="NAME", help="Name of the table, where LOCATION is one."
)
@click.option("--prune", is_flag=True, help="Drop partitions whose directory is gone; above 5 % of a table with --yes.")
@with_job_options
def command(job: Job, location: str, database: str, table: str, prune: bool) -> None:
    """Find tables and partitions below LOCATION, register what is new, report what is gone.

    A directory with partitions (key=value) or with nothing but files is a table; columns of new tables come from the
    footers of Parquet and ORC files. No file is changed or deleted.
    """
    from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl

    job.run(crawl, CrawlArguments(location=location, database=database, table=table, prune=prune), show)


def show(result: "CrawlResult") -> None:
    counts = result.counts
    done = "to register" if result.status == "planned" else "registered"
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    print(f"directories with data  {counts['directories']:,}")
    print(f"tables {done}      {counts['tables']:,}  {' '.join(result.new_tables[:_SHOWN])}".rstrip())
    print(f"partitions {done}  {counts['partitions']:,}")
    print(f"partitions gone        {counts['gone']:,} ({counts['dropped']:,} dropped)")
    for table in result.unpruned:
        print(f"not dropped: more than 5 % of {table} are gone; look at them, then give --yes")
    for refusal in result.refusals[:_SHOWN]:
        print(f"refused: {refusal['item']} {refusal['reason']}")
    if result.refused:
        print(f"refused                {result.refused:,}, all in {result.folder}/result/refused.parquet")
