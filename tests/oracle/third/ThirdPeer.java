import org.apache.hadoop.conf.Configuration;
import org.apache.hadoop.hive.metastore.HiveMetaStore;
import org.apache.hadoop.hive.metastore.RetryingHMSHandler;
import org.apache.hadoop.hive.metastore.conf.MetastoreConf;
import org.apache.hadoop.hive.metastore.txn.TxnDbUtil;

/**
 * Hive 3.1.3's metastore with its transaction tables, which Derby lacks otherwise, and HmsPeer's door for TJSON, which is
 * compiled against these jars too: java -cp 'classes:settings:libs/*' ThirdPeer PORT HTTP_PORT
 */
public class ThirdPeer {
    public static void main(String[] argv) throws Throwable {
        Configuration conf = MetastoreConf.newMetastoreConf();
        TxnDbUtil.setConfValues(conf);
        TxnDbUtil.prepDb(conf);
        HiveMetaStore.HMSHandler handler = new HiveMetaStore.HMSHandler("new db based metaserver", conf, false);
        HmsPeer.http(RetryingHMSHandler.getProxy(conf, handler, false), Integer.parseInt(argv[1]), argv);
        HiveMetaStore.main(new String[] {"-p", argv[0]});
    }
}
