"""Builds the logins from the settings: who sends a request, and whose word on it counts."""

import secrets
import time
from collections.abc import Callable

import msgspec

from hms_gateway.gateway.admission.identity import Authenticator
from hms_gateway.gateway.admission.proxies import Proxies
from hms_gateway.gateway.auth.credentials import (
    ACCEPTED,
    Login,
    LoginStack,
    basic_challenge,
    bearer_challenge,
    wrong_token_challenges,
)
from hms_gateway.gateway.auth.external_logins import (
    NEGOTIATE_CHALLENGE,
    CertificateLogin,
    ImpersonationRule,
    TicketLogin,
    TrustedProxyAuthenticator,
)
from hms_gateway.gateway.auth.passwords import PasswordLogin, UserFile
from hms_gateway.gateway.auth.tokens import (
    TOKEN_ACCEPTED,
    DelegationLogin,
    DelegationLogins,
    ProvenActing,
    TokenFile,
    TokenLogin,
    TokenUses,
)
from hms_gateway.gateway.auth.users import GroupsFile, GroupsFileError, UserFileError, add_user
from hms_gateway.gateway.certificates.client_certificates import (
    CertificateValidity,
    ClientCertificates,
    Revocations,
)
from hms_gateway.runtime.addresses import Networks
from hms_gateway.runtime.file_versions import WatchedFile
from hms_gateway.runtime.kerberos import ServiceKeys
from hms_gateway.runtime.logins.login_tokens import LoginChecks
from hms_gateway.runtime.settings import Settings, SettingsError

FIRST_USER = "admin"


class LoginParts(msgspec.Struct, frozen=True):
    """Parts that the doors of a process share: threads in which logins are checked, the password file, and
    delegation tokens, if they are on.
    """

    checks: LoginChecks
    users: UserFile
    groups: GroupsFile | None = None
    delegation: DelegationLogins | None = None


def user_file(settings: Settings) -> UserFile:
    """The users that the settings name."""
    return UserFile(settings.users_path, time.monotonic, settings.users_by_other_logins)


def login_parts(
    settings: Settings, users: UserFile | None = None, token_password: Callable[[bytes], bytes] | None = None
) -> LoginParts:
    """`token_password` is `DelegationTokens.password`. Raises SettingsError."""
    checks, users, groups = LoginChecks(settings.limits), users or user_file(settings), build_groups(settings)
    if token_password is None:
        return LoginParts(checks, users, groups)
    # A proof comes beside another login: a ticket in its place would not help.
    logins = DelegationLogins(token_password, checks, challenges=wrong_token_challenges(settings.realm))
    return LoginParts(checks, users, groups, logins)


def ensure_first_user(settings: Settings) -> str | None:
    """Make the password file with the user admin when there is none.

    The new password when it was made up here, so that it can be shown once; None when nothing was made, or when the
    settings gave it. Raises UserFileError.
    """
    if settings.users_path.exists():
        return None
    given = given_password(settings)
    password = given if given is not None else secrets.token_urlsafe(15)
    add_user(settings.users_path, FIRST_USER, password)
    return None if given is not None else password


def given_password(settings: Settings) -> str | None:
    """The setting admin_password, or the first line of admin_password_file. Raises UserFileError."""
    file = settings.admin_password_file
    if file is None:
        return None if settings.admin_password is None else settings.admin_password.get_secret_value()
    try:
        return file.read_text(encoding="utf-8").partition("\n")[0].rstrip("\r")
    except (OSError, UnicodeDecodeError) as error:
        raise UserFileError(f"admin_password_file {file} cannot be read: {error}") from error


def service_keys(settings: Settings) -> ServiceKeys | None:
    """Keys that check Kerberos tickets; None without. Raises KerberosError."""
    return None if settings.kerberos.keytab is None else ServiceKeys(settings.kerberos.keytab)


