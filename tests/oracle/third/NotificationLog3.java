import java.util.Collections;
import java.util.Iterator;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.MetaStoreEventListener;
import org.apache.hadoop.hive.metastore.api.Catalog;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.Function;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.metastore.api.NotificationEvent;
import org.apache.hadoop.hive.metastore.api.Table;
import org.apache.hadoop.hive.metastore.events.*;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.EventMessage.EventType;
import org.apache.hadoop.hive.metastore.messaging.MessageFactory;
import org.apache.hadoop.hive.metastore.messaging.PartitionFiles;

/** NotificationLog with 3.1.3's messages: its jars lack the listener too. */
public class NotificationLog3 extends MetaStoreEventListener {
    private final MessageFactory messages = MessageFactory.getInstance();

    public NotificationLog3(Configuration conf) {
        super(conf);
    }

    private void write(ListenerEvent from, EventType type, String catalog, String db, String table, EventMessage message)
            throws MetaException {
        NotificationEvent event = new NotificationEvent(
            0, (int) (System.currentTimeMillis() / 1000), type.toString(), message.toString());
        event.setCatName(catalog);
        event.setDbName(db);
        event.setTableName(table);
        event.setMessageFormat(messages.getMessageFormat());
        from.getIHMSHandler().getMS().addNotificationEvent(event);
    }

    private void write(ListenerEvent from, EventType type, Table table, EventMessage message) throws MetaException {
        write(from, type, table.getCatName(), table.getDbName(), table.getTableName(), message);
    }

    private void write(ListenerEvent from, EventType type, Database db, EventMessage message) throws MetaException {
        write(from, type, db.getCatalogName(), db.getName(), null, message);
    }

    @Override public void onCreateCatalog(CreateCatalogEvent e) throws MetaException {
        Catalog made = e.getCatalog();
        write(e, EventType.CREATE_CATALOG, made.getName(), null, null, messages.buildCreateCatalogMessage(made));
    }

    @Override public void onDropCatalog(DropCatalogEvent e) throws MetaException {
        Catalog gone = e.getCatalog();
        write(e, EventType.DROP_CATALOG, gone.getName(), null, null, messages.buildDropCatalogMessage(gone));
    }

    @Override public void onCreateDatabase(CreateDatabaseEvent e) throws MetaException {
        write(e, EventType.CREATE_DATABASE, e.getDatabase(), messages.buildCreateDatabaseMessage(e.getDatabase()));
    }

    @Override public void onAlterDatabase(AlterDatabaseEvent e) throws MetaException {
        Database before = e.getOldDatabase();
        write(e, EventType.ALTER_DATABASE, before, messages.buildAlterDatabaseMessage(before, e.getNewDatabase()));
    }

    @Override public void onDropDatabase(DropDatabaseEvent e) throws MetaException {
        write(e, EventType.DROP_DATABASE, e.getDatabase(), messages.buildDropDatabaseMessage(e.getDatabase()));
    }

    @Override public void onCreateTable(CreateTableEvent e) throws MetaException {
        Iterator<String> none = Collections.emptyIterator();
        write(e, EventType.CREATE_TABLE, e.getTable(), messages.buildCreateTableMessage(e.getTable(), none));
    }

    @Override public void onDropTable(DropTableEvent e) throws MetaException {
        write(e, EventType.DROP_TABLE, e.getTable(), messages.buildDropTableMessage(e.getTable()));
    }

    @Override public void onAlterTable(AlterTableEvent e) throws MetaException {
        write(e, EventType.ALTER_TABLE, e.getNewTable(),
            messages.buildAlterTableMessage(e.getOldTable(), e.getNewTable(), e.getIsTruncateOp()));
    }

    @Override public void onAddPartition(AddPartitionEvent e) throws MetaException {
        Iterator<PartitionFiles> none = Collections.emptyIterator();
        write(e, EventType.ADD_PARTITION, e.getTable(),
            messages.buildAddPartitionMessage(e.getTable(), e.getPartitionIterator(), none));
    }

    @Override public void onDropPartition(DropPartitionEvent e) throws MetaException {
        write(e, EventType.DROP_PARTITION, e.getTable(),
            messages.buildDropPartitionMessage(e.getTable(), e.getPartitionIterator()));
    }

    @Override public void onAlterPartition(AlterPartitionEvent e) throws MetaException {
        write(e, EventType.ALTER_PARTITION, e.getTable(), messages.buildAlterPartitionMessage(
            e.getTable(), e.getOldPartition(), e.getNewPartition(), e.getIsTruncateOp()));
    }

    @Override public void onCreateFunction(CreateFunctionEvent e) throws MetaException {
        Function f = e.getFunction();
        write(e, EventType.CREATE_FUNCTION, f.getCatName(), f.getDbName(), null, messages.buildCreateFunctionMessage(f));
    }

    @Override public void onDropFunction(DropFunctionEvent e) throws MetaException {
        Function f = e.getFunction();
        write(e, EventType.DROP_FUNCTION, f.getCatName(), f.getDbName(), null, messages.buildDropFunctionMessage(f));
    }

    @Override public void onInsert(InsertEvent e) throws MetaException {
        Iterator<String> files = e.getFiles() == null ? Collections.emptyIterator() : e.getFiles().iterator();
        write(e, EventType.INSERT, e.getTableObj(),
            messages.buildInsertMessage(e.getTableObj(), e.getPartitionObj(), e.isReplace(), files));
    }
}
