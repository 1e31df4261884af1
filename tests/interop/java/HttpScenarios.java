import java.io.InputStream;
import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.lang.reflect.Modifier;
import java.net.CookieHandler;
import java.net.CookieManager;
import java.net.HttpURLConnection;
import java.net.URL;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Objects;
import java.util.UUID;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import javax.net.ssl.HostnameVerifier;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.SSLException;
import javax.net.ssl.SSLSocketFactory;
import javax.net.ssl.TrustManagerFactory;
import org.apache.hadoop.hive.metastore.api.*;
import org.apache.http.HttpRequestInterceptor;
import org.apache.http.client.HttpClient;
import org.apache.http.client.config.RequestConfig;
import org.apache.http.config.RegistryBuilder;
import org.apache.http.conn.socket.ConnectionSocketFactory;
import org.apache.http.conn.ssl.SSLConnectionSocketFactory;
import org.apache.http.impl.client.BasicCookieStore;
import org.apache.http.impl.client.HttpClientBuilder;
import org.apache.http.impl.client.HttpClients;
import org.apache.http.impl.conn.PoolingHttpClientConnectionManager;
import org.apache.thrift.TApplicationException;
import org.apache.thrift.TException;
import org.apache.thrift.protocol.TBinaryProtocol;
import org.apache.thrift.protocol.TCompactProtocol;
import org.apache.thrift.protocol.TJSONProtocol;
import org.apache.thrift.protocol.TMessage;
import org.apache.thrift.protocol.TMessageType;
import org.apache.thrift.protocol.TProtocol;
import org.apache.thrift.transport.THttpClient;
import org.apache.thrift.transport.TTransportException;

/**
 * What a Java program does with a metastore over HTTPS: Thrift's THttpClient, over HttpURLConnection or over Apache's
 * HttpClient, under the client that Hive generates for itself. Every public method is a scenario and throws when
 * something is not as it should be; `main` prints a line for each: its name, a tab, and the complaint if there is one.
 *
 * The certificates to trust are those of -Djavax.net.ssl.trustStore.
 */
public class HttpScenarios {
    static final String DEMO = "hmshttptestdatabase";
    static final String[] PATHS = {
        "/metastore", "/metastore/", "/metastore/*", "/gateway/default/hmshttpthrift/api/hms"
    };
    static final int MANY = 10_000;

    /**
     * `address` is https://host:port; the peers of `trusting` may say who they are, those of `address` may not.
     * Through `losing` the first reply gets lost to each body that has a name with `reply_lost` in it.
     */
    record Target(
        String address, String trusting, String losing, String user, String password, String certificates) {}

    private final Target target;
    private final boolean overApache;
    private final String prefix;

    HttpScenarios(Target target, boolean overApache) {
        this.target = target;
        this.overApache = overApache;
        this.prefix = overApache ? "http_client" : "url_connection";
    }

    public static void main(String[] argv) throws Exception {
        Target target = new Target(argv[0], argv[1], argv[2], argv[3], System.getenv("PASSWORD"), argv[4]);
        for (boolean overApache : new boolean[] {false, true}) {
            HttpScenarios scenarios = new HttpScenarios(target, overApache);
            for (Method method : HttpScenarios.class.getDeclaredMethods()) {
                if (Modifier.isPublic(method.getModifiers()) && !Modifier.isStatic(method.getModifiers())) {
                    System.out.println(scenarios.prefix + "." + method.getName() + "\t" + complaint(scenarios, method));
                }
            }
        }
        System.exit(0);
    }

    static String complaint(HttpScenarios scenarios, Method method) throws IllegalAccessException {
        CookieHandler.setDefault(null);
        HttpsURLConnection.setDefaultSSLSocketFactory((SSLSocketFactory) SSLSocketFactory.getDefault());
        try {
            method.invoke(scenarios);
            return "";
        } catch (InvocationTargetException error) {
            StackTraceElement[] trace = error.getCause().getStackTrace();
            return (error.getCause() + " " + Arrays.toString(trace)).replaceAll("\\s+", " ");
        }
    }

    // Scenarios

