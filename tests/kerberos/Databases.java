import java.io.ByteArrayInputStream;
import java.net.HttpURLConnection;
import java.net.URI;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.KeyStore;
import java.security.cert.CertificateFactory;
import javax.net.ssl.HttpsURLConnection;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** Posts a request several times with the JDK's own HTTP client, which answers Negotiate by itself. */
public class Databases {
    public static void main(String[] arguments) throws Exception {
        trust(Path.of(arguments[1]));
        for (int call = 0; call < 3; call++) {
            HttpURLConnection connection = (HttpURLConnection) URI.create(arguments[0]).toURL().openConnection();
            connection.setDoOutput(true);
            connection.setRequestProperty("Content-Type", "application/vnd.apache.thrift.json");
            connection.getOutputStream().write(arguments[2].getBytes(StandardCharsets.UTF_8));
            int status = connection.getResponseCode();
            byte[] body = (status == 200 ? connection.getInputStream() : connection.getErrorStream()).readAllBytes();
            System.out.println(status + " " + new String(body, StandardCharsets.UTF_8));
        }
    }

    private static void trust(Path certificate) throws Exception {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        byte[] pem = Files.readAllBytes(certificate);
        store.setCertificateEntry(
            "gateway", CertificateFactory.getInstance("X.509").generateCertificate(new ByteArrayInputStream(pem)));
        TrustManagerFactory trusted = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trusted.init(store);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(null, trusted.getTrustManagers(), null);
        HttpsURLConnection.setDefaultSSLSocketFactory(context.getSocketFactory());
    }
}
