"""Which metastore options name, and as whom it is called."""

from typing import Any

import pytest

from hms_gateway.pipeline.catalog import named_tables
from hms_gateway.pipeline.connection import VARIABLES, Connection
from hms_gateway.pipeline.errors import OptionError
from hms_gateway.rpc.structs import Table
from hms_gateway.rpc.wire import ApplicationError, ApplicationErrorType

HTTPS = {"url": "https://localhost:1/hms"}


@pytest.fixture(autouse=True)
def no_variables(monkeypatch):
    for name in VARIABLES.values():
        monkeypatch.delenv(name, raising=False)


def test_nothing_secret_is_shown():
    connection = Connection.of({**HTTPS, "user": "u", "password": "hidden-1"})
    assert "hidden" not in repr(connection) + repr(Connection.of({**HTTPS, "token": "hidden-2"}))


def test_the_environment_is_read_where_an_option_is_missing(monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_TOKEN", "of the environment".replace(" ", "-"))
    monkeypatch.setenv("HMS_GATEWAY_PASSWORD", "a password")
    assert Connection.of(HTTPS).token == "of-the-environment"
    assert Connection.of({**HTTPS, "token": "given"}).token == "given"


@pytest.mark.parametrize("given", [{"password": "p"}, {"auth": "kerberos"}, {"url": "thrift://localhost"}])
def test_another_login_counts_before_a_token_of_the_environment(monkeypatch, given):
    monkeypatch.setenv("HMS_GATEWAY_TOKEN", "hmsgw_abc")
    assert Connection.of({**HTTPS, **given}).token == ""


def test_a_certificate_of_the_environment_is_for_https_only(monkeypatch):
    monkeypatch.setenv("HMS_GATEWAY_CERTIFICATE", "/no/c.pem")
    assert Connection.of({"url": "thrift://localhost"}).shown_text == ""
    with pytest.raises(OptionError, match="option certificate: /no/c"):
        Connection.of(HTTPS)


@pytest.mark.parametrize(
    ("given", "text"),
    [
        ({"token": "t", "password": "p"}, "option token is given beside password or auth=kerberos; give one of them"),
        ({"token": "t", "auth": "kerberos"}, "option token is given beside password or auth=kerberos"),
        ({"token": "t", "url": "thrift://localhost"}, "option token is for https://"),
        ({"token": "two words"}, "option token is not a token; it is one line of printable ASCII without blanks"),
        ({"token": "a\nb"}, "option token is not a token"),
        ({"auth": "magic"}, "option auth is 'magic'; it is one of password, kerberos"),
        ({"certificate": "/no/c.pem"}, "option certificate: /no/c.pem cannot be read: "),
        ({"certificate": "/no/c.pem", "url": "http://localhost"}, "option certificate is for https://"),
        ({"certificate": "/no/c.pem", "url": "thrift://localhost"}, "option certificate is for https://"),
        ({"key": "/no/key.pem"}, "option key is given without certificate; give the certificate"),
        ({"framed": "perhaps"}, "option framed is 'perhaps'; it is one of true, false"),
    ],
)
def test_what_does_not_fit_is_named(given, text):
    with pytest.raises(OptionError) as caught:
        Connection.of({**HTTPS, **given})
    assert text in str(caught.value)
    assert "words" not in str(caught.value)


class BeforeTheRequest:
    """A metastore of Hive 2.1, which has no request for tables by name."""

    def call(self, name: str, /, *arguments: Any, **_: Any) -> Any:
        if name == "get_table_objects_by_name_req":
            raise ApplicationError(f"Invalid method name: '{name}'", ApplicationErrorType.UNKNOWN_METHOD)
        assert (name, arguments) == ("get_table_objects_by_name", ("sales", ["t", "u"]))
        return [Table("t")]


def test_tables_by_name_of_a_metastore_without_the_request() -> None:
    assert named_tables(BeforeTheRequest(), "sales", ("t", "u")) == [Table("t")]
