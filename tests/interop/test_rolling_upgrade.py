"""Gateways of the release before and of this tree take turns on one PostgreSQL behind nginx, under load."""

import http.client
import os
import subprocess
import sys
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path

import pytest

from hms_gateway.storage.schema.catalog import REVISION
from tests.gateway.serving import CALL
from tests.interop.private_proxies import proxy
from tests.interop.test_rolling_restart import SETTINGS, Load
from tests.support.patience import PATIENCE_SECONDS
from tests.support.server import GatewayServer, ServerDidNotStart
from tools.walks import NEW_TABLE

ROOT = Path(__file__).parents[2]
# The commit of each release, and the revision of its tables.
RELEASES = {"0.1.0": ("d197e044", "0010"), "0.2.0": ("31dc44e3", "0017")}


CREATE = b'[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"before"}}}}]'


class Release:
    """A released wheel, built from its commit and installed in a folder of its own, with our libraries."""

    def __init__(self, version: str, folder: Path) -> None:
        commit, self.revision = RELEASES[version]
        archive = folder / "source.tar"
        done = subprocess.run(["git", "-C", str(ROOT), "archive", "-o", str(archive), commit], capture_output=True)
        if done.returncode:
            pytest.skip(f"no history of {version} in this clone (git fetch --unshallow)")
        source, self.folder = folder / "source", folder / "installed"
        source.mkdir()
        subprocess.run(["tar", "-xf", str(archive), "-C", str(source)], check=True)
        install = ["pip", "install", "-q", "--no-deps", "--no-build-isolation", "--no-compile", "--target"]
        subprocess.run([sys.executable, "-m", *install, str(self.folder), str(source)], check=True)

    @property
    def environment(self) -> dict[str, str]:
        return {"PYTHONPATH": str(self.folder)}

    def run(self, *words: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "hms_gateway", *words]
        variables = {**os.environ, **self.environment}
        return subprocess.run(command, capture_output=True, text=True, env=variables, timeout=PATIENCE_SECONDS)


class Gateway(GatewayServer):
    """A gateway of a release, or of this tree for None."""

    def __init__(
        self,
        folder: Path,
        database: str,
        release: Release | None,
        port: int | None = None,
        settings: Mapping[str, object] = SETTINGS,
    ) -> None:
        environment = None if release is None else release.environment
        super().__init__(folder, database=database, settings=settings, environment=environment)
        self._release = release
        self.port = self.port if port is None else port

    def _command(self) -> list[str]:
        command = super()._command()
        return command if self._release is None else [sys.executable, "-m", "hms_gateway", *command[1:]]


def this_tree(*words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "hms_gateway", *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=PATIENCE_SECONDS)


class Writers(Load):
    """Each of them also adds partitions to a table of its own, takes a lock on it and gives it back."""

    def _change_and_read(self, connection: http.client.HTTPSConnection, name: str, value: int) -> None:
        super()._change_and_read(connection, name, value)
        if value == 1:
            self._call(connection, f"[1,{NEW_TABLE % name}]")
        table = f'"2":{{"str":"default"}},"3":{{"str":"{name}"}}'
        descriptor = '{"1":{"lst":["rec",1,{"1":{"str":"a"},"2":{"str":"int"}}]},"7":{"rec":{}}}'
        partition = f'{{"1":{{"lst":["str",1,"{value}"]}},{table},"6":{{"rec":{descriptor}}}}}'
        self._call(connection, f'[1,"add_partition",1,1,{{"1":{{"rec":{partition}}}}}]')
        assert self.partitions(connection, name) == value
        component = f'{{"1":{{"i32":3}},"2":{{"i32":2}},"3":{{"str":"default"}},"4":{{"str":"{name}"}}}}'
        request = f'{{"1":{{"lst":["rec",1,{component}]}},"3":{{"str":"u"}},"4":{{"str":"h"}}}}'
        lock = self._call(connection, f'[1,"lock",1,1,{{"1":{{"rec":{request}}}}}]')["0"]["rec"]
        assert lock["2"]["i32"] == 1, lock
        self._call(connection, f'[1,"unlock",1,1,{{"1":{{"rec":{{"1":{{"i64":{lock["1"]["i64"]}}}}}}}}}]')

    def partitions(self, connection: http.client.HTTPSConnection, name: str) -> int:
        """The number of partitions that the metastore lists."""
        asked = f'{{"1":{{"str":"default"}},"2":{{"str":"{name}"}},"3":{{"i16":-1}}}}'
        _, count, *names = self._call(connection, f'[1,"get_partition_names",1,1,{asked}]')["0"]["lst"]
        assert len(set(names)) == count
        return count


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.postgres
@pytest.mark.parametrize("version", ["0.2.0"])
def test_no_call_fails_and_no_write_is_lost_on_the_way_up_and_down(
    version: str, fresh_postgres_database: str, tmp_path: Path
) -> None:
    release = Release(version, tmp_path)
    url, folder = fresh_postgres_database, tmp_path / "replicas"
    assert release.run("migrate", "--database", url).returncode == 0
    with ExitStack() as servers:
        running = [servers.enter_context(Gateway(folder, url, release)) for _ in range(2)]
        with (
            proxy("nginx", [one.port for one in running], folder, tmp_path) as port,
            Writers(port, running[0]) as load,
        ):

            def replace_all(by: Release | None) -> None:
                load.wait_for_more()
                for number, old in enumerate(running):
                    assert old.stop() == 0
                    load.wait_for_more()
                    running[number] = servers.enter_context(Gateway(folder, url, by, old.port))
                    load.wait_for_more()

            load.wait_for_more()
            assert "from revision 0017 to revision" in this_tree("migrate", "--database", url).stdout
            replace_all(None)
            with pytest.raises(ServerDidNotStart, match=f"revision {REVISION}, this program needs 0017"):
                Gateway(folder, url, release).start()
            done = this_tree("migrate", "--revision", release.revision, "--database", url)
            assert "the tables stay as they are" in done.stdout, done.stderr
            replace_all(release)
            assert this_tree("migrate", "--database", url).stdout.endswith("done\n")
            load.wait_for_more()
    assert load.failures == []


@pytest.mark.whole
@pytest.mark.slow
@pytest.mark.postgres
def test_gateways_before_0_2_take_no_turns(fresh_postgres_database: str, tmp_path: Path) -> None:
    """A gateway of 0.1.0 is stopped before the upgrade, and the way back is a backup."""
    release = Release("0.1.0", tmp_path)
    url, folder, settings = fresh_postgres_database, tmp_path / "var", {"authorization": None}
    assert release.run("migrate", "--database", url).returncode == 0
    with Gateway(folder, url, release, settings=settings) as old:
        assert old.post(CREATE)[0] == 200
    assert this_tree("migrate", "--database", url).returncode == 0
    with Gateway(folder, url, None, settings=settings) as new:
        assert b'"before"' in new.post(CALL)[1]
    refused = this_tree("migrate", "--revision", release.revision, "--database", url)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert "0017" in refused.stderr
    with pytest.raises(ServerDidNotStart, match=f"revision {REVISION}, this program needs 0010"):
        Gateway(folder, url, release, settings=settings).start()
