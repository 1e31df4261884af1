"""The manifests of deploy/kubernetes at work: containers as processes (pods.py), probes, Services, Secrets."""

import contextlib
import sys
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

import httpx
import pytest
import trustme

from hms_gateway.gateway.auth.tokens import create_token
from hms_gateway.gateway.auth.users import add_user
from tests.deploy.knox import SERVICE as KNOX_SERVICE
from tests.deploy.knox import Account, knox
from tests.deploy.pods import POLL_SECONDS, Cluster, Pod, manifests_of, needs_helm, only, rendered
from tests.support.certificates import der_of, shown_by, write_certificate
from tests.support.patience import until
from tests.support.private_postgres import PostgresUnavailable, PrivatePostgres
from tests.support.server import API_PATH, basic, free_port, trusting
from tools.kubernetes import MANIFESTS, ROOT

SERVICE, EXTERNAL, PORT = "hms-gateway", "gateway-svc-external", 30443
ALL = '[1,"get_all_databases",1,1,{}]'
DATABASES = {"0": {"lst": ["str", 1, "default"]}}
ADMIN = basic("admin", "first password")
# A call over Thrift, as Spark's client makes it.
DRIVER = """
from types import SimpleNamespace
from tests.bridge.bridge_process import connected
with connected(SimpleNamespace(port=9083)) as client:
    print(client.get_all_databases())
"""
Secret = dict[str, bytes]
pytestmark = pytest.mark.slow


def certificate(folder: Path) -> Secret:
    """A Secret of the type kubernetes.io/tls."""
    write_certificate(folder / "tls.crt", folder / "tls.key")
    return {name: (folder / name).read_bytes() for name in ("tls.crt", "tls.key")}


def logins(folder: Path, password: str, user: str = "admin") -> tuple[Secret, str]:
    """A Secret with the password of admin and a token of the user, and the token."""
    for name in ("users", "tokens"):
        (folder / name).unlink(missing_ok=True)
    add_user(folder / "users", "admin", password)
    token, _ = create_token(folder / "tokens", user, now=int(time.time()), seconds=3600)
    return {name: (folder / name).read_bytes() for name in ("users", "tokens")}, token


@pytest.fixture
def secrets(tmp_path: Path) -> Path:
    """A folder for what becomes Secrets."""
    folder = tmp_path / "secrets"
    folder.mkdir()
    return folder


def call(
    address: tuple[str, int], headers: Mapping[str, str], body: str = ALL, scheme: str = "https"
) -> tuple[int, object]:
    host, port = address
    url = f"{scheme}://{host}:{port}{API_PATH}"
    answer = httpx.post(url, content=body, headers=dict(headers), verify=trusting(), timeout=60)
    return answer.status_code, answer.json()[4]


def bearer(token: str) -> dict[str, str]:
    return {"Authorization": f"Bearer {token}"}


def facts_of(pid: int) -> dict[str, str]:
    """What the kernel says of a process."""
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {name: value for name, _, value in (line.partition(":\t") for line in lines)}


def test_a_client_sees_a_new_certificate_password_and_token_without_a_restart(tmp_path: Path, secrets: Path) -> None:
    """Of the Service that the protocol's description names."""
    manifests = manifests_of(MANIFESTS / "external" / "manifests.yaml")
    first, token = logins(secrets, "first password")
    contents = {"hms-gateway-tls": certificate(secrets), "hms-gateway-logins": first}
    cluster = Cluster(tmp_path, manifests, contents, ["hms-gateway-data"])
    with cluster.pod("gateway", only("Deployment", manifests)["spec"]["template"]) as pod:
        until(pod.is_ready, "not ready", POLL_SECONDS)
        address = cluster.address_of(EXTERNAL, PORT)
        assert call(address, ADMIN) == call(address, bearer(token)) == (200, DATABASES)
        assert shown_by(address[1]) == der_of(secrets / "tls.crt")
        [pid] = pod.pids()
        facts = facts_of(pid)
        assert (facts["Uid"].split()[0], facts["Gid"].split()[0]) == ("10001", "10001")
        assert (facts["NoNewPrivs"], int(facts["CapBnd"], 16)) == ("1", 0)
        assert (cluster.claims["hms-gateway-data"] / "metastore.db").stat().st_uid == 10001

        cluster.update("hms-gateway-tls", certificate(secrets))
        second, newer = logins(secrets, "second password")
        cluster.update("hms-gateway-logins", second)
        until(
            lambda: shown_by(address[1]) == der_of(secrets / "tls.crt"),
            "the new certificate is not shown",
            POLL_SECONDS,
        )
        until(
            lambda: call(address, basic("admin", "second password"))[0] == 200,
            "the new password is refused",
            POLL_SECONDS,
        )
        until(lambda: call(address, bearer(newer))[0] == 200, "the new token is refused", POLL_SECONDS)
        assert [call(address, login)[0] for login in (ADMIN, bearer(token))] == [401, 401]
        assert pod.pids() == [pid]
        assert pod.stop() == [0]


