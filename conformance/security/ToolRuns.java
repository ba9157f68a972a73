import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Arrays;
import java.util.Base64;
import org.apache.kafka.common.utils.internals.Exit;

/** Runs Kafka's tools in one process, as each start of Java takes seconds.
 *
 * A line of the standard input has the class and its arguments, with tabs between them. A line of the output has the
 * exit code, the standard output and the standard error of that run, both in base64.
 */
public class ToolRuns {
    private static final class Ended extends Error {
    }

    private static Integer code;

    private static final class Kept {
        final ByteArrayOutputStream out = new ByteArrayOutputStream();
        final ByteArrayOutputStream err = new ByteArrayOutputStream();
    }

    public static void main(String[] arguments) throws Exception {
        PrintStream answers = System.out;
        BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line = lines.readLine(); line != null; line = lines.readLine()) {
            String[] words = line.split("\t");
            Kept kept = new Kept();
            String[] texts = run(words, kept);
            Base64.Encoder base64 = Base64.getEncoder();
            String out = base64.encodeToString(texts[0].getBytes(StandardCharsets.UTF_8));
            String err = base64.encodeToString(texts[1].getBytes(StandardCharsets.UTF_8));
            answers.println(code + " ." + out + " ." + err);
            answers.flush();
        }
    }

    /** What a tool printed before its first exit: some catch what is thrown here in place of it, and go on. */
    private static String[] run(String[] words, Kept kept) throws Exception {
        String[][] printed = new String[1][];
        code = null;
        Exit.Procedure end = (status, message) -> {
            if (code == null) {
                code = status;
                printed[0] = texts(kept);
            }
            throw new Ended();
        };
        Exit.setExitProcedure(end);
        Exit.setHaltProcedure(end);
        PrintStream out = System.out, err = System.err;
        System.setOut(new PrintStream(kept.out, true, StandardCharsets.UTF_8));
        System.setErr(new PrintStream(kept.err, true, StandardCharsets.UTF_8));
        try {
            Class<?> tool = Class.forName(words[0]);
            tool.getMethod("main", String[].class).invoke(null, (Object) Arrays.copyOfRange(words, 1, words.length));
        } catch (java.lang.reflect.InvocationTargetException thrown) {
            if (code == null && !(thrown.getCause() instanceof Ended)) {
                thrown.getCause().printStackTrace();
                code = 1;
            }
        } finally {
            System.setOut(out);
            System.setErr(err);
        }
        if (code == null) {
            code = 0;
        }
        return printed[0] == null ? texts(kept) : printed[0];
    }

    private static String[] texts(Kept kept) {
        return new String[] {kept.out.toString(StandardCharsets.UTF_8), kept.err.toString(StandardCharsets.UTF_8)};
    }
}
