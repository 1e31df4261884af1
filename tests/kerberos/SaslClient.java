import java.util.HashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.security.UserGroupInformation;

/** Hive's own client over SASL: host, port, protection, principal, keytab, database. Prints how long a description is that it sent. */
public class SaslClient {
    public static void main(String[] arguments) throws Exception {
        HiveConf configuration = new HiveConf();
        configuration.set("hadoop.security.authentication", "kerberos");
        configuration.set("hadoop.rpc.protection", arguments[2]);
        configuration.set("hive.metastore.uris", "thrift://" + arguments[0] + ":" + arguments[1]);
        configuration.set("hive.metastore.sasl.enabled", "true");
        configuration.set("hive.metastore.kerberos.principal", "hive/localhost@LAKE.TEST");
        configuration.set("hive.metastore.execute.setugi", "true");
        configuration.set("hive.metastore.connect.retries", "1");
        configuration.set("hive.metastore.failure.retries", "0");
        UserGroupInformation.setConfiguration(configuration);
        UserGroupInformation.loginUserFromKeytab(arguments[3], arguments[4]);
        HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
        StringBuilder names = new StringBuilder();
        for (int number = 0; number < 400; number++) {
            names.append("a comment of some length, ");
        }
        client.createDatabase(new Database(arguments[5], names.toString(), null, new HashMap<>()));
        Database made = client.getDatabase(arguments[5]);
        System.out.println("length\t" + made.getDescription().length());
        client.close();
    }
}
