"""An OAuth2 issuer on loopback: authlib's authorization server behind an HTTP server of the standard library."""

import contextlib
import json
import threading
import time
import warnings
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any
from urllib.parse import parse_qsl

from authlib.oauth2 import AuthorizationServer
from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oauth2.rfc6749.grants import ClientCredentialsGrant
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload
from authlib.oauth2.rfc9068 import JWTBearerTokenGenerator
from joserfc import jwt
from joserfc.jwk import ECKey, KeySet, OKPKey, RSAKey

AUDIENCE = "metastore"
SECRET = "the client's secret"
_KINDS: dict[str, Any] = {"RSA": (RSAKey, 2048), "EC": (ECKey, "P-256"), "OKP": (OKPKey, "Ed25519")}


def new_key(kid: str, kind: str = "RSA") -> Any:
    """A private key under this name."""
    made_by, size = _KINDS[kind]
    return made_by.generate_key(size, {"kid": kid, "use": "sig"}, private=True)


def public(*keys: Any) -> bytes:
    """The JWK set of these keys."""
    return json.dumps(KeySet(list(keys)).as_dict(private=False)).encode()


def signed(key: Any, claims: dict[str, Any], *, algorithm: str = "RS256", **header: Any) -> str:
    """A token with these claims; `kid` is the key's unless the header says another one, or None."""
    fields = {"alg": algorithm, "kid": key.kid, **header}
    shown = {name: value for name, value in fields.items() if value is not None}
    with warnings.catch_warnings():
        # EdDSA has another name now, and issuers go on using this one.
        warnings.simplefilter("ignore")
        return jwt.encode(shown, claims, key, [algorithm])


class TokenIssuer:
    """What it publishes, and how often it was asked for it. `keys` may be changed at any time; the first one signs."""

    def __init__(self, *keys: Any) -> None:
        self.keys = list(keys)
        self.asked: list[str] = []
        # What is answered instead, by path.
        self.answers: dict[str, tuple[int, bytes]] = {}
        self.url = ""
        self.groups = ["engineers", "auditors"]
        self.server = _Server(self)

    def claims(self, **others: Any) -> dict[str, Any]:
        """Right ones, but for those that are given; None leaves one out."""
        now = int(time.time())
        claims = {"iss": self.url, "aud": AUDIENCE, "sub": "ann", "exp": now + 600, "nbf": now, "iat": now, **others}
        return {name: value for name, value in claims.items() if value is not None}

    def token(self, client: str = "etl") -> str:
        """By the grant `client_credentials`, as a program gets one."""
        form = {"grant_type": "client_credentials", "client_id": client, "client_secret": SECRET}
        answer = self.server.create_token_response(form)
        return answer["access_token"]

    def answer(self, path: str) -> tuple[int, bytes]:
        self.asked.append(path)
        if path in self.answers:
            return self.answers[path]
        if path == "/.well-known/openid-configuration":
            document = {"issuer": self.url, "jwks_uri": f"{self.url}/keys", "token_endpoint": f"{self.url}/token"}
            return 200, json.dumps(document).encode()
        return (200, public(*self.keys)) if path == "/keys" else (404, b"{}")


@contextlib.contextmanager
def token_issuer(*keys: Any) -> Iterator[TokenIssuer]:
    """Serve until the end of the block."""
    issuer = TokenIssuer(*keys)

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self._send(*issuer.answer(self.path))

        def do_POST(self) -> None:
            form = dict(parse_qsl(self.rfile.read(int(self.headers["content-length"])).decode()))
            self._send(200, json.dumps(issuer.server.create_token_response(form)).encode())

        def _send(self, status: int, body: bytes) -> None:
            self.send_response(status)
            self.send_header("content-length", str(len(body)))
            if status in (301, 302):
                self.send_header("location", f"{issuer.url}/keys")
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as listener:
        issuer.url = f"http://127.0.0.1:{listener.server_port}"
        thread = threading.Thread(target=listener.serve_forever, args=(0.02,), daemon=True)
        thread.start()
        try:
            yield issuer
        finally:
            listener.shutdown()
            thread.join()


class _Client:
    def __init__(self, name: str) -> None:
        self._name = name

    def get_client_id(self) -> str:
        return self._name

    def check_client_secret(self, secret: str) -> bool:
        return secret == SECRET

    def check_endpoint_auth_method(self, method: str, endpoint: str) -> bool:
        return method == "client_secret_post"

    def check_grant_type(self, grant_type: str) -> bool:
        return grant_type == "client_credentials"

    def get_allowed_scope(self, scope: str) -> str:
        return scope or ""


class _Generator(JWTBearerTokenGenerator):
    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__(issuer.url)
        self._issuer = issuer

    def get_jwks(self) -> Any:
        return KeySet(self._issuer.keys[:1])

    def get_audiences(self, client: Any, user: Any, scope: Any) -> str:
        return AUDIENCE

    def get_extra_claims(self, client: Any, grant_type: Any, user: Any, scope: Any) -> dict[str, Any]:
        return {"iss": self._issuer.url, "groups": self._issuer.groups}


class _ClientCredentials(ClientCredentialsGrant):
    TOKEN_ENDPOINT_AUTH_METHODS = ["client_secret_post"]  # noqa: RUF012


class _Server(AuthorizationServer):
    def __init__(self, issuer: TokenIssuer) -> None:
        super().__init__()
        self.register_grant(_ClientCredentials)
        self.register_token_generator("default", _Generator(issuer))

    def query_client(self, client_id: str) -> _Client:
        return _Client(client_id)

    def save_token(self, token: Any, request: Any) -> None:
        pass

    def send_signal(self, name: str, *args: Any, **kwargs: Any) -> None:
        pass

    def create_oauth2_request(self, request: dict[str, str]) -> OAuth2Request:
        made = OAuth2Request("POST", "https://issuer.example/token")
        made.payload = BasicOAuth2Payload(request)
        # The form of a client that names itself in the body.
        made._body = request
        return made

    def handle_response(self, status: int, body: Any, headers: Any) -> dict[str, Any]:
        return body
