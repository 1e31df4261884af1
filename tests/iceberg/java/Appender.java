import java.util.Map;
import org.apache.hadoop.conf.Configuration;
import org.apache.iceberg.DataFile;
import org.apache.iceberg.DataFiles;
import org.apache.iceberg.Schema;
import org.apache.iceberg.Table;
import org.apache.iceberg.catalog.TableIdentifier;
import org.apache.iceberg.hive.HiveCatalog;
import org.apache.iceberg.types.Types;

/**
 * Iceberg's own catalog, which takes its MetastoreLock for each commit. Arguments: URI, database, table, FIRST, COUNT.
 * Creates the table where it is missing, appends COUNT files from FIRST on in a commit each, and prints the names of
 * all files of the table. No file is read, so none is written.
 */
public class Appender {
    private static final Schema SCHEMA = new Schema(Types.NestedField.optional(1, "id", Types.LongType.get()));

    public static void main(String[] arguments) throws Exception {
        Configuration configuration = new Configuration(false);
        configuration.set("iceberg.hive.lock-check-min-wait-ms", "20");
        configuration.set("iceberg.hive.lock-check-max-wait-ms", "200");
        HiveCatalog catalog = new HiveCatalog();
        catalog.setConf(configuration);
        catalog.initialize("test", Map.of("uri", arguments[0], "clients", "1"));
        TableIdentifier name = TableIdentifier.of(arguments[1], arguments[2]);
        Table table = catalog.tableExists(name) ? catalog.loadTable(name) : catalog.createTable(name, SCHEMA);
        table.updateProperties().set("commit.retry.num-retries", "50").commit();
        int first = Integer.parseInt(arguments[3]);
        for (int number = first; number < first + Integer.parseInt(arguments[4]); number++) {
            table.newAppend().appendFile(file(table, number)).commit();
        }
        table.refresh();
        table.newScan().planFiles().forEach(task -> System.out.println(task.file().path()));
        System.exit(0);
    }

    private static DataFile file(Table table, int number) {
        String path = table.location() + "/data/" + number + ".parquet";
        return DataFiles.builder(table.spec()).withPath(path).withFileSizeInBytes(100).withRecordCount(1).build();
    }
}