@pytest.fixture
def database() -> Iterator[str]:
    """URL of an empty database that pods reach: by TCP, since their /tmp is their own."""
    port = free_port()
    try:
        server = PrivatePostgres(port)
    except PostgresUnavailable as reason:
        pytest.skip(f"no PostgreSQL: {reason}")
    try:
        server.start()
        yield f"postgresql+psycopg://postgres@127.0.0.1:{port}/postgres"
    finally:
        server.delete()


def on_postgres(case: str, folder: Path, secrets: Path, database: str, **more: Secret) -> Cluster:
    """The cluster of a case, with the job that makes the tables done."""
    manifests = [one for name in (case, "migrate") for one in manifests_of(MANIFESTS / name / "manifests.yaml")]
    contents = {
        "hms-gateway-database": {"url": database.encode()},
        "hms-gateway-tls": certificate(secrets),
        "hms-gateway-logins": logins(secrets, "first password")[0],
        **more,
    }
    cluster = Cluster(folder, manifests, contents, ["warehouse"])
    job = only("Job", manifests, "hms-gateway-migrate")["spec"]["template"]
    cluster.pod("migrate", job).run(job["spec"]["containers"][0])
    return cluster


@contextlib.contextmanager
def replicas(cluster: Cluster) -> Iterator[list[Pod]]:
    """As many as the Deployment says, all ready."""
    spec = only("Deployment", cluster.manifests)["spec"]
    with contextlib.ExitStack() as pods:
        started = [
            pods.enter_context(cluster.pod(f"gateway-{number}", spec["template"])) for number in range(spec["replicas"])
        ]
        for pod in started:
            until(pod.is_ready, "not ready", POLL_SECONDS)
        yield started


@pytest.mark.whole
@pytest.mark.postgres
def test_replicas_serve_one_catalog_and_a_stopped_one_is_no_endpoint(
    tmp_path: Path, secrets: Path, database: str
) -> None:
    cluster = on_postgres("postgresql", tmp_path, secrets, database)
    with replicas(cluster) as (first, second):
        made = '[1,"create_database",1,1,{"1":{"rec":{"1":{"str":"sales"}}}}]'
        assert call(("127.0.0.1", first.port("https")), ADMIN, made) == (200, {})
        assert (cluster.claims["warehouse"] / "sales.db").is_dir()
        both = (200, {"0": {"lst": ["str", 2, "default", "sales"]}})
        assert call(("127.0.0.1", second.port("https")), ADMIN) == both
        assert cluster.address_of(SERVICE, PORT)[1] == first.port("https")
        assert first.stop() == [0]
        address = cluster.address_of(SERVICE, PORT)
        assert (address[1], call(address, ADMIN)) == (second.port("https"), both)