    public void everyPathInEveryProtocol() throws Exception {
        for (String path : PATHS) {
            for (Protocol protocol : Protocol.values()) {
                ThriftHiveMetastore.Client client = protocol.client(transport(path, basic()));
                isTrue(client.get_all_databases().contains(DEMO), path + " " + protocol);
                equal(client.get_table(DEMO, "test_table").getSd().getColsSize(), 2);
                equal(client.get_partition_names(DEMO, "test_table", (short) 10),
                    List.of("hair_color=black", "hair_color=brown"));
            }
        }
    }

    public void createChangeAndDrop() throws Exception {
        ThriftHiveMetastore.Client client = client();
        String name = prefix + "_changes";
        Map<String, String> parameters = Map.of("control", "\u0001\t\u001f", "quote", "\"\\'", "letters", "ü😀");
        client.create_database(new Database(name, "Größe ≥ 1", null, parameters));
        equal(client.get_database(name).getParameters(), parameters);
        client.create_table(table(name, "sales"));
        List<Partition> added = new ArrayList<>();
        for (int month = 1; month <= 12; month++) {
            added.add(partition(name, "sales", String.format("2024-%02d", month)));
        }
        equal(client.add_partitions(added), 12);
        List<Partition> found = client.get_partitions_by_filter(name, "sales", "ds > \"2024-10\"", (short) -1);
        equal(found.stream().map(Partition::getValues).toList(), List.of(List.of("2024-11"), List.of("2024-12")));
        Partition changed = found.get(0);
        changed.putToParameters("checked", "ja");
        client.alter_partition(name, "sales", changed);
        equal(client.get_partition(name, "sales", List.of("2024-11")).getParameters().get("checked"), "ja");
        Table table = client.get_table(name, "sales");
        table.getSd().addToCols(new FieldSchema("added", "array<string>", null));
        client.alter_table(name, "sales", table);
        equal(client.get_table(name, "sales").getSd().getCols(), table.getSd().getCols());
        isTrue(client.drop_partition(name, "sales", List.of("2024-01"), true), "dropped");
        client.drop_database(name, true, true);
        isTrue(!client.get_all_databases().contains(name), "dropped");
    }

    public void tenThousandPartitionsComeBack() throws Exception {
        ThriftHiveMetastore.Client client = client();
        String name = prefix + "_many";
        client.create_database(new Database(name, null, null, null));
        client.create_table(table(name, "events"));
        List<Partition> added = new ArrayList<>();
        for (int number = 0; number < MANY; number++) {
            added.add(partition(name, "events", String.format("%05d", number)));
        }
        AddPartitionsRequest request = new AddPartitionsRequest(name, "events", added, false);
        request.setNeedResult(false);
        client.add_partitions_req(request);
        for (Protocol protocol : new Protocol[] {Protocol.BINARY, Protocol.COMPACT}) {
            String path = protocol == Protocol.BINARY ? PATHS[2] : PATHS[3];
            ThriftHiveMetastore.Client reader = protocol.client(transport(path, basic()));
            List<Partition> found = reader.get_partitions(name, "events", (short) -1);
            equal(found.size(), MANY);
            for (int number = 0; number < MANY; number++) {
                equal(found.get(number).getValues(), added.get(number).getValues());
                equal(found.get(number).getSd().getCols(), added.get(number).getSd().getCols());
            }
        }
        equal(client.get_partition_names(name, "events", (short) -1).size(), MANY);
        client.drop_database(name, true, true);
    }

