"""What the gateway says about a user is what it decides for that user: rules, groups_file and grants included."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from hms_gateway.composition.main import Metastore, build_metastore
from hms_gateway.composition.places import DATABASE_FILE
from hms_gateway.rpc.call import Dialect
from hms_gateway.rpc.structs import Database, MetaException, RightAnswer
from hms_gateway.runtime.settings import Settings
from tests.handlers.peers import Peer
from tests.support.kept_store import empty_database

RULES = '[[rule]]\nname = "team"\ngroups = ["sales-team"]\nactions = ["create"]\nobjects = ["sales_*"]\n'


@pytest.fixture
def metastore_with(tmp_path: Path) -> Iterator[Callable[..., Metastore]]:
    made = []
    (tmp_path / DATABASE_FILE).write_bytes(empty_database())
    (tmp_path / "rules.toml").write_text(RULES)
    (tmp_path / "groups").write_text("sales-team: alice\n")

    def make(**settings) -> Metastore:
        files = {"authorization_rules_file": tmp_path / "rules.toml", "groups_file": tmp_path / "groups"}
        made.append(build_metastore(Settings(data_dir=tmp_path, file_systems={"file": "ignore"}, **files, **settings)))
        return made[-1]

    yield make
    for metastore in made:
        metastore.store.close()


def peer(metastore: Metastore, user: str = "admin") -> Peer:
    return Peer(metastore, metastore.codecs.binary, Dialect.HIVE_4, principal=user)


@pytest.mark.parametrize("authorization", ["grants", "off", None])
def test_groups_of_the_file_and_of_the_login_count(metastore_with, authorization):
    admin = peer(metastore_with(authorization=authorization))
    why = "rule 'team' for group sales-team"
    is_off = ['authorization is not "grants": every user may do everything, whatever is said here']
    notes = [] if authorization == "grants" else is_off
    unknown = "user alice is not in the password file; a directory or an issuer may know the name"
    missing = [*notes, "database sales_eu does not exist", unknown]
    assert admin.ask("explain_right", "alice", [], "create", "sales_eu", "") == RightAnswer(True, why, missing)
    assert not admin.ask("explain_right", "bob", [], "create", "sales_eu", "").is_allowed
    assert admin.ask("explain_right", "bob", ["sales-team"], "create", "sales_eu", "").is_allowed
    admin.ask("create_database", Database(name="sales_eu"))
    assert admin.ask("explain_right", "alice", [], "create", "SALES_EU", None) == RightAnswer(
        True, why, [*notes, unknown]
    )


def test_what_is_said_is_what_is_decided(metastore_with):
    metastore = metastore_with(authorization="grants")
    admin, bob = peer(metastore), peer(metastore, "bob")
    for action, name in (("create", ""), ("admin", "")):
        assert not admin.ask("explain_right", "bob", None, action, name, "").is_allowed
    with pytest.raises(MetaException, match="Permission denied"):
        bob.ask("create_database", Database(name="own"))
    admin.ask("create_database", Database(name="own"))
    assert not admin.ask("explain_right", "bob", None, "drop", "own", "").is_allowed
    said = admin.ask("explain_right", "bob", ["stuff"], "drop", "own", "orders")
    unknown = "user bob is not in the password file; a directory or an issuer may know the name"
    assert said.notes == ["table own.orders does not exist", "no grant, role or rule names the group stuff", unknown]
    assert said.why == "no grant, rule or ownership gives bob drop on table own.orders"
    assert admin.ask("explain_right", "admin", None, "drop", "own", "").why.endswith("in the setting administrators")


@pytest.mark.parametrize("authorization", ["grants", "off"])
def test_it_is_for_administrators(metastore_with, authorization):
    metastore = metastore_with(authorization=authorization)
    with pytest.raises(MetaException, match=r"ermission denied|is not an administrator"):
        peer(metastore, "bob").ask("explain_right", "bob", None, "see", "default", "")


@pytest.mark.parametrize(
    ("user", "action", "told"), [("", "see", "user is empty"), ("bob", "look", "the actions are see")]
)
def test_what_cannot_be_asked(metastore_with, user, action, told):
    with pytest.raises(MetaException, match=told):
        peer(metastore_with()).ask("explain_right", user, None, action, "default", "")


def test_rules_that_cannot_be_read_are_named(metastore_with, tmp_path):
    admin = peer(metastore_with(authorization="off"))
    (tmp_path / "rules.toml").write_text("[[rule")
    with pytest.raises(MetaException, match="authorization_rules_file"):
        admin.ask("explain_right", "bob", None, "see", "default", "")
