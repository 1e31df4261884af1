import pytest

from hms_gateway.handlers.steps import PresentedLease
from hms_gateway.metastore.changes.fencing import fenced
from hms_gateway.rpc.binding import methods_of
from hms_gateway.rpc.call import Call, Dialect
from hms_gateway.rpc.structs import METHODS, EnvironmentContext, InvalidOperationException
from tests.support.steps import through


def is_fenced(method_name, lease=None, **arguments):
    method = METHODS[method_name]
    work = object()
    call = Call("ann", lease=lease)
    is_fenced = through(PresentedLease(), method, call, method.arguments(**arguments), lambda: fenced(work) is not work)
    assert fenced(work) is work
    return is_fenced


def context(value):
    return EnvironmentContext({"hms.lease.id": value, "other": "1"})


def test_a_call_without_a_lease_is_not_fenced():
    assert not is_fenced("drop_table", dbname="d", name="t")
    assert not is_fenced("create_table_with_environment_context", environment_context=EnvironmentContext(None))
    assert not is_fenced("create_table_with_environment_context", environment_context=EnvironmentContext({}))


def test_a_header_fences_every_method():
    assert is_fenced("drop_table", "7", dbname="d", name="t")
    assert is_fenced("drop_table", " 7 ", dbname="d", name="t")


@pytest.mark.parametrize(
    "name",
    [
        name
        for name, method in METHODS.items()
        if any(getattr(field.type, "name", "") == "EnvironmentContext" for field in method.definition.arguments)
    ],
)
def test_so_does_the_environment_context_of_every_method_that_has_one(name):
    field = next(
        field.name
        for field in METHODS[name].definition.arguments
        if getattr(field.type, "name", "") == "EnvironmentContext"
    )
    assert is_fenced(name, **{field: context("7")})


def test_so_does_the_environment_context_of_a_request():
    request = METHODS["alter_table_req"].definition.arguments[0]
    from hms_gateway.rpc.structs import AlterTableRequest, DropPartitionsRequest

    assert is_fenced("alter_table_req", **{request.name: AlterTableRequest(environmentContext=context("7"))})
    assert is_fenced("drop_partitions_req", req=DropPartitionsRequest(environmentContext=context("7")))
    assert not is_fenced("drop_partitions_req", req=None)


def test_methods_of_leases_are_never_fenced():
    for name in ("grab_lease", "extend_lease", "drop_lease", "force_drop_lease", "list_lease"):
        assert not is_fenced(name, "7")


@pytest.mark.parametrize("text", ["", "x", "-1", "7.0", "7 8", "٧", "0x7"])
def test_what_is_no_lease_id_is_refused(text):
    with pytest.raises(InvalidOperationException, match="not a lease id"):
        is_fenced("drop_table", text)


def test_two_that_differ_are_refused_and_two_alike_are_one():
    name, field = "create_table_with_environment_context", "environment_context"
    assert is_fenced(name, "7", **{field: context("7")})
    with pytest.raises(InvalidOperationException, match="two leases, 7 and 8"):
        is_fenced(name, "7", **{field: context("8")})


def test_methods_of_the_newer_dialect_are_looked_into_alike():
    method = methods_of(Dialect.HIVE_4)["create_table_with_environment_context"]
    arguments = method.arguments(environment_context=context("7"))
    work = object()
    assert through(PresentedLease(), method, Call("ann"), arguments, lambda: fenced(work)) is not work