    /** As Iceberg's MetastoreLock commits: the table is locked, altered without a word about the lock, and unlocked. */
    public void icebergsLockLetsItsOwnCommitPass() throws Exception {
        ThriftHiveMetastore.Client client = client();
        String name = prefix + "_iceberg";
        client.create_database(new Database(name, null, null, null));
        client.create_table(table(name, "commits"));
        LockComponent component = new LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, name);
        component.setTablename("commits");
        LockRequest request = new LockRequest(List.of(component), "java", "localhost");
        request.setAgentInfo("Iceberg-" + UUID.randomUUID());
        LockResponse lock = client.lock(request);
        equal(lock.getState(), LockState.ACQUIRED);
        client.heartbeat(heartbeat(lock.getLockid(), 0));
        Table table = client.get_table(name, "commits");
        table.putToParameters("metadata_location", "file:/two.json");
        client.alter_table_with_environment_context(name, "commits", table,
            new EnvironmentContext(Map.of("DO_NOT_UPDATE_STATS", "true")));
        ThriftHiveMetastore.Client other = Protocol.BINARY.client(naming("x-hms-lock-id", lock.getLockid() + 1_000));
        throwsA(InvalidOperationException.class, () -> other.alter_table(name, "commits", table));
        throwsA(MetaException.class, () -> other.drop_table(name, "commits", true));
        client.unlock(new UnlockRequest(lock.getLockid()));
        other.drop_table(name, "commits", true);
        client.drop_database(name, true, true);
    }

    /** As Hive's own transaction manager: the locks of a statement belong to its transaction, its calls name neither. */
    public void locksOfHivesTransactionsLetItsStatementsPass() throws Exception {
        ThriftHiveMetastore.Client client = client();
        String name = prefix + "_statements";
        client.create_database(new Database(name, null, null, null));
        client.create_table(table(name, "sales"));
        OpenTxnRequest opening = new OpenTxnRequest(1, "java", "localhost");
        long txn = client.open_txns(opening).getTxn_ids().get(0);
        LockComponent component = new LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, name);
        component.setTablename("sales");
        component.setOperationType(DataOperationType.NO_TXN);
        LockRequest request = new LockRequest(List.of(component), "java", "localhost");
        request.setTxnid(txn);
        request.setAgentInfo("java_20240101000000_query");
        equal(client.lock(request).getState(), LockState.ACQUIRED);
        client.add_partition(partition(name, "sales", "2024-01"));
        Table table = client.get_table(name, "sales");
        table.getSd().addToCols(new FieldSchema("added", "int", null));
        client.alter_table(name, "sales", table);
        Table renamed = table.deepCopy();
        renamed.setTableName("sold");
        ThriftHiveMetastore.Client other = Protocol.BINARY.client(naming("x-hms-txn-id", txn + 1_000));
        throwsA(InvalidOperationException.class, () -> other.alter_table(name, "sales", renamed));
        client.alter_table(name, "sales", renamed);
        client.drop_table(name, "sold", true);
        client.commit_txn(new CommitTxnRequest(txn));
        client.drop_database(name, true, true);
    }

    static HeartbeatRequest heartbeat(long lock, long txn) {
        HeartbeatRequest request = new HeartbeatRequest();
        request.setLockid(lock);
        request.setTxnid(txn);
        return request;
    }

    THttpClient naming(String header, long id) throws TTransportException {
        THttpClient transport = transport(PATHS[0], basic());
        transport.setCustomHeader(header, Long.toString(id));
        return transport;
    }

    public void statisticsAndLocks() throws Exception {
        ThriftHiveMetastore.Client client = client();
        String name = prefix + "_statistics";
        client.create_database(new Database(name, null, null, null));
        client.create_table(table(name, "numbers"));
        ColumnStatisticsData data = new ColumnStatisticsData();
        LongColumnStatsData longs = new LongColumnStatsData(3, 7);
        longs.setLowValue(Long.MIN_VALUE);
        longs.setHighValue(Long.MAX_VALUE);
        data.setLongStats(longs);
        DoubleColumnStatsData doubles = new DoubleColumnStatsData(0, 2);
        doubles.setLowValue(-1.5e-300);
        doubles.setHighValue(0.1);
        ColumnStatisticsData other = new ColumnStatisticsData();
        other.setDoubleStats(doubles);
        ColumnStatistics statistics = new ColumnStatistics(new ColumnStatisticsDesc(true, name, "numbers"),
            List.of(new ColumnStatisticsObj("id", "bigint", data), new ColumnStatisticsObj("size", "double", other)));
        isTrue(client.update_table_column_statistics(statistics), "written");
        equal(client.get_table_column_statistics(name, "numbers", "id").getStatsObj().get(0).getStatsData(), data);
        equal(client.get_table_column_statistics(name, "numbers", "size").getStatsObj().get(0).getStatsData(), other);

        LockComponent component = new LockComponent(LockType.EXCLUSIVE, LockLevel.TABLE, name);
        component.setTablename("numbers");
        LockResponse first = client.lock(new LockRequest(List.of(component), "java", "localhost"));
        equal(first.getState(), LockState.ACQUIRED);
        LockResponse second = client.lock(new LockRequest(List.of(component), "java", "localhost"));
        equal(second.getState(), LockState.WAITING);
        client.unlock(new UnlockRequest(first.getLockid()));
        equal(client.check_lock(new CheckLockRequest(second.getLockid())).getState(), LockState.ACQUIRED);
        client.unlock(new UnlockRequest(second.getLockid()));
        throwsA(NoSuchLockException.class, () -> client.check_lock(new CheckLockRequest(first.getLockid())));
        client.drop_database(name, true, true);
    }

    /** A set for clients of Hive 2.3, as these classes are; a list on /metastore, for those of Hive 4. */
    public void openTransactionsInTheShapeOfTheirPath() throws Exception {
        for (Protocol protocol : Protocol.values()) {
            ThriftHiveMetastore.Client client = protocol.client(transport(PATHS[3], basic()));
            long txn = client.open_txns(new OpenTxnRequest(1, "java", "localhost")).getTxn_ids().get(0);
            isTrue(client.get_open_txns().getOpen_txns().contains(txn), "it is open");
            client.commit_txn(new CommitTxnRequest(txn));
            isTrue(!client.get_open_txns().getOpen_txns().contains(txn), "it is not open");
            throwsA(NoSuchTxnException.class, () -> client.abort_txn(new AbortTxnRequest(Long.MAX_VALUE)));
        }
    }

    public void exceptionsOfHiveAreTheirJavaTypes() throws Exception {
        for (Protocol protocol : Protocol.values()) {
            ThriftHiveMetastore.Client client = protocol.client(transport(PATHS[0], basic()));
            String text = throwsA(NoSuchObjectException.class, () -> client.get_table("default", "no_such_table"));
            contains(text, "no_such_table");
            Database existing = new Database("default", null, null, null);
            throwsA(AlreadyExistsException.class, () -> client.create_database(existing));
            throwsA(InvalidOperationException.class, () -> client.drop_database(DEMO, false, false));
            throwsA(InvalidObjectException.class, () -> client.create_table(table("no_such_database", "t")));
            // The connection goes on after each.
            equal(client.get_databases("default"), List.of("default"));
        }
    }

    public void anUnknownMethodHasTheTextThatClientsMatch() throws Exception {
        THttpClient transport = transport(PATHS[0], basic());
        TProtocol protocol = new TBinaryProtocol(transport);
        protocol.writeMessageBegin(new TMessage("no_such_method", TMessageType.CALL, 7));
        transport.write(new byte[] {0});
        protocol.writeMessageEnd();
        transport.flush();
        TMessage answer = protocol.readMessageBegin();
        equal((int) answer.type, (int) TMessageType.EXCEPTION);
        equal(answer.seqid, 7);
        TApplicationException error = TApplicationException.readFrom(protocol);
        equal(error.getType(), TApplicationException.UNKNOWN_METHOD);
        equal(error.getMessage(), "Invalid method name: 'no_such_method'");
    }

    public void userAndGoodbyeAreAnswered() throws Exception {
        ThriftHiveMetastore.Client client = client();
        equal(client.set_ugi("ann", List.of("staff")), List.of("staff"));
        client.shutdown();
        equal(client.get_databases("default"), List.of("default"));
    }

    public void basicHeaderThatLostItsPadding() throws Exception {
        String complete = basic();
        String shortened = complete.replaceAll("=+$", "");
        isTrue(!shortened.equals(complete), "the test wants a password whose header needs padding");
        for (String path : PATHS) {
            equal(Protocol.BINARY.client(transport(path, shortened)).get_databases("default"), List.of("default"));
        }
    }

    public void wrongPasswordIsAnErrorAtOnce() throws Exception {
        THttpClient transport = transport(PATHS[0], basic(target.user, "wrong"));
        isRefused(transport, 401);
        THttpClient nobody = transport(PATHS[0], null);
        isRefused(nobody, 401);
    }

    public void bearerIsRefusedClearly() throws Exception {
        THttpClient transport = transport(PATHS[0], "Bearer placeholder");
        isRefused(transport, 401);
        // THttpClient tells the status and drops the text; this is what it dropped.
        HttpURLConnection connection = (HttpURLConnection) new URL(target.address + PATHS[0]).openConnection();
        connection.setRequestProperty("Authorization", "Bearer placeholder");
        connection.setDoOutput(true);
        connection.getOutputStream().write(new byte[] {(byte) 0x80, 1, 0, 1, 0, 0, 0, 0, 0, 0, 0, 0, 0});
        equal(connection.getResponseCode(), 401);
        StringBuilder challenges = new StringBuilder();
        connection.getHeaderFields().forEach((name, values) -> {
            if ("WWW-Authenticate".equalsIgnoreCase(name)) {
                challenges.append(values);
            }
        });
        String wanted = challenges.toString();
        contains(wanted, "Basic");
        contains(wanted, "Bearer");
        contains(new String(connection.getErrorStream().readAllBytes(), StandardCharsets.UTF_8),
            "The token is wrong or was revoked");
    }

    /** The test looks into the access log, under these request ids, who the gateway took the caller for. */
    public void nameInAHeader() throws Exception {
        THttpClient stranger = transport(target.address, PATHS[2], null);
        stranger.setCustomHeader("x-actor-username", "ann");
        isRefused(stranger, 401);
        THttpClient known = transport(target.address, PATHS[2], basic());
        known.setCustomHeader("x-actor-username", "ann");
        known.setCustomHeader("X-Request-Id", prefix + "-known");
        isTrue(Protocol.BINARY.client(known).get_all_databases().contains("default"), "answered");
        THttpClient trusted = transport(target.trusting, PATHS[2], null);
        trusted.setCustomHeader("x-actor-username", "ann");
        trusted.setCustomHeader("X-Request-Id", prefix + "-trusted");
        isTrue(Protocol.BINARY.client(trusted).get_all_databases().contains("default"), "answered");
        THttpClient refused = transport(target.trusting, PATHS[2], null);
        refused.setCustomHeader("x-actor-username", "mallory");
        isRefused(refused, 403);
    }

    /** Hive 4 adds headers by an interceptor: a configured Authorization comes beside that of HMS_JWT. */
    public void headersByAnInterceptor() throws Exception {
        THttpClient named = intercepted(target.trusting, "x-actor-username", "ann");
        isTrue(Protocol.BINARY.client(named).get_all_databases().contains("default"), "answered");
        THttpClient lost = intercepted(target.address, "x-actor-username", "ann", "Authorization", basic().split("=")[0]);
        isTrue(Protocol.BINARY.client(lost).get_all_databases().contains("default"), "answered");
        isRefused(intercepted(target.address, "Authorization", basic(), "Authorization", "Bearer x"), 400);
    }

    static THttpClient intercepted(String address, String... headers) throws TTransportException {
        HttpRequestInterceptor interceptor = (request, context) -> {
            for (int at = 0; at < headers.length; at += 2) {
                request.addHeader(headers[at], headers[at + 1]);
            }
        };
        return new THttpClient(address + PATHS[2], HttpClients.custom().addInterceptorFirst(interceptor).build());
    }

    public void oneConnectionForManyCalls() throws Exception {
        CountingSockets sockets = new CountingSockets();
        HttpsURLConnection.setDefaultSSLSocketFactory(sockets);
        HttpClient kept = apache(sockets).build();
        for (int call = 0; call < 20; call++) {
            // A client for each call, as programs do that pool the HTTP connections and not the Thrift clients.
            ThriftHiveMetastore.Client client = Protocol.BINARY.client(over(kept, PATHS[2]));
            equal(client.get_databases("default"), List.of("default"));
            throwsA(NoSuchObjectException.class, () -> client.get_database("nowhere"));
        }
        equal(sockets.opened.get(), 1);
    }

    /**
     * HttpURLConnection sends a POST again by itself, and programs over Apache's client do. Without a key the
     * second one finds what the first one made; with one it is told the outcome of the first.
     */
    public void aReplyThatGetsLost() throws Exception {
        ThriftHiveMetastore.Client client = Protocol.BINARY.client(transport(target.losing, PATHS[0], basic()));
        Database plain = new Database(prefix + "_reply_lost", null, null, null);
        if (overApache) {
            throwsA(TTransportException.class, () -> client.create_database(plain));
        }
        throwsA(AlreadyExistsException.class, () -> client.create_database(plain));

        THttpClient keyed = transport(target.losing, PATHS[0], basic());
        keyed.setCustomHeader("Idempotency-Key", UUID.randomUUID().toString());
        ThriftHiveMetastore.Client careful = Protocol.BINARY.client(keyed);
        Database marked = new Database(prefix + "_reply_lost_keyed", null, null, null);
        if (overApache) {
            throwsA(TTransportException.class, () -> careful.create_database(marked));
        }
        careful.create_database(marked);
        equal(client().get_databases(prefix + "_reply_lost*").size(), 2);
    }

    public void noCookieToSendBack() throws Exception {
        CookieManager cookies = new CookieManager();
        CookieHandler.setDefault(cookies);
        BasicCookieStore store = new BasicCookieStore();
        HttpClient kept = HttpClients.custom().setDefaultCookieStore(store).build();
        THttpClient transport = over(kept, PATHS[0]);
        transport.setCustomHeader("Cookie", "hive.server2.auth=\"cu=ann&rn=1&s=abc\"; JSESSIONID=1");
        for (int call = 0; call < 3; call++) {
            equal(Protocol.BINARY.client(transport).get_databases("default"), List.of("default"));
        }
        equal(cookies.getCookieStore().getCookies(), List.of());
        equal(store.getCookies(), List.of());
    }

    public void askingBeforeSendingALargeBody() throws Exception {
        RequestConfig expecting = RequestConfig.custom().setExpectContinueEnabled(true).build();
        HttpClient client = HttpClients.custom().setDefaultRequestConfig(expecting).build();
        List<String> names = Collections.nCopies(50_000, "no_such_table_of_a_long_name");
        equal(Protocol.BINARY.client(over(client, PATHS[0])).get_table_objects_by_name(DEMO, names), List.of());
    }

    public void manyThreadsOverAFewConnections() throws Exception {
        PoolingHttpClientConnectionManager pool = new PoolingHttpClientConnectionManager();
        pool.setDefaultMaxPerRoute(4);
        HttpClient shared = HttpClients.custom().setConnectionManager(pool).build();
        ExecutorService threads = Executors.newFixedThreadPool(16);
        List<Future<String>> answers = new ArrayList<>();
        for (int number = 0; number < 64; number++) {
            String table = "no_such_table_" + number;
            answers.add(threads.submit(() -> {
                ThriftHiveMetastore.Client client = Protocol.BINARY.client(over(shared, PATHS[2]));
                return throwsA(NoSuchObjectException.class, () -> client.get_table(DEMO, table));
            }));
        }
        for (int number = 0; number < answers.size(); number++) {
            contains(answers.get(number).get(), "no_such_table_" + number);
        }
        threads.shutdown();
    }

    public void aCertificateNobodyVouchesForIsNotTaken() throws Exception {
        KeyStore usual = KeyStore.getInstance(KeyStore.getDefaultType());
        try (InputStream file = Files.newInputStream(Path.of(target.certificates))) {
            usual.load(file, null);
        }
        TrustManagerFactory trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(usual);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trust.getTrustManagers(), null);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
        HttpClient distrusting = HttpClients.custom().setSSLContext(context).build();
        try {
            Protocol.BINARY.client(over(distrusting, PATHS[0])).get_all_databases();
        } catch (TTransportException error) {
            isTrue(error.getCause() instanceof SSLException, String.valueOf(error.getCause()));
            return;
        }
        throw new AssertionError("a certificate of nobody was taken");
    }

    // What they share

    enum Protocol {
        BINARY, COMPACT, JSON;

        ThriftHiveMetastore.Client client(THttpClient transport) {
            return new ThriftHiveMetastore.Client(switch (this) {
                case BINARY -> new TBinaryProtocol(transport);
                case COMPACT -> new TCompactProtocol(transport);
                case JSON -> new TJSONProtocol(transport);
            });
        }
    }

    ThriftHiveMetastore.Client client() throws TTransportException {
        return Protocol.BINARY.client(transport(PATHS[2], basic()));
    }

    THttpClient transport(String path, String authorization) throws TTransportException {
        return transport(target.address, path, authorization);
    }

    THttpClient transport(String address, String path, String authorization) throws TTransportException {
        THttpClient transport;
        if (overApache) {
            // Its timeouts are the client's: THttpClient's own setters know only clients of the years before 4.3.
            RequestConfig timeouts = RequestConfig.custom().setConnectTimeout(30_000).setSocketTimeout(60_000).build();
            transport = new THttpClient(address + path, HttpClients.custom().setDefaultRequestConfig(timeouts).build());
        } else {
            transport = new THttpClient(address + path);
            transport.setConnectTimeout(30_000);
            transport.setReadTimeout(60_000);
        }
        if (authorization != null) {
            transport.setCustomHeader("Authorization", authorization);
        }
        return transport;
    }

    /** Over this client of Apache's; over HttpURLConnection where that is what we are about. */
    THttpClient over(HttpClient client, String path) throws TTransportException {
        String url = target.address + path;
        THttpClient transport = overApache ? new THttpClient(url, client) : new THttpClient(url);
        transport.setCustomHeader("Authorization", basic());
        return transport;
    }

    static HttpClientBuilder apache(SSLSocketFactory sockets) {
        HostnameVerifier names = SSLConnectionSocketFactory.getDefaultHostnameVerifier();
        ConnectionSocketFactory https = new SSLConnectionSocketFactory(sockets, names);
        var registry = RegistryBuilder.<ConnectionSocketFactory>create().register("https", https).build();
        return HttpClients.custom().setConnectionManager(new PoolingHttpClientConnectionManager(registry));
    }

    String basic() {
        return basic(target.user, target.password);
    }

    static String basic(String user, String password) {
        byte[] pair = (user + ":" + password).getBytes(StandardCharsets.UTF_8);
        return "Basic " + Base64.getEncoder().encodeToString(pair);
    }

    static Table table(String database, String name) {
        Table table = new Table();
        table.setDbName(database);
        table.setTableName(name);
        table.setOwner("java");
        table.setTableType("MANAGED_TABLE");
        table.setSd(descriptor());
        table.setPartitionKeys(List.of(new FieldSchema("ds", "string", null)));
        table.setParameters(new HashMap<>());
        return table;
    }

    static Partition partition(String database, String table, String value) {
        return new Partition(List.of(value), database, table, 0, 0, descriptor(), new HashMap<>());
    }

    static StorageDescriptor descriptor() {
        List<FieldSchema> columns = new ArrayList<>(List.of(
            new FieldSchema("id", "bigint", "a comment"), new FieldSchema("size", "double", null)));
        SerDeInfo serde = new SerDeInfo(null, "org.apache.hadoop.hive.serde2.lazy.LazySimpleSerDe", new HashMap<>());
        return new StorageDescriptor(columns, null, "org.apache.hadoop.mapred.TextInputFormat",
            "org.apache.hadoop.hive.ql.io.HiveIgnoreKeyTextOutputFormat", false, -1, serde, new ArrayList<>(),
            new ArrayList<>(), new HashMap<>());
    }

    interface Call {
        void run() throws TException;
    }

    /** The exception's text. It has to be of that class and of no other. */
    static String throwsA(Class<? extends TException> expected, Call call) {
        try {
            call.run();
        } catch (TException error) {
            equal(error.getClass(), expected);
            return String.valueOf(error.getMessage());
        }
        throw new AssertionError("no " + expected.getSimpleName());
    }

    static void isRefused(THttpClient transport, int status) {
        ThriftHiveMetastore.Client client = Protocol.BINARY.client(transport);
        String text = throwsA(TTransportException.class, () -> client.get_all_databases());
        contains(text, "HTTP Response code: " + status);
    }

    static void contains(String text, String part) {
        isTrue(text.contains(part), "\"" + text + "\" contains \"" + part + "\"");
    }

    static void equal(Object found, Object expected) {
        isTrue(Objects.equals(found, expected), found + " is " + expected);
    }

    static void isTrue(boolean claim, String text) {
        if (!claim) {
            throw new AssertionError("not so: " + text);
        }
    }
}
