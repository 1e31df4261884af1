"""The edge: HTTP, TLS, authentication, metrics and the access log around `rpc.Processor`."""

from hms_gateway.gateway.admission.identity import Authenticator, Identity, Refused, RequestHead
from hms_gateway.gateway.application import Gateway
from hms_gateway.gateway.assembly import build_gateway
from hms_gateway.gateway.auth.users import UserFileError
from hms_gateway.gateway.certificates.tls import CertificateError, certificate_fingerprint
from hms_gateway.gateway.http.endpoint import Endpoint
from hms_gateway.gateway.logins import build_authenticator, ensure_first_user
from hms_gateway.gateway.observability.metrics import Metrics
from hms_gateway.gateway.running import WorkerFailed, run
from hms_gateway.gateway.server import Server

__all__ = [
    "Authenticator",
    "CertificateError",
    "Endpoint",
    "Gateway",
    "Identity",
    "Metrics",
    "Refused",
    "RequestHead",
    "Server",
    "UserFileError",
    "WorkerFailed",
    "build_authenticator",
    "build_gateway",
    "certificate_fingerprint",
    "ensure_first_user",
    "run",
]
