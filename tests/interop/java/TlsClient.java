import java.util.HashMap;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.ThriftHiveMetastore;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.transport.TSSLTransportFactory;
import org.apache.thrift.transport.TSSLTransportFactory.TSSLTransportParameters;
import org.apache.thrift.transport.TTransport;

/**
 * Hive's own client with hive.metastore.use.SSL, then its generated client with a keystore as well, as Hive has it from
 * HIVE-23157 on: truststore, keystore, their password; then of each server its port and the end of names. Each makes
 * a database.
 */
public class TlsClient {
    public static void main(String[] arguments) throws Exception {
        for (int server = 3; server < arguments.length; server += 2) {
            call(Integer.parseInt(arguments[server]), arguments[server + 1], arguments[0], arguments[1], arguments[2]);
        }
    }

    private static void call(int port, String end, String trusted, String own, String password) throws Exception {
        HiveConf configuration = new HiveConf();
        configuration.set("hive.metastore.uris", "thrift://localhost:" + port);
        configuration.set("hive.metastore.use.SSL", "true");
        configuration.set("hive.metastore.truststore.path", trusted);
        configuration.set("hive.metastore.truststore.password", password);
        configuration.set("hive.metastore.connect.retries", "1");
        configuration.set("hive.metastore.failure.retries", "0");
        HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
        String name = "by_" + end;
        client.createDatabase(new Database(name, "over TLS", null, new HashMap<>()));
        System.out.println("truststore\t" + client.getDatabase(name).getName());
        client.close();

        TSSLTransportParameters parameters = new TSSLTransportParameters();
        parameters.setTrustStore(trusted, password);
        parameters.setKeyStore(own, password);
        try (TTransport transport =
                TSSLTransportFactory.getClientSocket("localhost", port, 30_000, parameters)) {
            ThriftHiveMetastore.Client shown = new ThriftHiveMetastore.Client(new TBinaryProtocol(transport));
            String other = "of_java_" + end;
            shown.create_database(new Database(other, "by a certificate", null, new HashMap<>()));
            System.out.println("keystore\t" + shown.get_database(other).getName());
        }
    }
}
