"""Writes docs/methods.md: every method of the IDL, who knows and calls it, how it is answered, what proves it."""

import importlib
import inspect
import pkgutil
from collections.abc import Iterator, Mapping
from pathlib import Path

import hms_gateway.catalog
import hms_gateway.handlers
from hms_gateway.rpc.idl.method_facts import method_facts
from hms_gateway.rpc.idl.model import exception_names, signature
from hms_gateway.rpc.structs import IDL, METHODS, Method

# Services of ours, which Hive does not have, and the titles of their sections.
_OWN_SERVICES = {
    "HiveLease": "Leases",
    "HiveLock": "Locks, for operators",
    "HivePeople": "The catalog, for people",
    "HiveAudit": "Who changed what",
}

_OPENING = """\
# Methods

Written by `python -m tools methods` from `schema/hive_metastore.thrift`, the handlers, `schema/methods.txt` and
the tests; do not edit.

A method that is not here answers as Hive does for a method it does not know: the application exception
`Invalid method name`, which clients take as the sign to try an older call.

* **Dialects**: which generations of clients know the method; all of them may be called on every path.
* **Status**: "answered", or what is special. `docs/differences.md` lists where an answer is not the one of Hive 2.3.
* **Exceptions**: the declared ones. Where there are none, or MetaException is not among them, a senseless call is
  answered with an application exception, as in Hive.
* **Called by**: the known clients that call it. Hive 2.3, 3.1 and 4 are the Java libraries of these generations, which
  Hive itself, Spark, Flink, Hudi and Impala are built on.
* **Proof**: a test that calls it. The tests of `test_corpus.py` compare with recorded answers of the real metastore.
* **Signature**: in its longest form; callers that know fewer arguments leave the rest out.
"""

# What is to be said of a method besides that it is answered.
_STATUS: Mapping[str, str] = {
    **dict.fromkeys(
        ("get_file_metadata_by_expr", "get_file_metadata", "put_file_metadata", "cache_file_metadata"),
        "not supported, and says so as Hive does",
    ),
    "clear_file_metadata": "nothing to clear",
    **dict.fromkeys(("flushCache", "reinitialize", "shutdown", "cm_recycle"), "nothing to do"),
    "setMetaConf": "checked, not kept",
    "get_materialization_invalidation_info": "answered; where Hive does not know and has no result, all has changed",
    "set_ugi": "answered; the caller is whom the transport knows",
    "setOption": "kept until the process ends, without effect",
    "getCpuProfile": "always empty",
}


def methods_path() -> Path:
    """Where the document lies in the source tree."""
    return source_root() / "docs" / "methods.md"


def source_root() -> Path:
    """The source tree; an installed package has no documents."""
    return Path(__file__).resolve().parent.parent


def methods_text(handlers: Mapping[str, type], proofs: Mapping[str, str]) -> str:
    """The whole document. `handlers` has the handler class of each method, `proofs` the test that proves it."""
    return "\n".join(_lines(handlers, proofs)) + "\n"


def named_proofs(text: str) -> dict[str, str]:
    """Method and test out of the rows of the document."""
    rows = (line.split(" | ") for line in text.splitlines() if line.startswith("| `"))
    return {row[0].strip("| `"): row[5].strip("`") for row in rows}


def answering_classes() -> dict[str, type]:
    """The class that answers each method, by method name: those of `catalog` and `handlers`, as they stand."""
    packages = (hms_gateway.catalog, hms_gateway.handlers)
    found = (each for package in packages for each in pkgutil.walk_packages(package.__path__, f"{package.__name__}."))
    modules = (importlib.import_module(module.name) for module in found)
    return {
        name: handler
        for module in modules
        for _, handler in inspect.getmembers(module, inspect.isclass)
        if handler.__module__ == module.__name__
        for name, _ in inspect.getmembers(handler, inspect.isfunction)
        if name in METHODS
    }


def _lines(handlers: Mapping[str, type], proofs: Mapping[str, str]) -> Iterator[str]:
    yield _OPENING
    yield f"All {len(METHODS)} methods are answered."
    for title, methods in _sections().items():
        yield f"\n## {title}\n"
        yield "| method | dialects | status | exceptions | called by | proof | signature |"
        yield "|---|---|---|---|---|---|---|"
        for method in methods:
            cells = _cells(method, handlers[method.name], proofs.get(method.name, "none"))
            yield f"| {' | '.join(cells)} |"


def _cells(method: Method, handler: type, proof: str) -> list[str]:
    return [
        f"`{method.name}`",
        method_facts()[method.name].known_to,
        f"{_STATUS.get(method.name, 'answered')} (`{handler.__name__}`)",
        ", ".join(exception_names(method.definition)) or "–",
        method_facts()[method.name].called_by or "–",
        f"`{proof}`",
        f"`{signature(method.definition)}`",
    ]


def _sections() -> dict[str, list[Method]]:
    """The methods by service, in order of their declaration; what the metastore inherits stands apart."""
    inherited = {method.name for method in IDL.services["FacebookService"].methods}
    sections: dict[str, list[Method]] = {"Metastore": [], "Service (fb303)": []}
    sections |= {title: [] for title in _OWN_SERVICES.values()}
    for method in METHODS.values():
        if method.service in _OWN_SERVICES:
            sections[_OWN_SERVICES[method.service]].append(method)
        else:
            sections["Service (fb303)" if method.name in inherited else "Metastore"].append(method)
    return sections
