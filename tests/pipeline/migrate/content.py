"""A catalog with every kind of object, for a metastore that has them all."""

from hms_gateway.rpc.structs import (
    AbortTxnRequest,
    AddForeignKeyRequest,
    AddPrimaryKeyRequest,
    AllocateTableWriteIdsRequest,
    CommitTxnRequest,
    Database,
    FieldSchema,
    HiveObjectPrivilege,
    HiveObjectRef,
    HiveObjectType,
    OpenTxnRequest,
    Order,
    PrincipalType,
    PrivilegeBag,
    PrivilegeGrantInfo,
    Role,
    SkewedInfo,
    SQLForeignKey,
    SQLPrimaryKey,
    StorageDescriptor,
    Table,
)
from tests.pipeline.content import Client, add_partitions, storage

ORC = "org.apache.hadoop.hive.ql.io.orc"
USER, ROLE = PrincipalType.USER, PrincipalType.ROLE


def fill_rest(client: Client, warehouse: str, *, transactional: bool = True, allocates: bool = False) -> None:
    """What `tests.pipeline.content.fill` does not make; a metastore without Hive's other jars has no ORC.

    One that `allocates` has ids of writes, which others take from their transactions.
    """
    client.call(
        "create_database",
        Database(
            name="everything",
            description="every kind",
            locationUri=f"file:{warehouse}/elsewhere/everything.db",
            parameters={"a": "1", "ä": "ö"},
            ownerName="tester",
            ownerType=ROLE,
        ),
    )
    _tables(client, warehouse)
    _constraints(client)
    _roles_and_grants(client)
    if transactional:
        client.call("create_table", table("rows", acid_storage(), {"transactional": "true", "comment": "ACID"}))
        _transactions(client, allocates)


def _tables(client: Client, warehouse: str) -> None:
    external = {"EXTERNAL": "TRUE", "transient_lastDdlTime": "1500000000", "numRows": "7"}
    place = f"file:{warehouse}/elsewhere/outside"
    client.call("create_table", table("outside", at(storage(("id", "int")), place), external, "EXTERNAL_TABLE"))
    client.call("create_table", table("wide", wide_storage(), {"bucketed": "yes"}, owner="other"))
    view = Table(
        dbName="everything",
        tableName="seen",
        owner="tester",
        tableType="VIRTUAL_VIEW",
        viewOriginalText="select * from wide",
        viewExpandedText="select `wide`.`id` from `everything`.`wide`",
        sd=storage(("id", "int")),
        partitionKeys=[],
        parameters={},
    )
    client.call("create_table", view)
    keys = [FieldSchema(name="ds", type="date", comment=None), FieldSchema(name="k", type="string", comment="key")]
    client.call("create_table", table("parts", storage(("id", "int")), {}, keys=keys))
    add_partitions(client, "everything", "parts", [["2024-01-01", "x=y/z"], ["2024-01-02", ""], ["2024-01-02", "ü %"]])
    own = client.call("get_partition", "everything", "parts", ["2024-01-01", "x=y/z"])
    own.sd = at(wide_storage(), f"file:{warehouse}/elsewhere/of its own")
    own.parameters = {"kept": "", "transient_lastDdlTime": "1500000001"}
    client.call("alter_partition", "everything", "parts", own)


def _transactions(client: Client, allocates: bool) -> None:
    """Ids of transactions are those of writes in 2.3: the second one does not count."""
    ids = client.call("open_txns", OpenTxnRequest(num_txns=3, user="tester", hostname="here")).txn_ids
    if allocates:
        client.call("allocate_table_write_ids", AllocateTableWriteIdsRequest("everything", "rows", txnIds=ids))
    client.call("abort_txn", AbortTxnRequest(txnid=ids[1]))
    for txn_id in (ids[0], ids[2]):
        client.call("commit_txn", CommitTxnRequest(txnid=txn_id))


def table(
    name: str,
    sd: StorageDescriptor,
    parameters: dict[str, str],
    kind: str = "MANAGED_TABLE",
    *,
    owner: str = "tester",
    keys: list[FieldSchema] | None = None,
) -> Table:
    return Table(
        dbName="everything",
        tableName=name,
        owner=owner,
        retention=3,
        sd=sd,
        partitionKeys=keys or [],
        parameters=parameters,
        tableType=kind,
    )


def at(sd: StorageDescriptor, location: str) -> StorageDescriptor:
    sd.location = location
    return sd


def acid_storage() -> StorageDescriptor:
    sd = storage(("id", "bigint"), ("note", "string"))
    sd.inputFormat, sd.outputFormat = f"{ORC}.OrcInputFormat", f"{ORC}.OrcOutputFormat"
    sd.numBuckets, sd.bucketCols = 2, ["id"]
    return sd


def wide_storage() -> StorageDescriptor:
    sd = storage(("id", "int"), ("amount", "decimal(10,2)"), ("tags", "map<string,array<struct<a:int,b:string>>>"))
    sd.numBuckets, sd.bucketCols = 4, ["id"]
    sd.sortCols = [Order(col="id", order=1), Order(col="amount", order=0)]
    sd.parameters = {"of the descriptor": "1"}
    sd.serdeInfo.parameters = {"field.delim": "\t", "serialization.format": "1"}
    sd.skewedInfo = SkewedInfo(skewedColNames=["id"], skewedColValues=[["1"], ["2"]], skewedColValueLocationMaps={})
    sd.storedAsSubDirectories = True
    return sd


def _constraints(client: Client) -> None:
    primary = SQLPrimaryKey("everything", "wide", "id", 1, "pk_wide", False, False, True)
    client.call("add_primary_key", AddPrimaryKeyRequest(primaryKeyCols=[primary]))
    foreign = SQLForeignKey(
        "everything", "wide", "id", "everything", "outside", "id", 1, 0, 0, "fk_outside", "pk_wide", False, False, True
    )
    client.call("add_foreign_key", AddForeignKeyRequest(foreignKeyCols=[foreign]))


def _roles_and_grants(client: Client) -> None:
    for role in ("readers", "writers"):
        client.call("create_role", Role(roleName=role, ownerName="tester"))
    client.call("grant_role", "readers", "ann", USER, "tester", USER, False)
    client.call("grant_role", "readers", "writers", ROLE, "tester", USER, True)
    client.call("grant_role", "writers", "bob", USER, "ann", ROLE, True)
    on = [
        (HiveObjectRef(HiveObjectType.GLOBAL), "CREATE"),
        (HiveObjectRef(HiveObjectType.DATABASE, "everything"), "ALTER"),
        (HiveObjectRef(HiveObjectType.TABLE, "everything", "wide"), "SELECT"),
        (HiveObjectRef(HiveObjectType.TABLE, "everything", "wide"), "DROP"),
        (HiveObjectRef(HiveObjectType.COLUMN, "everything", "wide", None, "amount"), "UPDATE"),
    ]
    grants = [
        HiveObjectPrivilege(ref, "readers", ROLE, PrivilegeGrantInfo(privilege, 0, "tester", USER, number % 2 == 0))
        for number, (ref, privilege) in enumerate(on)
    ]
    client.call("grant_privileges", PrivilegeBag(grants))
