"""A stand-in of Apache Knox: its routes, rewriting and dispatch, as deploy/knox configures them.

Clients log in here by Basic. What becomes of requests is in docs/reference/clients.md, section 9, which was read in
Knox's own sources. `service.xml` and `rewrite.xml` are interpreted, not repeated.
"""

import http.client
import json
import re
import ssl
import threading
import urllib.parse
import xml.etree.ElementTree as ElementTree
from base64 import b64decode
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import NamedTuple

from tests.support.server import trusting

DEPLOY = Path(__file__).parents[2] / "deploy" / "knox"
RULES, SERVICE = DEPLOY / "rewrite.xml", DEPLOY / "service.xml"
TOPOLOGY = "/gateway/default"
# Of headers that Jetty knows it gives the usual spelling, so that the dispatch finds them in any.
REQUEST_EXCLUDED = {"host", "authorization", "content-length", "transfer-encoding"}
RESPONSE_EXCLUDED = {"www-authenticate", "set-cookie", "content-length", "transfer-encoding", "connection"}
FORM, REWRITTEN = "application/x-www-form-urlencoded", re.compile(r".*/json")
UNITS = {"m": 60.0, "s": 1.0}
GROUPS_HEADER_MAX = 1000


def parts(path: str) -> list[str]:
    """As Knox cuts a path: empty parts, and so a slash at the end, do not count."""
    return [part for part in path.split("/") if part]


def matches(pattern: list[str], path: list[str]) -> bool:
    """`**` is one part or more, `*` is one part."""
    if not pattern or not path:
        return not pattern and not path
    if pattern[0] == "**":
        return any(matches(pattern[1:], path[taken:]) for taken in range(1, len(path) + 1))
    return pattern[0] in ("*", path[0]) and matches(pattern[1:], path[1:])


def path_of(pattern: str) -> str:
    return pattern.partition("?")[0].removeprefix("*://*:*")


def routes(service: str) -> list[str]:
    return [route.attrib["path"] for route in ElementTree.fromstring(service).iter("route")]


def rewritten(rules: str, path: str, query: str, service_urls: Mapping[str, str]) -> str | None:
    """The address that a request to this path goes to; None without a rule."""
    for rule in ElementTree.fromstring(rules).iter("rule"):
        if not matches(parts(path_of(rule.attrib["pattern"])), parts(path)):
            continue
        [rewrite] = rule.iter("rewrite")
        template = rewrite.attrib["template"]
        for role, url in service_urls.items():
            template = template.replace(f"{{$serviceUrl[{role}]}}", url)
        # Equal pairs come once.
        pairs = dict.fromkeys(urllib.parse.parse_qsl(query, keep_blank_values=True))
        address = template.replace("?{**}", f"?{urllib.parse.urlencode(list(pairs))}" if pairs else "")
        assert "{" not in address, address
        return address
    return None


class Account(NamedTuple):
    """A user of Knox's directory."""

    password: str
    groups: tuple[str, ...] = ()


class Dispatch:
    """The dispatch of service.xml: parameters by name, and whether Knox shows its certificate."""

    def __init__(self, service: str) -> None:
        [element] = ElementTree.fromstring(service).iter("dispatch")
        assert element.attrib["classname"].endswith(".ConfigurableDispatch")
        assert "ha-classname" not in element.attrib
        self.shows_certificate = element.attrib.get("use-two-way-ssl") == "true"
        self._given = {one.findtext("name"): one.findtext("value") for one in element.iter("param")}

    def seconds(self, name: str) -> float:
        value = self._given[f"httpclient.{name}"]
        return float(value[:-1]) * UNITS[value[-1]]

    def names_of(self, user: str, groups: tuple[str, ...]) -> Iterator[tuple[str, str]]:
        """Headers of the user and the groups; a client's own of these names come beside them."""
        if self._given.get("shouldIncludePrincipalAndGroups") == "true":
            yield "X-Knox-Actor-ID", user
            for number, names in enumerate(_joined(groups), 1):
                yield f"X-Knox-Actor-Groups-{number}", names


def _joined(groups: tuple[str, ...]) -> Iterator[str]:
    text = ""
    for group in groups:
        if text and len(text) + len(group) > GROUPS_HEADER_MAX:
            yield text
            text = ""
        text += f",{group}" if text else group
    if text:
        yield text


