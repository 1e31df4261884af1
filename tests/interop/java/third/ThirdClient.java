import java.util.Collections;
import java.util.List;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.LockComponentBuilder;
import org.apache.hadoop.hive.metastore.LockRequestBuilder;
import org.apache.hadoop.hive.metastore.api.DataOperationType;
import org.apache.hadoop.hive.metastore.api.FieldSchema;
import org.apache.hadoop.hive.metastore.api.LockRequest;
import org.apache.hadoop.hive.metastore.api.LockResponse;
import org.apache.hadoop.hive.metastore.api.LockState;
import org.apache.hadoop.hive.metastore.api.Partition;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.api.TxnAbortedException;
import org.apache.hadoop.hive.metastore.client.builder.DatabaseBuilder;
import org.apache.hadoop.hive.metastore.client.builder.PartitionBuilder;
import org.apache.hadoop.hive.metastore.client.builder.TableBuilder;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;

/** Hive 3.1.3's own client: java -cp 'classes:libs/*' ThirdClient URI. What is not as expected ends it with status 1. */
public class ThirdClient {
    public static void main(String[] argv) throws Exception {
        Configuration conf = MetastoreConf.newMetastoreConf();
        MetastoreConf.setVar(conf, MetastoreConf.ConfVars.THRIFT_URIS, argv[0]);
        HiveMetaStoreClient client = new HiveMetaStoreClient(conf);
        new DatabaseBuilder().setName("third").create(client, conf);
        catalog(client, conf);
        transactions(client, conf);
        client.dropDatabase("third", true, false, true);
        expect(Collections.singletonList("default"), client.getAllDatabases());
        client.close();
        System.out.println("done");
    }

    static void catalog(HiveMetaStoreClient client, Configuration conf) throws Exception {
        Table made = new TableBuilder().setDbName("third").setTableName("t").addCol("id", "bigint")
            .addPartCol("ds", "string").create(client, conf);
        expect("t", made.getTableName());
        Table table = client.getTable("third", "t");
        table.getSd().addToCols(new FieldSchema("more", "string", "added"));
        client.alter_table("third", "t", table);
        expect(2, client.getTable("third", "t").getSd().getColsSize());
        for (String day : List.of("a", "b")) {
            new PartitionBuilder().inTable(table).addValue(day).addToTable(client, conf);
        }
        Partition part = client.getPartition("third", "t", "ds=a");
        part.putToParameters("seen", "yes");
        client.alter_partition("third", "t", part);
        expect("yes", client.getPartition("third", "t", List.of("a")).getParameters().get("seen"));
        expect(1, client.listPartitionsByFilter("third", "t", "ds > 'a'", (short) -1).size());
        part.setValues(List.of("c"));
        client.renamePartition("third", "t", List.of("a"), part);
        expect(List.of("ds=b", "ds=c"), client.listPartitionNames("third", "t", (short) -1));
        expect(true, client.dropPartition("third", "t", List.of("b"), true));
    }

    /** Two transactions that update the same table: the second waits, and is told of the conflict. */
    static void transactions(HiveMetaStoreClient client, Configuration conf) throws Exception {
        new TableBuilder().setDbName("third").setTableName("acid").addCol("id", "bigint")
            .setInputFormat("org.apache.hadoop.hive.ql.io.orc.OrcInputFormat")
            .setOutputFormat("org.apache.hadoop.hive.ql.io.orc.OrcOutputFormat")
            .addTableParam("transactional", "true").create(client, conf);
        List<Long> txns = client.openTxns("ann", 2).getTxn_ids();
        expect(1L, client.allocateTableWriteId(txns.get(0), "third", "acid"));
        LockResponse first = client.lock(update(txns.get(0)));
        expect(LockState.ACQUIRED, first.getState());
        LockResponse second = client.lock(update(txns.get(1)));
        expect(LockState.WAITING, second.getState());
        client.heartbeat(txns.get(0), first.getLockid());
        client.commitTxn(txns.get(0));
        expect(LockState.ACQUIRED, client.checkLock(second.getLockid()).getState());
        String seen = client.getValidTxns().writeToString();
        expect(1L, client.getValidWriteIds(List.of("third.acid"), seen).get(0).getWriteIdHighWaterMark());
        try {
            client.commitTxn(txns.get(1));
            throw new IllegalStateException("committed in spite of the conflict");
        } catch (TxnAbortedException expected) {
            expect(true, expected.getMessage().contains("write conflict"));
        }
        LockResponse shared = client.lock(new LockRequestBuilder("query").setUser("ann")
            .addLockComponent(table(new LockComponentBuilder().setShared(), DataOperationType.SELECT)).build());
        expect(LockState.ACQUIRED, shared.getState());
        client.unlock(shared.getLockid());
    }

    static LockRequest update(long txn) {
        LockComponentBuilder component = new LockComponentBuilder().setSemiShared();
        return new LockRequestBuilder("query").setUser("ann").setTransactionId(txn)
            .addLockComponent(table(component, DataOperationType.UPDATE)).build();
    }

    static org.apache.hadoop.hive.metastore.api.LockComponent table(LockComponentBuilder component, DataOperationType type) {
        component.setDbName("third").setTableName("acid").setOperationType(type).setIsTransactional(true);
        return component.build();
    }

    static void expect(Object wanted, Object found) {
        if (!wanted.equals(found)) {
            throw new IllegalStateException("expected " + wanted + ", found " + found);
        }
    }
}
