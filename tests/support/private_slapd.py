"""An LDAP server of the test run's own (OpenLDAP's slapd) on loopback, with TLS, people and groups."""

import contextlib
import importlib.util
import os
import shutil
import socket
import subprocess
import tempfile
from pathlib import Path

import trustme

from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import free_port

BASE = "dc=corp,dc=test"
PASSWORD = "a password of the directory"
SEARCH_PASSWORD = "the searcher's password"
POLL_SECONDS = 0.02
SCHEMAS = Path("/etc/ldap/schema")
# Debian keeps daemons off the path of ordinary users.
PROGRAMS_PATH = os.pathsep.join([os.environ.get("PATH", os.defpath), "/usr/sbin", "/usr/libexec", "/usr/lib/openldap"])
_CONFIGURATION = """
include {schemas}/core.schema
include {schemas}/cosine.schema
include {schemas}/inetorgperson.schema
pidfile {folder}/slapd.pid
modulepath /usr/lib/ldap
moduleload back_mdb
TLSCertificateFile {folder}/server.pem
TLSCertificateKeyFile {folder}/server.pem
database mdb
maxsize 8388608
suffix "{base}"
rootdn "cn=root,{base}"
directory {folder}/database
access to attrs=userPassword by anonymous auth by * none
access to * by dn.exact="cn=search,{base}" read by self read by * none
"""
_ENTRIES = """
dn: {base}
objectClass: dcObject
objectClass: organization
o: corp
dc: corp

dn: cn=search,{base}
objectClass: organizationalRole
objectClass: simpleSecurityObject
cn: search
userPassword: {search}

dn: ou=people,{base}
objectClass: organizationalUnit
ou: people

dn: ou=groups,{base}
objectClass: organizationalUnit
ou: groups
{people}
dn: cn=engineers,ou=groups,{base}
objectClass: groupOfNames
cn: engineers
member: uid=ann,ou=people,{base}
member: uid=Bea,ou=people,{base}

dn: cn=auditors,ou=groups,{base}
objectClass: groupOfNames
cn: auditors
member: uid=ann,ou=people,{base}
"""
_PERSON = """
dn: uid={name},ou=people,{base}
objectClass: inetOrgPerson
uid: {name}
cn: {name}
sn: {name}
mail: {mail}
userPassword: {password}
"""
# Two people share an address of mail.
PEOPLE = {"ann": "ann@corp.test", "Bea": "shared@corp.test", "cem": "shared@corp.test"}


class SlapdUnavailable(Exception):
    """No slapd can be run here; the message says why."""


class PrivateSlapd:
    """`port` is for ldap://, `tls_port` for ldaps://; `certificate` is what clients trust."""

    def __init__(self) -> None:
        for program in ("slapd", "slapadd"):
            if shutil.which(program, path=PROGRAMS_PATH) is None:
                raise SlapdUnavailable(f"no OpenLDAP server (command {program})")
        if not SCHEMAS.is_dir():
            raise SlapdUnavailable(f"no schemas in {SCHEMAS}")
        if importlib.util.find_spec("bonsai") is None:
            raise SlapdUnavailable("no package bonsai")
        self._folder = Path(tempfile.mkdtemp(prefix="hms-slapd-"))
        self.port, self.tls_port = free_port(), free_port()
        self.certificate = self._folder / "authority.pem"
        self._process: subprocess.Popen[bytes] | None = None
        (self._folder / "database").mkdir()
        authority = trustme.CA()
        authority.cert_pem.write_to_path(self.certificate)
        # OpenLDAP's clients take localhost for the machine's other name.
        authority.issue_cert("127.0.0.1").private_key_and_cert_chain_pem.write_to_path(self._folder / "server.pem")
        configuration = _CONFIGURATION.format(schemas=SCHEMAS, folder=self._folder, base=BASE)
        (self._folder / "slapd.conf").write_text(configuration)

    def make(self) -> None:
        """Its entries."""
        people = "".join(
            _PERSON.format(name=name, mail=mail, base=BASE, password=PASSWORD) for name, mail in PEOPLE.items()
        )
        entries = _ENTRIES.format(base=BASE, people=people, search=SEARCH_PASSWORD)
        program = str(shutil.which("slapadd", path=PROGRAMS_PATH))
        ran = subprocess.run(
            [program, "-f", str(self._folder / "slapd.conf")],
            input=entries,
            text=True,
            capture_output=True,
            check=False,
        )
        if ran.returncode:
            raise SlapdUnavailable(ran.stderr.strip())

    def start(self) -> None:
        """Returns when it answers."""
        program = str(shutil.which("slapd", path=PROGRAMS_PATH))
        urls = f"ldap://127.0.0.1:{self.port} ldaps://127.0.0.1:{self.tls_port}"
        with (self._folder / "log").open("ab") as log:
            self._process = subprocess.Popen(
                [program, "-h", urls, "-f", str(self._folder / "slapd.conf"), "-d", "0"],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        for _ in range(int(PATIENCE_SECONDS / POLL_SECONDS)):
            with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", self.port)):
                return
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(POLL_SECONDS)
                break
        raise SlapdUnavailable((self._folder / "log").read_text(errors="replace").strip())

    def stop(self) -> None:
        process, self._process = self._process, None
        if process is not None:
            process.terminate()
            process.wait()

    def delete(self) -> None:
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)
