import java.lang.reflect.InvocationTargetException;
import java.lang.reflect.Method;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Base64;
import java.util.Set;
import org.apache.hadoop.hive.metastore.messaging.EventMessage;
import org.apache.hadoop.hive.metastore.messaging.json.JSONMessageDeserializer;

/**
 * Reads messages of events with 3.1.3's classes: java -cp … ReadEvents FILE, whose lines are a type, a tab and a message in
 * base64. Prints a line for each getter that gives null or throws: type, tab, getter, tab, what happened.
 */
public class ReadEvents {
    /** What 3.1.3's classes give null for whatever is in the message: databases; and a partition where a table has none. */
    private static final Set<String> MAY_BE_NULL = Set.of(
        "INSERT.getPtnObj", "OPEN_TXN.getDB", "COMMIT_TXN.getDB", "ABORT_TXN.getDB", "ADD_PRIMARYKEY.getDB",
        "ADD_FOREIGNKEY.getDB", "ADD_UNIQUECONSTRAINT.getDB", "ADD_NOTNULLCONSTRAINT.getDB");

    public static void main(String[] argv) throws Exception {
        JSONMessageDeserializer deserializer = new JSONMessageDeserializer();
        for (String line : Files.readAllLines(Path.of(argv[0]))) {
            String[] parts = line.split("\t");
            String text = new String(Base64.getDecoder().decode(parts[1]), StandardCharsets.UTF_8);
            try {
                // getEventMessage knows each type but this one.
                read(parts[0], parts[0].equals("ALLOC_WRITE_ID")
                    ? deserializer.getAllocWriteIdMessage(text) : deserializer.getEventMessage(parts[0], text));
            } catch (Exception unreadable) {
                System.out.println(parts[0] + "\t-\t" + unreadable);
            }
        }
    }

    private static void read(String type, EventMessage message) throws IllegalAccessException {
        for (Method getter : message.getClass().getMethods()) {
            boolean reads = getter.getName().matches("(get|is)[A-Z].*") && getter.getParameterCount() == 0;
            if (!reads || MAY_BE_NULL.contains(type + "." + getter.getName())) {
                continue;
            }
            try {
                if (getter.invoke(message) == null) {
                    System.out.println(type + "\t" + getter.getName() + "\tnull");
                }
            } catch (InvocationTargetException thrown) {
                System.out.println(type + "\t" + getter.getName() + "\t" + thrown.getCause());
            }
        }
    }
}
