"""Client certificates in front of passwords: what TLS has verified says who sends a request.

An Authorization header counts instead where there is one, so that the certificate of a machine can let in beside the
password of its user.
"""

from collections.abc import Callable

from hms_gateway.gateway.admission.identity import Authenticator, HeaderList, Identity, RequestHead, ShownCertificate
from hms_gateway.gateway.admission.refusals import Refused


class CertificateAuthenticator:
    """Lets in users of certificates that hold now, also on connections that began before; others are the next one's.

    `objection` is `CertificateValidity.objection`.
    """

    def __init__(
        self,
        following: Authenticator,
        *,
        objection: Callable[[ShownCertificate], str],
        challenges: HeaderList = (),
    ) -> None:
        self._following = following
        self._challenges = challenges
        self._objection = objection

    def remembered(self, head: RequestHead) -> Identity | None:
        certificate = _login(head)
        if certificate is None:
            return self._following.remembered(head)
        return None if self._objection(certificate) else _identity(certificate, head)

    async def authenticate(self, head: RequestHead) -> Identity:
        """Raises Refused: 401 for a certificate that does not hold any more, and as the next authenticator does."""
        certificate = _login(head)
        if certificate is None:
            return await self._following.authenticate(head)
        if objection := self._objection(certificate):
            raise Refused(401, f"The client certificate {objection}", headers=self._challenges, reason="certificate")
        return _identity(certificate, head)

    def close(self) -> None:
        self._following.close()


def _identity(certificate: ShownCertificate, head: RequestHead) -> Identity:
    return Identity(certificate.user, head.address, by_others=True)


def _login(head: RequestHead) -> ShownCertificate | None:
    """The certificate, where it says whose the request is."""
    certificate = head.certificate
    if certificate is None or not certificate.user or b"authorization" in head.headers:
        return None
    return certificate
