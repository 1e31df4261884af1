import java.security.PrivilegedExceptionAction;
import java.util.HashMap;
import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.conf.HiveConf;
import org.apache.hadoop.hive.metastore.HiveMetaStoreClient;
import org.apache.hadoop.hive.metastore.api.Database;
import org.apache.hadoop.hive.metastore.api.MetaException;
import org.apache.hadoop.hive.shims.Utils;
import org.apache.hadoop.security.UserGroupInformation;

/**
 * Hive's own client over SASL: host, port, protection, principal, keytab, database. Prints how long a description is that
 * it sent, and reads with a delegation token, which it then cancels.
 */
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
        // What a job does on another machine: no ticket, but the token among its credentials.
        String token = client.getDelegationToken("yarn/resourcemanager.test@LAKE.TEST");
        configuration.set("hadoop.rpc.protection", "authentication");
        System.out.println("with the token\t" + withToken(configuration, token, arguments[5]).length());
        System.out.println("another token\t" + givesAnother(configuration, token));
        client.cancelDelegationToken(token);
        client.close();
        try {
            withToken(configuration, token, arguments[5]);
            System.out.println("cancelled\taccepted");
        } catch (Exception error) {
            System.out.println("cancelled\t" + String.valueOf(error.getCause()).contains("it was cancelled"));
        }
    }

    private static UserGroupInformation worker(HiveConf configuration, String token) throws Exception {
        configuration.set("hive.metastore.token.signature", "the metastore");
        UserGroupInformation worker = UserGroupInformation.createRemoteUser("worker");
        Utils.setTokenStr(worker, token, "the metastore");
        return worker;
    }

    private static String withToken(HiveConf configuration, String token, String database) throws Exception {
        return worker(configuration, token).doAs((PrivilegedExceptionAction<String>) () -> {
            HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
            String description = client.getDatabase(database).getDescription();
            client.close();
            return description;
        });
    }

    private static boolean givesAnother(HiveConf configuration, String token) throws Exception {
        return worker(configuration, token).doAs((PrivilegedExceptionAction<Boolean>) () -> {
            HiveMetaStoreClient client = new HiveMetaStoreClient(configuration);
            try {
                client.getDelegationToken("alice", "yarn");
                return true;
            } catch (MetaException error) {
                return false;
            } finally {
                client.close();
            }
        });
    }
}