@contextmanager
def knox(
    gateway: Callable[[], str],
    accounts: Mapping[str, Account],
    folder: Path,
    service: str | None = None,
    certificate: Path | None = None,
) -> Iterator[int]:
    """Run one over TLS, with `tls.crt` and `tls.key` of the folder; its port. `gateway` is the URL in its topology."""
    service = service or SERVICE.read_text("utf-8")
    dispatch = Dispatch(service)
    context = trusting()
    if dispatch.shows_certificate:
        assert certificate is not None
        context.load_cert_chain(certificate)

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.1"

        def do_POST(self) -> None:
            body = self._body()
            path, _, query = self.path.partition("?")
            below = path.removeprefix(TOPOLOGY)
            if below == path or not any(matches(parts(route), parts(below)) for route in routes(service)):
                return self._say(404)
            user = self._user()
            if user is None:
                return self._say(401, ("WWW-Authenticate", 'BASIC realm="application"'))
            address = rewritten(RULES.read_text("utf-8"), path, query, {"HMSHTTP": gateway()})
            assert address is not None
            try:
                self._dispatch(urllib.parse.urlsplit(address), user, body)
            except OSError:
                self._say(500)

        def _user(self) -> str | None:
            kind, _, text = (self.headers.get("Authorization") or "").partition(" ")
            name, _, password = b64decode(text).decode().partition(":") if kind.lower() == "basic" else ("", "", "")
            return name if name in accounts and accounts[name].password == password else None

        def _body(self) -> bytes:
            if self.headers.get("Transfer-Encoding", "").lower() != "chunked":
                return self.rfile.read(int(self.headers.get("Content-Length", 0)))
            pieces = []
            while size := int(self.rfile.readline(), 16):
                pieces.append(self.rfile.read(size))
                self.rfile.readline()
            self.rfile.readline()
            return b"".join(pieces)

        def _dispatch(self, address: urllib.parse.SplitResult, user: str, body: bytes) -> None:
            assert address.hostname
            connection = http.client.HTTPSConnection(
                address.hostname, address.port, timeout=dispatch.seconds("connectionTimeout"), context=context
            )
            try:
                connection.connect()
                connection.sock.settimeout(dispatch.seconds("socketTimeout"))
                target = address.path + (f"?{address.query}" if address.query else "")
                connection.putrequest("POST", target, skip_accept_encoding=True)
                for name, value in self._sent(user):
                    connection.putheader(name, value)
                connection.putheader("Transfer-Encoding", "chunked")
                # Without a retry: its HttpClient has none.
                connection.endheaders([_as_knox_writes(body, self.headers.get_content_type())], encode_chunked=True)
                self._answer(connection.getresponse())
            finally:
                connection.close()

        def _sent(self, user: str) -> Iterator[tuple[str, str]]:
            for name in dict.fromkeys(self.headers.keys()):
                if name.lower() not in {*REQUEST_EXCLUDED, "x-forwarded-for", "expect"}:
                    yield name, self.headers[name]
            before = self.headers.get("X-Forwarded-For")
            yield "X-Forwarded-For", f"{before},{self.client_address[0]}" if before else self.client_address[0]
            yield from (("X-Forwarded-Proto", "https"), ("X-Forwarded-Context", TOPOLOGY))
            yield from dispatch.names_of(user, accounts[user].groups)

        def _answer(self, answer: http.client.HTTPResponse) -> None:
            self.send_response_only(answer.status)
            for name, value in answer.getheaders():
                if name.lower() not in RESPONSE_EXCLUDED:
                    self.send_header(name, value)
            self.send_header("Transfer-Encoding", "chunked")
            self.end_headers()
            while piece := answer.read1(8192):
                self.wfile.write(b"%x\r\n%b\r\n" % (len(piece), piece))
            self.wfile.write(b"0\r\n\r\n")

        def _say(self, status: int, *headers: tuple[str, str]) -> None:
            self.send_response_only(status)
            for name, value in (*headers, ("Content-Length", "0")):
                self.send_header(name, value)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        shown = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        shown.load_cert_chain(folder / "tls.crt", folder / "tls.key")
        server.socket = shown.wrap_socket(server.socket, server_side=True)
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield server.server_port
        finally:
            server.shutdown()
            thread.join()


def _as_knox_writes(body: bytes, content_type: str) -> bytes:
    """Forms are parsed and written again, JSON too; other bodies pass as they are."""
    if content_type == FORM:
        return urllib.parse.urlencode(urllib.parse.parse_qsl(body.decode(), keep_blank_values=True)).encode()
    if REWRITTEN.fullmatch(content_type):
        return json.dumps(json.loads(body), separators=(",", ":")).encode()
    return body
