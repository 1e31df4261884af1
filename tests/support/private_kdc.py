"""A Kerberos KDC of the test run's own (MIT's krb5kdc): two realms, one of which trusts the other; loopback only."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import free_port

REALM = "LAKE.TEST"
TRUSTED_REALM = "OTHER.TEST"
POLL_SECONDS = 0.02
# Debian keeps the daemons off the path of ordinary users.
PROGRAMS_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/sbin", "/usr/lib/mit/sbin"])

_CLIENTS = """
[libdefaults]
    default_realm = {realm}
    dns_lookup_kdc = false
    dns_lookup_realm = false
    dns_canonicalize_hostname = false
    rdns = false
    udp_preference_limit = 1
[realms]
    {realm} = {{
        kdc = 127.0.0.1:{port}
    }}
    {trusted} = {{
        kdc = 127.0.0.1:{port}
    }}
[domain_realm]
    localhost = {realm}
[capaths]
    {trusted} = {{
        {realm} = .
    }}
"""
_SERVER = """
[kdcdefaults]
    kdc_listen = ""
    kdc_tcp_listen = "127.0.0.1:{port}"
[realms]
    {realm} = {{
        database_name = {folder}/{realm}
        key_stash_file = {folder}/{realm}.stash
    }}
    {trusted} = {{
        database_name = {folder}/{trusted}
        key_stash_file = {folder}/{trusted}.stash
    }}
"""


class KdcUnavailable(Exception):
    """No KDC can be run here; the message says why."""


class PrivateKdc:
    """Users, services, their keytabs and tickets. `environment` is for programs that use Kerberos."""

    def __init__(self) -> None:
        for program in ("krb5kdc", "kdb5_util", "kadmin.local", "kinit"):
            if shutil.which(program, path=PROGRAMS_PATH) is None:
                raise KdcUnavailable(f"no MIT Kerberos (command {program})")
        if importlib.util.find_spec("gssapi") is None:
            raise KdcUnavailable("no package gssapi")
        self.folder = Path(tempfile.mkdtemp(prefix="hms-kdc-"))
        self._port = free_port()
        self._process: subprocess.Popen[bytes] | None = None
        names = {"realm": REALM, "trusted": TRUSTED_REALM, "folder": self.folder, "port": self._port}
        (self.folder / "krb5.conf").write_text(_CLIENTS.format(**names))
        (self.folder / "kdc.conf").write_text(_SERVER.format(**names))
        self.environment: Mapping[str, str] = {
            "KRB5_CONFIG": str(self.folder / "krb5.conf"),
            "KRB5_KDC_PROFILE": str(self.folder / "kdc.conf"),
            "KRB5RCACHEDIR": str(self.folder),
            "KRB5CCNAME": f"FILE:{self.folder}/nobody.tickets",
        }

    def start(self) -> None:
        """Make the realms and start; returns when tickets can be had."""
        for realm in (REALM, TRUSTED_REALM):
            self._run("kdb5_util", "-r", realm, "create", "-s", "-P", "of the database only")
            self._administer(realm, f"addprinc -pw shared krbtgt/{REALM}@{TRUSTED_REALM}")
        program = shutil.which("krb5kdc", path=PROGRAMS_PATH)
        with (self.folder / "kdc.log").open("wb") as log:
            self._process = subprocess.Popen(
                [str(program), "-n", "-r", REALM, "-r", TRUSTED_REALM],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=self._all_variables(),
            )
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self._port)):
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_SECONDS)
                break
        raise KdcUnavailable((self.folder / "kdc.log").read_text(errors="replace").strip())

    def delete(self) -> None:
        if self._process is not None:
            self._process.terminate()
            self._process.wait()
        shutil.rmtree(self.folder, ignore_errors=True)

    def add(self, principal: str) -> None:
        """A user or service with a random key; its name without realm is of LAKE.TEST."""
        self._administer(_realm(principal), f"addprinc -randkey {principal}")

    def write_keytab(self, principal: str, keytab: Path, *, new_key: bool = False) -> None:
        """Add the principal's key to a keytab; a new one replaces that which the KDC had."""
        keeps = "" if new_key else "-norandkey "
        self._administer(_realm(principal), f"ktadd {keeps}-k {keytab} {principal}")

    def log_in(self, principal: str) -> dict[str, str]:
        """The environment in which the principal has tickets, as after kinit."""
        name = principal.replace("/", "-")
        keytab = self.folder / f"{name}.keytab"
        self.write_keytab(principal, keytab)
        variables = {**self.environment, "KRB5CCNAME": f"FILE:{self.folder}/{name}.tickets"}
        self._run("kinit", "-k", "-t", str(keytab), principal, environment=variables)
        return variables

    def _administer(self, realm: str, query: str) -> None:
        self._run("kadmin.local", "-r", realm, "-q", query)

    def _run(self, program: str, *arguments: str, environment: Mapping[str, str] | None = None) -> None:
        finished = subprocess.run(
            [str(shutil.which(program, path=PROGRAMS_PATH)), *arguments],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE_SECONDS,
            env={**self._all_variables(), **(environment or {})},
        )
        if finished.returncode or b"kadmin.local: " in finished.stderr:
            raise KdcUnavailable(f"{program} {' '.join(arguments)}: {finished.stderr.decode(errors='replace').strip()}")

    def _all_variables(self) -> dict[str, str]:
        return {**os.environ, **self.environment}


def _realm(principal: str) -> str:
    return principal.partition("@")[2] or REALM
