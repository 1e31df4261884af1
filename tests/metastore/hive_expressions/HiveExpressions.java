import java.sql.Date;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Base64;
import java.util.List;
import java.util.Random;
import org.apache.hadoop.hive.common.type.HiveDecimal;
import org.apache.hadoop.hive.common.type.HiveVarchar;
import org.apache.hadoop.hive.ql.exec.SerializationUtilities;
import org.apache.hadoop.hive.ql.optimizer.ppr.PartitionExpressionForMetastore;
import org.apache.hadoop.hive.ql.plan.ExprNodeColumnDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeConstantDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeDesc;
import org.apache.hadoop.hive.ql.plan.ExprNodeGenericFuncDesc;
import org.apache.hadoop.hive.ql.udf.generic.*;
import org.apache.hadoop.hive.serde2.typeinfo.PrimitiveTypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfo;
import org.apache.hadoop.hive.serde2.typeinfo.TypeInfoFactory;

/**
 * Writes random expressions as Hive's compiler would send them, each with the partitions that Hive itself selects.
 *
 *     javac -d OUT -cp 'JARS/*' HiveExpressions.java org/.../LlapSigner.java
 *     java --add-opens java.base/java.{lang,util,net}=ALL-UNNAMED --add-opens java.sql/java.sql=ALL-UNNAMED \
 *          -Duser.timezone=UTC -cp 'OUT:JARS/*' HiveExpressions SEED COUNT ROWS > recorded.tsv
 *
 * JARS are those of the folder that tests/oracle prepares. ROWS is a file of partition names. A line is the expression as
 * SQL, its bytes in base64, whether Hive is sure, and the numbers of the selected partitions.
 *
 * The metastore (2.3.10, with the stand-in for LlapSigner on its class path) was asked for all of them. Where it takes an
 * expression for a filter it does not evaluate it, and has the default partition of a text key where this program has not:
 * in nine lines of the recording, which have its answer.
 */
public class HiveExpressions {
    private static final String[] NAMES = {"ds", "hr", "n", "d", "m", "x", "v"};
    private static final PrimitiveTypeInfo[] TYPES = {
        TypeInfoFactory.stringTypeInfo, TypeInfoFactory.intTypeInfo, TypeInfoFactory.longTypeInfo,
        TypeInfoFactory.dateTypeInfo, TypeInfoFactory.getDecimalTypeInfo(10, 2), TypeInfoFactory.doubleTypeInfo,
        TypeInfoFactory.getVarcharTypeInfo(10)};
    private static final Object[][] VALUES = {
        {"a", "b", "ab", "é", "a.b", "10", "", "😀", "2024-01-02"},
        {1, 2, 10, -3, 0},
        {1L, 5000000000L, -9223372036854775808L, 9223372036854775807L},
        {Date.valueOf("2024-01-02"), Date.valueOf("2023-12-31"), Date.valueOf("1969-07-20")},
        {HiveDecimal.create("1.50"), HiveDecimal.create("-0.25"), HiveDecimal.create("12345678.90"), HiveDecimal.ZERO},
        {1.5, -0.25, 0.0, 1e300},
        {new HiveVarchar("a", 10), new HiveVarchar("xyz", 10)}};
    private static final String LONG = "a_value_of_more_than_sixty_four_characters_to_see_how_its_length_is_written_é";

    private final Random random;

    private HiveExpressions(long seed) {
        random = new Random(seed);
    }

    private ExprNodeDesc column(int key) {
        return new ExprNodeColumnDesc(TYPES[key], NAMES[key], random.nextBoolean() ? "t" : "a_table", true);
    }

    private ExprNodeDesc constant(int key) {
        Object[] values = VALUES[key];
        Object value = values[random.nextInt(values.length)];
        if (random.nextInt(40) == 0) {
            return new ExprNodeConstantDesc(TYPES[key], null);
        }
        if (key == 3 && random.nextInt(2) == 0) {
            return new ExprNodeConstantDesc(TypeInfoFactory.stringTypeInfo, value.toString());
        }
        if (key == 1 && random.nextInt(4) == 0) {
            return new ExprNodeConstantDesc(TypeInfoFactory.longTypeInfo, ((Integer) value).longValue());
        }
        if (key == 0 && random.nextInt(10) == 0) {
            return new ExprNodeConstantDesc(TYPES[key], LONG);
        }
        return new ExprNodeConstantDesc(TYPES[key], value);
    }

