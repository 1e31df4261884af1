"""The Helm chart and deploy/kubernetes: one is made from the other, and both agree with the program and the image."""

import math
import re
import tomllib
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from hms_gateway.runtime.settings_reading import load_settings
from hms_gateway.storage.writing.store import connections_wanted
from tests.deploy.pods import DOCKERFILE, Manifest, manifests_of, needs_helm, only, ran, rendered
from tools.kubernetes import CASES, CHART, HELM, MANIFESTS, ROOT, manifests, schema_path, schema_text

KUBECTL = HELM.with_name("kubectl")
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]["version"]
KUBERNETES = "1.37"
# max_connections of 100 without those for superusers.
POSTGRESQL_CONNECTIONS = 97
NO_EFFECT = "external.from has no effect"
READY = ["tls.secret=a", "logins.secret=b", "settings.warehouse_dir=file:/warehouse"]


def containers(case: str) -> Iterator[tuple[Manifest, Manifest]]:
    """Pod spec and container of each in the case, those that run before the others too."""
    for manifest in manifests_of(MANIFESTS / case / "manifests.yaml"):
        if manifest["kind"] in ("Deployment", "Job"):
            spec = manifest["spec"]["template"]["spec"]
            for container in [*spec.get("initContainers", []), *spec["containers"]]:
                yield spec, container


def test_the_schema_of_the_values_has_the_settings_of_the_program() -> None:
    text = schema_path().read_text("utf-8")
    assert schema_text(text) == text


