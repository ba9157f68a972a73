import java.io.BufferedReader;
import java.io.ByteArrayOutputStream;
import java.io.InputStreamReader;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.util.Base64;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.locks.LockSupport;
import org.apache.kafka.common.utils.internals.Exit;

/**
 * Runs Kafka's command-line tools in one JVM, as each takes seconds to start. A line of the input is a class and its
 * arguments, with tabs between them; a line of the output is the exit code and what was printed as output and as
 * errors, both in base64 behind a letter.
 */
public class ToolRunner {
  private static final int SECONDS = 60;

  public static void main(String[] none) throws Exception {
    PrintStream answers = System.out;
    BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = lines.readLine(); line != null; line = lines.readLine()) {
      String[] parts = line.split("\t", -1);
      ByteArrayOutputStream printed = new ByteArrayOutputStream();
      ByteArrayOutputStream errors = new ByteArrayOutputStream();
      System.setOut(new PrintStream(printed, true, StandardCharsets.UTF_8));
      System.setErr(new PrintStream(errors, true, StandardCharsets.UTF_8));
      int code = run(parts);
      answers.println(code + " o" + base64(printed) + " e" + base64(errors));
      answers.flush();
    }
    Runtime.getRuntime().halt(0);
  }

  private static String base64(ByteArrayOutputStream text) {
    return Base64.getEncoder().encodeToString(text.toByteArray());
  }

  /** The exit code of a tool. A thread that exits stays where it is, as its process would have ended there. */
  private static int run(String[] parts) throws Exception {
    CompletableFuture<Integer> ended = new CompletableFuture<>();
    Exit.Procedure procedure = (code, message) -> {
      ended.complete(code);
      while (true) {
        LockSupport.park();
      }
    };
    Exit.setExitProcedure(procedure);
    Exit.setHaltProcedure(procedure);
    String[] arguments = new String[parts.length - 1];
    System.arraycopy(parts, 1, arguments, 0, arguments.length);
    Thread thread = new Thread(() -> {
      try {
        Class.forName(parts[0]).getMethod("main", String[].class).invoke(null, (Object) arguments);
        ended.complete(0);
      } catch (Throwable problem) {
        (problem.getCause() == null ? problem : problem.getCause()).printStackTrace();
        ended.complete(1);
      }
    });
    thread.setDaemon(true);
    thread.start();
    return ended.get(SECONDS, TimeUnit.SECONDS);
  }
}
