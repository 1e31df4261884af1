"""`hms-gateway pipeline crawl`."""

from typing import TYPE_CHECKING, Any

import click

from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of

if TYPE_CHECKING:
    from hms_gateway.pipeline.crawl.job import CrawlResult

_EXAMPLES = """\b
Examples:
  hms-gateway pipeline crawl -k /data/lake
  hms-gateway pipeline crawl -k /data/lake --dry-run --json
  hms-gateway pipeline crawl -k /data/lake --databases-from-folders
  hms-gateway pipeline crawl -k s3://lake/sales.db --only 'sales.o*' --prune
"""
_SHOWN = 20


@command_of("crawl", epilog=_EXAMPLES)
@click.argument("location", help="Folder or URL below which to look.")
@click.option(
    "--database", default="default", metavar="NAME", help="Database of new tables that lie in no folder NAME.db."
)
@click.option(
    "--databases-from-folders",
    is_flag=True,
    help="Name the database of a new table after its parent folder: sales/visits.",
)
@click.option(
    "--table",
    default="",
    show_default=False,
    metavar="NAME",
    help="Name of the table, if LOCATION is the directory of one.",
)
@click.option("--prune", is_flag=True, help="Drop partitions whose directory is gone; above 5 % of a table with --yes.")
@with_job_options
def command(job: JobCommand, **given: Any) -> None:
    """Register the tables and partitions below LOCATION, and report missing ones.

    A directory with partitions (key=value) or with files only is a table; columns of new tables come from the footers
    of Parquet and ORC files. Changes and deletes no file.
    """
    from hms_gateway.pipeline.crawl.job import CrawlArguments, crawl

    job.run(crawl, CrawlArguments(**given), show)


def show(result: "CrawlResult") -> None:
    counts = result.counts
    done = "to register" if result.status == "planned" else "registered"
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    print(f"directories with data  {counts['directories']:,}")
    print(f"tables {done}      {counts['tables']:,}  {' '.join(result.new_tables[:_SHOWN])}".rstrip())
    for renamed in result.renamed[:_SHOWN]:
        print(f"named: {renamed['item']} as {renamed['name']}, since a name has letters, digits and _ only")
    print(f"partitions {done}  {counts['partitions']:,}")
    print(f"partitions gone        {counts['gone']:,} ({counts['dropped']:,} dropped)")
    for table in result.unpruned:
        print(f"not dropped: more than 5 % of {table} are gone; look at them, then give --yes")
    for refusal in result.refusals[:_SHOWN]:
        print(f"refused: {refusal['item']} {refusal['reason']}")
    if result.refused:
        print(f"refused                {result.refused:,}, all in {result.folder}/result/refused.parquet")
    if result.status == "planned":
        print(f"nothing is written; --resume {result.run} does it")