@pytest.mark.parametrize("case", CASES)
def test_settings_are_accepted_and_a_stop_leaves_time_for_calls_in_flight(
    case: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    found = manifests_of(MANIFESTS / case / "manifests.yaml")
    for name, value in only("ConfigMap", found)["data"].items():
        monkeypatch.setenv(name, value)
    settings = load_settings()
    spec = only("Deployment", found)["spec"]["template"]["spec"]
    [gateway] = spec["containers"]
    before = int(gateway["lifecycle"]["preStop"]["exec"]["command"][1])
    needed = before + settings.limits.drain_seconds_max + settings.drain_idle_seconds + 5
    assert spec["terminationGracePeriodSeconds"] >= math.ceil(needed)
    assert settings.tls == (gateway["readinessProbe"]["httpGet"]["scheme"] == "HTTPS")
    assert gateway["ports"] == [{"name": "https", "containerPort": 30443}]


@pytest.mark.parametrize("case", ["postgresql", "knox"])
def test_the_pods_of_the_overlay_a_new_one_and_one_that_ends_find_connections(case: str) -> None:
    overlay = (MANIFESTS / "example" / "kustomization.yaml").read_text()
    [count] = re.findall(r"^    count: (\d+)$", overlay, re.MULTILINE)
    data = only("ConfigMap", manifests_of(MANIFESTS / case / "manifests.yaml"))["data"]
    each = connections_wanted(int(data["HMS_GATEWAY_DATABASE_CONNECTIONS_MAX"]))
    assert (int(count) + 2) * each <= POSTGRESQL_CONNECTIONS


@pytest.mark.parametrize("case", [*CASES, "migrate"])
def test_containers_have_the_account_and_the_rights_of_the_image_and_no_others(case: str) -> None:
    [user] = re.findall(r"^USER (\d+):\1$", DOCKERFILE, re.MULTILINE)
    for spec, container in containers(case):
        account = spec["securityContext"]
        assert (account["runAsUser"], account["runAsNonRoot"]) == (int(user), True)
        assert container["image"] == f"hms-gateway:{VERSION}"
        assert container["securityContext"] == {
            "allowPrivilegeEscalation": False,
            "readOnlyRootFilesystem": True,
            "capabilities": {"drop": ["ALL"]},
        }


@pytest.mark.slow
@needs_helm
def test_the_manifests_are_those_that_helm_makes() -> None:
    for path, text in manifests():
        assert path.read_text("utf-8") == text, f"{path}: .venv/bin/python -m tools kubernetes writes it"


@pytest.mark.slow
@needs_helm
@pytest.mark.parametrize(
    "values", [None, *(pytest.param(values, marks=pytest.mark.whole) for values in CASES.values() if values)]
)
def test_helm_finds_no_fault(values: str | None) -> None:
    chosen = [] if values is None else ["--values", str(CHART / values)]
    linted = ran(HELM, "lint", "--strict", str(CHART), *chosen)
    assert linted.returncode == 0, linted.stdout


@pytest.mark.slow
@needs_helm
def test_values_reach_the_pods_their_policy_and_their_services() -> None:
    found = rendered(
        'settings={"tls":false,"thrift_port":9083,"thrift_sasl":"require","drain_idle_seconds":0,'
        '"limits":{"drain_seconds_max":99.5,"body_bytes_max":1000000000}}',
        'external={"type":"NodePort","nodePort":30443,"from":["10.0.0.0/8"]}',
        'pod={"spec":{"nodeSelector":{"disk":"fast"}}}',
    )
    spec = only("Deployment", found, "one")["spec"]["template"]["spec"]
    [gateway] = spec["containers"]
    assert gateway["livenessProbe"]["httpGet"]["scheme"] == "HTTP"
    assert (spec["terminationGracePeriodSeconds"], spec["nodeSelector"]) == (115, {"disk": "fast"})
    data = only("ConfigMap", found, "one")["data"]
    assert data["HMS_GATEWAY_LIMITS"] == '{"body_bytes_max":1000000000,"drain_seconds_max":99.5}'
    assert (data["HMS_GATEWAY_TLS"], data["HMS_GATEWAY_THRIFT_HOST"]) == ("false", "0.0.0.0")
    inside, outside = only("NetworkPolicy", found, "one")["spec"]["ingress"]
    assert inside == {"from": [{"podSelector": {}}], "ports": [{"port": "https"}, {"port": "thrift"}]}
    assert outside == {"from": [{"ipBlock": {"cidr": "10.0.0.0/8"}}], "ports": [{"port": "https"}]}
    [port] = only("Service", found, "gateway-svc-external")["spec"]["ports"]
    assert (port["port"], port["nodePort"]) == (30443, 30443)


@pytest.mark.slow
@needs_helm
def test_the_job_has_what_reaches_the_database_and_nothing_of_tables() -> None:
    found = rendered(
        'database={"secret":"d"}',
        *('tls={"secret":"t"}', 'logins={"secret":"l"}', "replicas=2"),
        'settings={"warehouse_dir":"file:/warehouse","trusted_proxy":{"user_header":"X-User","addresses":["10.0.0.1"]}}',
        'volumes=[{"name":"warehouse","persistentVolumeClaim":{"claimName":"w"}},'
        '{"name":"authority","secret":{"secretName":"a"}}]',
        'mounts=[{"name":"warehouse","mountPath":"/warehouse"},{"name":"authority","mountPath":"/authority"}]',
        'environment=[{"name":"PGSSLROOTCERT","value":"/authority/ca.crt"},'
        '{"name":"HMS_GATEWAY_TRUSTED_PROXY__SECRET","value":"s"}]',
        'pod={"spec":{"nodeSelector":{"disk":"fast"}},"labels":{"may":"database","app.kubernetes.io/name":"no"}}',
    )
    template = only("Job", found, "one-migrate")["spec"]["template"]
    assert template["metadata"]["labels"]["may"] == "database"
    # Else the Services would lead to it.
    assert template["metadata"]["labels"]["app.kubernetes.io/name"] == "hms-gateway-migrate"
    assert template["spec"]["nodeSelector"] == {"disk": "fast"}
    assert [one["name"] for one in template["spec"]["volumes"]] == ["authority"]
    [container] = template["spec"]["containers"]
    assert container["volumeMounts"] == [{"name": "authority", "mountPath": "/authority"}]
    # A setting of a table without the others would be refused.
    assert [one["name"] for one in container["env"]] == ["HMS_GATEWAY_DATABASE_URL", "PGSSLROOTCERT"]


@pytest.mark.slow
@needs_helm
@pytest.mark.parametrize(
    ("values", "text"),
    [
        (["replicas=2"], "replicas is more than 1 on SQLite; set database.secret"),
        (["settings.body_bytes=1"], "'body_bytes' not allowed"),
        *(
            pytest.param(*one, marks=pytest.mark.whole)
            for one in (
                (["database.secret=d", *READY[1:]], "tls.secret is not set"),
                (["database.secret=d", READY[0], READY[2]], "logins.secret is not set"),
                (["database.secret=d", *READY[:2]], "settings.warehouse_dir is not set"),
                (["settings.client_certificates.use=require"], "settings.client_certificates.use is require"),
                (["settings.limits.body_bytes_max=much"], "settings/limits/body_bytes_max"),
                (["settings.database_url=sqlite://"], "'database_url' not allowed"),
                (["replica=2"], "'replica' not allowed"),
                (["external.type=Ingress"], "external/type"),
                (["external.type=NodePort", "external.from={10.0.0.0/8}", "external.selector.app=knox"], NO_EFFECT),
                (["external.type=NodePort", "external.from={10.0.0.0/8}", "networkPolicy.enabled=false"], NO_EFFECT),
                (["pod.spec.volumes=[]"], "pod/spec/volumes"),
            )
        ),
    ],
)
def test_helm_refuses_values_by_their_names(values: list[str], text: str) -> None:
    refused = ran(HELM, "template", "one", str(CHART), *(word for value in values for word in ("--set", value)))
    assert refused.returncode != 0
    assert text in refused.stderr, refused.stderr


@pytest.mark.slow
@needs_helm
def test_the_overlay_builds_with_its_own_image_settings_and_bucket() -> None:
    built = ran(KUBECTL, "kustomize", str(MANIFESTS / "example"))
    assert built.returncode == 0, built.stderr
    found: list[Any] = list(yaml.safe_load_all(built.stdout))
    assert {one["metadata"].get("namespace") for one in found} == {"metastore"}
    deployment = only("Deployment", found)["spec"]
    assert deployment["replicas"] == 3
    spec = deployment["template"]["spec"]
    assert {one["image"] for one in [*spec["initContainers"], *spec["containers"]]} == {
        f"registry.example.org/hms-gateway:{VERSION}"
    }
    assert "warehouse" not in [one["name"] for one in spec["volumes"]]
    assert only("ConfigMap", found)["data"]["HMS_GATEWAY_WAREHOUSE_DIR"].startswith("s3a://")
    built = ran(KUBECTL, "kustomize", str(MANIFESTS / "example" / "migrate"))
    assert built.returncode == 0, built.stderr
    [job] = yaml.safe_load_all(built.stdout)
    assert job["metadata"]["namespace"] == "metastore"
    assert job["spec"]["template"]["spec"]["containers"][0]["image"] == f"registry.example.org/hms-gateway:{VERSION}"
    assert f"image: hms-gateway:{VERSION}\n" in (MANIFESTS / "spark" / "driver.yaml").read_text("utf-8")


@pytest.mark.slow
def test_kubernetes_knows_every_field() -> None:
    checked = pytest.importorskip("kubernetes_validate", reason="no kubernetes-validate (scripts/peers installs it)")
    for path in [*MANIFESTS.rglob("manifests.yaml"), MANIFESTS / "spark" / "driver.yaml"]:
        for manifest in manifests_of(path):
            checked.validate(manifest, KUBERNETES, strict=True)
    manifest["spec"]["replica"] = 1
    with pytest.raises(checked.ValidationError):
        checked.validate(manifest, KUBERNETES, strict=True)