def build_authenticator(settings: Settings, parts: LoginParts | None = None) -> Authenticator:
    """The logins of the settings in the order in which they are asked; around them trusted proxies, users who act for
    others, and groups.

    Raises KerberosError, SettingsError, CertificateError.
    """
    parts = parts or login_parts(settings)
    proxies = build_proxies(settings)
    share_of = proxies.share_of
    others = () if settings.kerberos.keytab is None else NEGOTIATE_CHALLENGE
    password_and_token = basic_challenge(settings.realm), bearer_challenge(settings.realm)
    challenges = *others, *password_and_token
    wrong_token = wrong_token_challenges(settings.realm, others)
    accepted = f"{ACCEPTED}, or {TOKEN_ACCEPTED}"
    logins: list[Login] = []
    if settings.client_certificates.authority is not None:
        logins.append(CertificateLogin(objection=proxies.objection, challenges=challenges))
    if settings.http_networks:
        # Loaded only where it is needed, as issuers and the directory below.
        from hms_gateway.gateway.auth.network_logins import NetworkLogin, NetworkUsers

        networks = Networks(settings.http_networks)
        logins.append(NetworkLogin(networks, NetworkUsers(settings), lambda peer: share_of(peer) is None))
    if (keys := service_keys(settings)) is not None:
        accepted = f"a Kerberos ticket (Negotiate), or {accepted}"
        realms = settings.kerberos.realms
        logins.append(
            TicketLogin(keys.accept, realms=realms, challenges=challenges, checks=parts.checks, share_of=share_of)
        )
    if parts.delegation is not None:
        logins.append(DelegationLogin(parts.delegation, share_of, challenges=wrong_token))
    if settings.token_issuers:
        from hms_gateway.gateway.auth.issuers import SignedTokenLogin, make_issuer

        issuers = [make_issuer(issuer) for issuer in settings.token_issuers.values()]
        logins.append(SignedTokenLogin(issuers, challenges=wrong_token, share_of=share_of))
    tokens = TokenFile(WatchedFile(settings.tokens_path, time.monotonic))
    uses = TokenUses(settings.token_uses_path)
    logins.append(TokenLogin(tokens, uses, challenges=wrong_token, share_of=share_of))
    if settings.ldap is not None:
        from hms_gateway.gateway.auth.directory import DirectoryLogin, LdapDirectory, check_installed

        check_installed()
        logins.append(
            DirectoryLogin(
                LdapDirectory(settings.ldap).check,
                settings.ldap,
                is_local=parts.users.has,
                challenges=challenges,
                limits=settings.limits,
                share_of=share_of,
            )
        )
    logins.append(
        PasswordLogin(
            parts.users,
            challenges=challenges,
            remembered_seconds=settings.credentials_remembered_seconds,
            limits=settings.limits,
            share_of=share_of,
        )
    )
    return TrustedProxyAuthenticator(
        LoginStack(logins, challenges=challenges, accepted=accepted),
        settings.trusted_proxy,
        proxy_users=impersonation_rules(settings),
        proven=ProvenActing(parts.delegation, share_of, password_and_token).check,
        is_reserved=parts.users.is_reserved,
        groups_of=None if parts.groups is None else parts.groups.of,
    )


def build_groups(settings: Settings) -> GroupsFile | None:
    """Raises SettingsError."""
    if settings.groups_file is None:
        return None
    try:
        return GroupsFile(settings.groups_file)
    except GroupsFileError as error:
        raise SettingsError(f"groups_file: {error}") from error


def impersonation_rules(settings: Settings) -> dict[str, ImpersonationRule]:
    """Whom users may act for."""
    return {
        name: ImpersonationRule(frozenset(user.users), Networks(user.hosts) if user.hosts else None)
        for name, user in settings.proxy_users.items()
    }


def build_proxies(settings: Settings) -> Proxies:
    """The peers whose word on users and addresses counts, as the settings name them. Raises CertificateError."""
    trusted, revocations = settings.trusted_proxy, settings.client_certificates.revocations
    validity = CertificateValidity(None if revocations is None else Revocations(revocations, time.monotonic))
    return Proxies(
        trusted.addresses,
        settings.forwarding_proxies,
        secret=None if trusted.secret is None else trusted.secret.get_secret_value(),
        secret_header=trusted.secret_header,
        needs_certificate=trusted.authority is not None,
        certificate_of=ClientCertificates(trusted, settings.client_certificates).shown,
        objection=validity.objection,
        forwarded_header=settings.forwarded_header,
    )
