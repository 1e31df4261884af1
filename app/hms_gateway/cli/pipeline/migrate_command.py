"""`hms-gateway pipeline migrate`: the catalog of another metastore, brought into this one."""

import os
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

import click

from hms_gateway.cli.calls.target_options import FILE
from hms_gateway.cli.pipeline.job_options import JobCommand, with_job_options
from hms_gateway.cli.terminal.groups import command as command_of
from hms_gateway.cli.terminal.output import fail

if TYPE_CHECKING:
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.migrate.job import MigrateResult

PASSWORD_VARIABLE: Final = "HMS_GATEWAY_SOURCE_PASSWORD"
_EXAMPLES = """\b
Examples:
  hms-gateway pipeline migrate --source thrift://old-metastore:9083 --dry-run
  hms-gateway pipeline migrate --source thrift://old-metastore:9083
  hms-gateway pipeline migrate --source thrift://old-metastore:9083 --resume RUN
  hms-gateway pipeline migrate --source https://old:30443/gateway/default/hmshttpthrift/api/hms --source-user hive
"""
_KINDS: Final = ("databases", "partitions", "statistics", "constraints", "functions", "roles", "grants")


@command_of("migrate", epilog=_EXAMPLES)
@click.option("--source", required=True, metavar="URL", help="Metastore to read (thrift://HOST:PORT or https://…).")
@click.option("--source-user", default="", show_default=False, metavar="NAME", help="User to read as.")
@click.option(
    "--source-password-file",
    type=FILE,
    metavar="FILE",
    help=f"File with the source's password in its first line; replaces {PASSWORD_VARIABLE}.",
)
@click.option("--source-negotiate", is_flag=True, help="Log in at the source with a Kerberos ticket.")
@click.option(
    "--source-certificate", type=FILE, metavar="FILE", help="Client certificate (PEM) to log in at the source with."
)
@click.option(
    "--source-key",
    type=FILE,
    metavar="FILE",
    help="Private key (PEM) of --source-certificate; unset means that the certificate's file contains it.",
)
@click.option("--source-insecure", is_flag=True, help="Accept any certificate of the source.")
@click.option("--source-cacert", type=FILE, metavar="FILE", help="Certificate (PEM) of the source to trust.")
@click.option("--source-framed", is_flag=True, help="Use Thrift's framed transport for the source.")
@click.option(
    "--on-conflict",
    type=click.Choice(["skip", "replace", "fail"]),
    default="skip",
    show_default=True,
    help="Treatment of a different object that the target had before.",
)
@click.option(
    "--verify",
    type=click.Choice(["full", "none"]),
    default="full",
    show_default=True,
    help="Comparison of both sides, field by field, at the end.",
)
@click.option("--once", is_flag=True, help="Read the changes of the source once, instead of until there are none.")
@click.option(
    "--last",
    is_flag=True,
    help="Finish after the last write to the source: set the write ids of ACID tables, once.",
)
@click.option("--without", multiple=True, type=click.Choice(_KINDS), help="Kind of objects not to copy; repeatable.")
@with_job_options
def command(
    job: JobCommand,
    source: str,
    source_user: str,
    source_password_file: Path | None,
    source_negotiate: bool,
    source_certificate: Path | None,
    source_key: Path | None,
    source_insecure: bool,
    source_cacert: Path | None,
    source_framed: bool,
    on_conflict: str,
    verify: str,
    once: bool,
    last: bool,
    without: tuple[str, ...],
) -> None:
    """Copy the catalog of another metastore into the one of --url, and follow its changes.

    Tables stay where they are: no directory is made, moved or deleted. The user has to be one of the target's
    administrators. With --resume a finished run copies later changes.
    """
    from hms_gateway.pipeline.migrate.job import MigrateArguments, migrate

    arguments = MigrateArguments(
        source=_source(
            url=source,
            user=source_user,
            password_file=source_password_file,
            negotiate=source_negotiate,
            certificate=source_certificate,
            key=source_key,
            insecure=source_insecure,
            cacert=source_cacert,
            framed=source_framed,
        ),
        on_conflict=on_conflict,
        verify=verify,
        once=once,
        last=last,
        kinds=tuple(kind for kind in _KINDS if kind not in without),
    )
    job.run(migrate, arguments, show)


def _source(
    *,
    url: str,
    user: str,
    password_file: Path | None,
    negotiate: bool,
    certificate: Path | None,
    key: Path | None,
    insecure: bool,
    cacert: Path | None,
    framed: bool,
) -> "Connection":
    from hms_gateway.cli.calls import targets
    from hms_gateway.cli.terminal.output import first_line
    from hms_gateway.pipeline.connection import Connection
    from hms_gateway.pipeline.errors import OptionError

    password = "" if certificate is not None else os.environ.get(PASSWORD_VARIABLE, "")
    if password_file is not None:
        password = first_line("password file", password_file)
    given = {
        "url": url,
        "user": targets.find_ticket(url) if negotiate else user,
        "password": password,
        "auth": "kerberos" if negotiate else "password",
        "verify": "false" if insecure else "true",
        "certificate": str(certificate or ""),
        "key": str(key or ""),
        "framed": "true" if framed else "false",
        "cafile": "" if cacert is None else str(cacert),
    }
    if url.startswith("http") and not negotiate and certificate is None and not (user and password):
        fail(
            "the source needs a user and a password, or a certificate",
            f"give --source-user, and {PASSWORD_VARIABLE} or --source-password-file; or --source-certificate",
        )
    try:
        return replace(Connection.of(given, {}), option_prefix="--source-")
    except OptionError as error:
        fail(f"--source: {error}")


def show(result: "MigrateResult") -> None:
    print(f"run {result.run}: {result.status} in {result.seconds:.1f} s")
    for what, number in result.counts.items():
        print(f"  {number:>10,} {what}")
    for refusal in result.refusals:
        print(f"refused: {refusal.item}: {refusal.reason}")
    for one in result.differences:
        place = f"{one.kind} {one.object}" + (f", {one.field}" if one.field else "")
        print(f"differs: {place}: {one.source!r} in the source, {one.target!r} in the target")
    for kind, fields in result.declared.items():
        print(f"not compared: {kind}: {', '.join(f'{name} ({why})' for name, why in fields.items())}")
    if result.rollback:
        print(f"to undo the run: sh {result.rollback}")