@pytest.mark.whole
@pytest.mark.postgres
def test_knox_behind_the_protocols_service_names_the_user_by_its_certificate(
    tmp_path: Path, secrets: Path, database: str
) -> None:
    authority = trustme.CA()
    shown = secrets / "knox.pem"
    authority.issue_cert("knox").private_key_and_cert_chain_pem.write_to_path(shown)
    trusted = {"ca.crt": authority.cert_pem.bytes()}
    cluster = on_postgres("knox", tmp_path, secrets, database, **{"knox-authority": trusted})
    [knox_port] = [one["targetPort"] for one in only("Service", cluster.manifests, EXTERNAL)["spec"]["ports"]]
    assert knox_port == 8443
    service = KNOX_SERVICE.read_text("utf-8").replace("<dispatch ", '<dispatch use-two-way-ssl="true" ')
    ann, granted = basic("ann", "of Knox"), '[1,"create_role",1,1,{"1":{"rec":{"1":{"str":"analysts"}}}}]'

    def gateway() -> str:
        host, port = cluster.address_of(SERVICE, PORT)
        return f"https://{host}:{port}{API_PATH}"

    with replicas(cluster), knox(gateway, {"ann": Account("of Knox")}, secrets, service, shown) as port:
        # Rights are on: ann sees nothing of others, and may make no roles.
        status, answer = call(("127.0.0.1", port), ann, granted)
        assert (status, "ann" in str(answer)) == (200, True), answer
        assert call(("127.0.0.1", port), ann)[0] == 200
        assert call(cluster.address_of(SERVICE, PORT), {"X-Knox-Actor-ID": "ann"})[0] == 401


@needs_helm
@pytest.mark.whole
def test_the_first_password_comes_from_a_secret_and_probes_speak_http_where_there_is_no_tls(
    tmp_path: Path, secrets: Path
) -> None:
    manifests = rendered('settings={"tls":false}', 'admin={"secret":"first"}', release=SERVICE)
    cluster = Cluster(tmp_path, manifests, {"first": {"password": b"first password\n"}}, ["hms-gateway-data"])
    with cluster.pod("gateway", only("Deployment", manifests)["spec"]["template"]) as pod:
        until(pod.is_ready, "not ready", POLL_SECONDS)
        assert call(cluster.address_of(SERVICE, PORT), ADMIN, scheme="http") == (200, DATABASES)
        assert pod.stop() == [0]


@pytest.mark.whole
def test_the_bridge_beside_a_spark_driver_calls_with_its_token(tmp_path: Path, secrets: Path) -> None:
    manifests = manifests_of(MANIFESTS / "external" / "manifests.yaml")
    tls, (users, token) = certificate(secrets), logins(secrets, "first password", user="spark")
    contents = {
        "hms-gateway-tls": tls,
        "hms-gateway-logins": users,
        "hms-gateway-bridge": {"token": token.encode(), "ca.crt": tls["tls.crt"]},
    }
    [driver] = manifests_of(MANIFESTS / "spark" / "driver.yaml")
    [bridge] = driver["spec"]["initContainers"]
    [spark] = driver["spec"]["containers"]
    driver["spec"]["containers"] = []
    thrift, health = free_port(), free_port()
    addresses = {
        "--port=9083": f"--port={thrift}",
        "--health-port=9084": f"--health-port={health}",
        "127.0.0.1:9084": f"127.0.0.1:{health}",
    }
    cluster = Cluster(tmp_path, manifests, contents, ["hms-gateway-data"], addresses)
    with cluster.pod("gateway", only("Deployment", manifests)["spec"]["template"]) as gateway:
        until(gateway.is_ready, "not ready", POLL_SECONDS)
        _, port = cluster.address_of(SERVICE, PORT)
        addresses["hms-gateway.metastore.svc:30443"] = f"localhost:{port}"
        with cluster.pod("driver", driver) as pod:
            [pid] = pod.pids()
            assert facts_of(pid)["Uid"].split()[0] == "185"
            # What Spark puts into the driver's container; the bridge takes calls of its own account only.
            code = DRIVER.replace("9083", str(thrift))
            variables = [{"name": "PYTHONPATH", "value": str(ROOT)}]
            filled = {"command": [sys.executable, "-c", code], "env": variables}
            pod.run({**spark, **filled, "securityContext": bridge["securityContext"]})
            assert pod.log(spark).read_text() == "['default']\n"
            assert pod.stop() == [0]
