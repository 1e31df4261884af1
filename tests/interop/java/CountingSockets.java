import java.io.IOException;
import java.net.InetAddress;
import java.net.Socket;
import java.util.concurrent.atomic.AtomicInteger;
import javax.net.ssl.SSLSocketFactory;

/** The JVM's own TLS sockets, counted. */
public class CountingSockets extends SSLSocketFactory {
    final AtomicInteger opened = new AtomicInteger();
    private final SSLSocketFactory usual = (SSLSocketFactory) SSLSocketFactory.getDefault();

    private Socket counted(Socket socket) {
        opened.incrementAndGet();
        return socket;
    }

    @Override
    public Socket createSocket() throws IOException {
        return counted(usual.createSocket());
    }

    @Override
    public Socket createSocket(Socket under, String host, int port, boolean closes) throws IOException {
        return counted(usual.createSocket(under, host, port, closes));
    }

    @Override
    public Socket createSocket(String host, int port) throws IOException {
        return counted(usual.createSocket(host, port));
    }

    @Override
    public Socket createSocket(String host, int port, InetAddress from, int fromPort) throws IOException {
        return counted(usual.createSocket(host, port, from, fromPort));
    }

    @Override
    public Socket createSocket(InetAddress host, int port) throws IOException {
        return counted(usual.createSocket(host, port));
    }

    @Override
    public Socket createSocket(InetAddress host, int port, InetAddress from, int fromPort) throws IOException {
        return counted(usual.createSocket(host, port, from, fromPort));
    }

    @Override
    public String[] getDefaultCipherSuites() {
        return usual.getDefaultCipherSuites();
    }

    @Override
    public String[] getSupportedCipherSuites() {
        return usual.getSupportedCipherSuites();
    }
}
