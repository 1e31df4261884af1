"""The edge: HTTP, TLS, authentication, metrics and the access log around `rpc.Processor`."""

from app.gateway.application import Gateway
from app.gateway.assembly import build_authenticator, build_gateway, ensure_first_user
from app.gateway.authentication import BasicAuthenticator
from app.gateway.endpoint import Endpoint
from app.gateway.identity import Authenticator, Identity, RequestHead
from app.gateway.metrics import Metrics
from app.gateway.refusals import Refused
from app.gateway.running import WorkerFailed, run
from app.gateway.server import Server, ServerOptions
from app.gateway.tls import CertificateError, certificate_fingerprint
from app.gateway.users import UserFileError

__all__ = [
    "Authenticator",
    "BasicAuthenticator",
    "CertificateError",
    "Endpoint",
    "Gateway",
    "Identity",
    "Metrics",
    "Refused",
    "RequestHead",
    "Server",
    "ServerOptions",
    "UserFileError",
    "WorkerFailed",
    "build_authenticator",
    "build_gateway",
    "certificate_fingerprint",
    "ensure_first_user",
    "run",
]