    private static ExprNodeDesc call(GenericUDF function, ExprNodeDesc... children) throws Exception {
        return ExprNodeGenericFuncDesc.newInstance(function, new ArrayList<>(Arrays.asList(children)));
    }

    private GenericUDF comparison() {
        switch (random.nextInt(6)) {
            case 0: return new GenericUDFOPEqual();
            case 1: return new GenericUDFOPNotEqual();
            case 2: return new GenericUDFOPLessThan();
            case 3: return new GenericUDFOPEqualOrLessThan();
            case 4: return new GenericUDFOPGreaterThan();
            default: return new GenericUDFOPEqualOrGreaterThan();
        }
    }

    private ExprNodeDesc leaf() throws Exception {
        int key = random.nextInt(NAMES.length);
        switch (random.nextInt(12)) {
            case 0:
                return call(new GenericUDFOPNull(), column(key));
            case 1:
                return call(new GenericUDFOPNotNull(), column(key));
            case 2:
                return call(comparison(), constant(key), column(key));
            case 3:
            case 4: {
                int used = key > 3 ? 0 : key;
                List<ExprNodeDesc> children = new ArrayList<>();
                children.add(column(used));
                for (int i = random.nextInt(3); i >= 0; i--) {
                    children.add(new ExprNodeConstantDesc(TYPES[used], VALUES[used][random.nextInt(VALUES[used].length)]));
                }
                return call(new GenericUDFIn(), children.toArray(new ExprNodeDesc[0]));
            }
            case 5: {
                int used = random.nextInt(3);
                ExprNodeDesc negated = new ExprNodeConstantDesc(TypeInfoFactory.booleanTypeInfo, random.nextInt(3) == 0);
                Object low = VALUES[used][random.nextInt(VALUES[used].length)];
                Object high = VALUES[used][random.nextInt(VALUES[used].length)];
                return call(new GenericUDFBetween(), negated, column(used), new ExprNodeConstantDesc(TYPES[used], low),
                    new ExprNodeConstantDesc(TYPES[used], high));
            }
            case 6: {
                String[] patterns = {"a%", "%b", "_", "a.b", "%", "a_b", "", "%1_%"};
                return call(new GenericUDFBridge("like", true, "org.apache.hadoop.hive.ql.udf.UDFLike"), column(0),
                    new ExprNodeConstantDesc(TYPES[0], patterns[random.nextInt(patterns.length)]));
            }
            default:
                return call(comparison(), column(key), constant(key));
        }
    }

    private ExprNodeDesc node(int depth) throws Exception {
        if (depth == 0 || random.nextInt(3) == 0) {
            return leaf();
        }
        if (random.nextInt(5) == 0) {
            return call(new GenericUDFOPNot(), node(depth - 1));
        }
        GenericUDF function = random.nextBoolean() ? new GenericUDFOPAnd() : new GenericUDFOPOr();
        ExprNodeDesc[] children = new ExprNodeDesc[2 + random.nextInt(2)];
        for (int i = 0; i < children.length; i++) {
            children[i] = node(depth - 1);
        }
        return call(function, children);
    }

    public static void main(String[] arguments) throws Exception {
        HiveExpressions source = new HiveExpressions(Long.parseLong(arguments[0]));
        List<String> rows = java.nio.file.Files.readAllLines(java.nio.file.Paths.get(arguments[2]));
        PartitionExpressionForMetastore evaluator = new PartitionExpressionForMetastore();
        for (int done = 0; done < Integer.parseInt(arguments[1]); done++) {
            ExprNodeGenericFuncDesc expression = (ExprNodeGenericFuncDesc) source.node(3);
            byte[] bytes = SerializationUtilities.serializeExpressionToKryo(expression);
            List<String> selected = new ArrayList<>(rows);
            String unsure;
            try {
                unsure = String.valueOf(evaluator.filterPartitionsByExpr(
                    Arrays.asList(NAMES), Arrays.asList(TYPES), bytes, "__HIVE_DEFAULT_PARTITION__", selected));
            } catch (Exception | LinkageError error) {
                unsure = "failed";
            }
            StringBuilder numbers = new StringBuilder();
            for (String name : selected) {
                numbers.append(numbers.length() == 0 ? "" : " ").append(rows.indexOf(name));
            }
            System.out.println(String.join("\t", expression.getExprString().replaceAll("\\s", " "),
                Base64.getEncoder().encodeToString(bytes), unsure, numbers));
        }
    }
}
