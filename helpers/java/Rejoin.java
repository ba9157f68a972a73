package rejoin;

import java.io.IOException;
import java.io.OutputStream;
import java.lang.annotation.Documented;
import java.lang.annotation.ElementType;
import java.lang.annotation.Inherited;
import java.lang.annotation.Retention;
import java.lang.annotation.RetentionPolicy;
import java.lang.annotation.Target;
import java.net.URI;
import java.net.URLEncoder;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import org.junit.jupiter.api.extension.AfterEachCallback;
import org.junit.jupiter.api.extension.BeforeEachCallback;
import org.junit.jupiter.api.extension.ExtendWith;
import org.junit.jupiter.api.extension.ExtensionContext;
import org.junit.jupiter.api.extension.LifecycleMethodExecutionExceptionHandler;
import org.junit.jupiter.api.extension.ParameterContext;
import org.junit.jupiter.api.extension.ParameterResolver;
import org.junit.jupiter.api.extension.TestExecutionExceptionHandler;
import org.junit.platform.commons.support.AnnotationSupport;

/**
 * A Kafka broker for tests with JUnit 5: started or found, reset before each test, driven over its control API.
 *
 * <p>Copy this file to src/test/java/rejoin; it needs Java 11 and JUnit alone. Its documentation is helpers/README.md of
 * Rejoin.
 *
 * <pre>{@code
 * @RejoinTest(clock = "virtual", topics = "orders:3")
 * class OrdersTest {
 *     @Test
 *     void aMemberJoins(Rejoin rejoin) {
 *         ...                                            // a consumer of any client, at rejoin.bootstrapServers()
 *         rejoin.waitForGroup("orders-app", Map.of("waiting", 1));
 *         rejoin.advance(Duration.ofSeconds(3));         // the initial rebalance delay
 *         rejoin.waitForGroup("orders-app", "Stable", 1);
 *     }
 * }
 * }</pre>
 */
public final class Rejoin {
    private static final Duration START_TIME = Duration.ofMinutes(2); // uvx may have to download it
    private static final Duration ANSWER_TIME = Duration.ofMinutes(1); // beyond the time that a call may wait by itself
    private static final Duration WHY_TIME = Duration.ofMinutes(1);
    private static final int TRANSCRIPT_LINES = 40;
    private static final int MOST_GROUPS = 3;
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private final String url;
    private final String bootstrapServers;
    private final List<String> topics; // to be made after each reset
    private final Semaphore turn = new Semaphore(1);
    private OutputStream input; // the broker ends with it: also where this process is killed

    /** A test, or all tests of a class, with a {@link Rejoin} among the parameters. */
    @Target({ElementType.TYPE, ElementType.METHOD})
    @Retention(RetentionPolicy.RUNTIME)
    @Inherited
    @Documented
    @ExtendWith(JUnitExtension.class)
    public @interface RejoinTest {
        /** "real", "virtual" or "fast:5"; "real" unless given. */
        String clock() default "";

        /** Topics as NAME:PARTITIONS. */
        String[] topics() default {};

        /** Settings as NAME=VALUE, by their dotted names. */
        String[] settings() default {};
    }

    /** The awaited state was not reached in time; the message has the last state. */
    public static final class NotReached extends AssertionError {
        NotReached(String message) {
            super(message);
        }
    }

    /** The broker cannot be reached, or refuses an operation; the message has the reason. */
    public static final class OperationRefused extends RuntimeException {
        OperationRefused(String message) {
            super(message);
        }
    }

    private Rejoin(String url, String bootstrapServers, List<String> topics) {
        this.url = url;
        this.bootstrapServers = bootstrapServers;
        this.topics = topics;
    }

    // Starting and finding.

    /** The broker of REJOIN_URL, or else one that is started by REJOIN_COMMAND, rejoin or uvx. */
    static Rejoin begin(String clock, List<String> topics, List<String> settings) {
        String found = variable("REJOIN_URL").replaceAll("/+$", "");
        return found.isEmpty() ? start(clock, topics, settings) : find(found, clock, topics, settings);
    }

    /** A variable of the environment, or a property of the system in its place. */
    private static String variable(String name) {
        String given = System.getProperty(name, System.getenv(name));
        return given == null ? "" : given;
    }

    private static Rejoin find(String url, String clock, List<String> topics, List<String> settings) {
        Map<String, Object> found = map(new Rejoin(url, "", topics).control("GET", "/control", Map.of()));
        if (!clock.isEmpty() && !clock.equals(found.get("clock"))) {
            throw new OperationRefused(
                "REJOIN_URL " + url + ": its clock is " + found.get("clock") + "; start it with --clock " + clock);
        }
        if (!settings.isEmpty()) {
            throw new OperationRefused(
                "REJOIN_URL " + url + ": a running broker takes no settings; start it with -c " + settings.get(0));
        }
        String servers = variable("BOOTSTRAP_SERVERS");
        return new Rejoin(url, servers.isEmpty() ? (String) found.get("bootstrap_servers") : servers, topics);
    }

    private static Rejoin start(String clock, List<String> topics, List<String> settings) {
        try {
            Path folder = Files.createTempDirectory("rejoin-");
            Path ready = folder.resolve("ready.json");
            Path log = folder.resolve("log");
            try {
                return start(ready, log, clock, topics, settings);
            } finally {
                Files.deleteIfExists(ready);
                Files.deleteIfExists(log);
                Files.deleteIfExists(folder);
            }
        } catch (IOException problem) {
            throw new OperationRefused("a broker cannot be started: " + problem);
        } catch (InterruptedException problem) {
            Thread.currentThread().interrupt();
            throw new OperationRefused("interrupted while a broker started");
        }
    }

    private static Rejoin start(Path ready, Path log, String clock, List<String> topics, List<String> settings)
        throws IOException, InterruptedException {
        Path evidence = Path.of(System.getProperty("java.io.tmpdir"), "rejoin-evidence");
        List<String> options = new ArrayList<>(List.of("serve", "--control", "--port", "0", "--log-level", "error"));
        options.addAll(List.of("--ready-file", ready.toString(), "--evidence", evidence.toString()));
        if (!clock.isEmpty()) {
            options.addAll(List.of("--clock", clock));
        }
        topics.forEach(each -> options.addAll(List.of("--topic", each)));
        settings.forEach(each -> options.addAll(List.of("-c", each)));
        options.addAll(List.of("--", "cat")); // it ends with its input, and the broker with it
        for (String line : commands()) {
            List<String> command = words(line);
            command.addAll(options);
            Process process;
            try {
                process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(log.toFile()).start();
            } catch (IOException problem) {
                if (variable("REJOIN_COMMAND").isEmpty()) {
                    continue;
                }
                throw new OperationRefused(line + " serve: command not found; REJOIN_COMMAND names it");
            }
            long end = System.nanoTime() + START_TIME.toNanos();
            while (System.nanoTime() < end) {
                if (Files.exists(ready)) {
                    Map<String, Object> found = map(new Json(Files.readString(ready)).read());
                    Rejoin made = new Rejoin((String) found.get("url"), (String) found.get("bootstrap_servers"), List.of());
                    made.input = process.getOutputStream();
                    return made;
                }
                if (process.waitFor(20, TimeUnit.MILLISECONDS)) {
                    break;
                }
            }
            String said = process.isAlive()
                ? "not ready within " + START_TIME.toSeconds() + " s"
                : "exit code " + process.exitValue();
            process.destroyForcibly();
            String output = lastLines(Files.readString(log), 10);
            throw new OperationRefused(
                line + " serve: " + said + ":\n" + output + "\nREJOIN_COMMAND may name another command");
        }
        throw new OperationRefused(
            "neither rejoin nor uvx was found: pip install rejoin-kafka, or set REJOIN_COMMAND or REJOIN_URL");
    }

    private static List<String> commands() {
        String given = variable("REJOIN_COMMAND");
        return given.isEmpty() ? List.of("rejoin", "uvx --from rejoin-kafka rejoin") : List.of(given);
    }

    /** The words of a command line; double quotes keep spaces. */
    private static List<String> words(String line) {
        List<String> found = new ArrayList<>();
        Matcher words = Pattern.compile("\"([^\"]*)\"|\\S+").matcher(line);
        while (words.find()) {
            found.add(words.group(1) == null ? words.group() : words.group(1));
        }
        return found;
    }

    private static String lastLines(String text, int count) {
        List<String> lines = Arrays.asList(text.strip().split("\n"));
        int left = Math.max(0, lines.size() - count);
        String kept = String.join("\n", lines.subList(left, lines.size()));
        return left == 0 ? kept : "(" + left + " earlier lines)\n" + kept;
    }

    // What a test calls. Names and fields are those of the control API.

    /** The address for Kafka clients, HOST:PORT. */
    public String bootstrapServers() {
        return bootstrapServers;
    }

    /** The address of the control API. */
    public String url() {
        return url;
    }

    /** The time on the broker's clock. */
    public long nowMs() {
        return number(map(control("GET", "/control/clock", Map.of())).get("now_ms"));
    }

    /** Wait until a group has this state and this many members; returns the group. */
    public Map<String, Object> waitForGroup(String group, String state, int members) {
        return waitForGroup(group, Map.of("state", state, "members", members));
    }

    /**
     * Wait until all conditions hold: state, members, assigned, generation, waiting; timeout_ms is 10,000 unless given.
     * Returns the group.
     */
    public Map<String, Object> waitForGroup(String group, Map<String, ?> conditions) {
        return map(map(control("POST", "/control/groups/wait", with(conditions, "group", group))).get("group"));
    }

    /** Move the clock by a time; returns now_ms, advanced_ms, reached, and lists of what fired and of events. */
    public Map<String, Object> advance(Duration by) {
        return map(control("POST", "/control/clock", Map.of("advance_ms", by.toMillis())));
    }

    /** Move the clock to the next timer. */
    public Map<String, Object> advanceToNext() {
        return map(control("POST", "/control/clock", Map.of("until", "next")));
    }

    /** Move the clock until only timers are left that always come back. */
    public Map<String, Object> advanceUntilIdle() {
        return map(control("POST", "/control/clock", Map.of("until", "idle")));
    }

    /** Add a fault rule, such as Map.of("keys", "Heartbeat", "error", "NOT_COORDINATOR", "count", 2). */
    public Fault addFault(Map<String, ?> fields) {
        return new Fault((String) map(control("POST", "/control/faults", fields)).get("id"));
    }

    /** Remove every fault rule. */
    public void clearFaults() {
        control("DELETE", "/control/faults", Map.of());
    }

    /** End a member's session now; member, instance or client_id names the member. Returns its id. */
    public String expire(String group, Map<String, ?> member) {
        return (String) map(control("POST", "/control/groups/expire", with(member, "group", group))).get("member");
    }

    /** Remove a member as an administrator does; returns its id. */
    public String kick(String group, Map<String, ?> member) {
        return (String) map(control("POST", "/control/groups/kick", with(member, "group", group))).get("member");
    }

    /** Send clients of the first listener to another address, such as a mapped port; returns the addresses for clients. */
    public String advertise(String host, int port) {
        return advertised(Map.of("host", host, "port", port));
    }

    /** Send clients of a listener to another address; returns the addresses for clients of the first listener. */
    public String advertise(String host, int port, String listener) {
        return advertised(Map.of("host", host, "port", port, "listener", listener));
    }

    private String advertised(Map<String, ?> address) {
        return (String) map(control("POST", "/control/advertise", address)).get("bootstrap_servers");
    }

    /** Take the offsets partition of a group away from the broker; returns its number. */
    public int resign(String group) {
        return (int) number(map(control("POST", "/control/partitions/resign", Map.of("group", group))).get("partition"));
    }

    /** Give the offsets partition of a group back, loaded from the log; returns its number. */
    public int elect(String group) {
        return (int) number(map(control("POST", "/control/partitions/elect", Map.of("group", group))).get("partition"));
    }

    /** Create a topic, or add partitions. */
    public void setTopic(String topic, int partitions) {
        control("POST", "/control/topics", Map.of("topic", topic, "partitions", partitions));
    }

    /** Delete a topic with its records. */
    public void deleteTopic(String topic) {
        control("POST", "/control/topics/delete", Map.of("topic", topic));
    }

    /** Write records: values, lists of key and value, or maps with key, value, headers and timestamp. */
    public void produce(String topic, Integer partition, List<?> records) {
        produceAny(topic, partition, records);
    }

    /** Write so many records, each with a value of its own, to a partition, or to every one where it is null. */
    public void produce(String topic, Integer partition, int records) {
        produceAny(topic, partition, records);
    }

    private void produceAny(String topic, Integer partition, Object records) {
        control("POST", "/control/topics/produce", with(Map.of("topic", topic, "records", records), "partition", partition));
    }

    /** Compact the logs of a topic now; returns the names of the topics. */
    public List<String> compact(String topic) {
        List<?> found = (List<?>) map(control("POST", "/control/topics/compact", Map.of("topic", topic))).get("topics");
        return found.stream().map(String.class::cast).collect(Collectors.toList());
    }

    /** The records of a topic, in the order of partitions. */
    public List<Map<String, Object>> records(String topic) {
        return maps(map(control("GET", "/control/topics/records", Map.of("topic", topic))).get("records"));
    }

    /** Requests of clients with their responses; api, client_id and since choose some. */
    public List<Map<String, Object>> requests(Map<String, ?> query) {
        return maps(map(control("GET", "/control/requests", query)).get("requests"));
    }

    /** Wait until a group has committed these offsets or later ones, each with topic, partition and offset. */
    public List<Map<String, Object>> waitForCommitted(String group, List<? extends Map<String, ?>> offsets) {
        return maps(map(control("POST", "/control/offsets/wait", Map.of("group", group, "offsets", offsets))).get("offsets"));
    }

    /**
     * Wait until a share group has so many members, records acquired by them, and records available for their next
     * delivery, of one topic if it is given; timeout_ms is 10,000 unless given. Returns its share-partitions.
     */
    public List<Map<String, Object>> waitForShareGroup(String group, Map<String, ?> conditions) {
        Object answer = control("POST", "/control/share-groups/wait", with(conditions, "group", group));
        return maps(map(answer).get("share_partitions"));
    }

    /**
     * Wait until a streams group has a state, so many members, tasks and standbys; timeout_ms is 10,000 unless given.
     * Returns the group, whose tasks have their members.
     */
    public Map<String, Object> waitForStreamsGroup(String group, Map<String, ?> conditions) {
        Object answer = control("POST", "/control/streams-groups/wait", with(conditions, "group", group));
        return map(map(answer).get("group"));
    }

    /** Save the whole state; returns its name. */
    public String snapshot() {
        return (String) map(control("POST", "/control/snapshot", Map.of())).get("snapshot");
    }

    /** Restore a snapshot, the time included. */
    public void restore(String snapshot) {
        control("POST", "/control/restore", Map.of("snapshot", snapshot));
    }

    /** Start over: no groups, offsets or faults, and the topics of the start. */
    public void reset() {
        control("POST", "/control/reset", Map.of());
        for (String each : topics) {
            String[] parts = each.split(":");
            setTopic(parts[0], parts.length > 1 ? Integer.parseInt(parts[1]) : 1);
        }
    }

    /** The mark of this moment, for since. */
    public long mark() {
        return number(map(control("GET", "/control/mark", Map.of())).get("mark"));
    }

    /** What happened since the reset, as a transcript. */
    public String transcript() {
        return transcript(0);
    }

    /** What happened since a mark, as a transcript. */
    public String transcript(long since) {
        return (String) control("GET", "/control/transcript", Map.of("since", since));
    }

    /** The last lines of the transcript, and why each group rebalanced. The exception of a failed test has it. */
    public String evidence() {
        try {
            List<String> parts = new ArrayList<>();
            parts.add("Rejoin's transcript:\n" + lastLines(transcript(), TRANSCRIPT_LINES) + "\n");
            maps(map(control("GET", "/groups", Map.of())).get("groups")).stream().limit(MOST_GROUPS)
                .forEach(each -> parts.add(why((String) each.get("groupId"))));
            return String.join("\n", parts);
        } catch (OperationRefused problem) {
            return "Rejoin's transcript: " + problem.getMessage();
        }
    }

    /** The output of rejoin why: why a group rebalanced, in ten lines. */
    public String why(String group) {
        for (String line : commands()) {
            List<String> command = words(line);
            command.addAll(List.of("why", "--bootstrap-server", url, "--", group));
            Process process;
            Path out;
            try {
                out = Files.createTempFile("rejoin-why", ".txt");
                try {
                    process = new ProcessBuilder(command).redirectErrorStream(true).redirectOutput(out.toFile()).start();
                    if (!process.waitFor(WHY_TIME.toSeconds(), TimeUnit.SECONDS)) {
                        process.destroyForcibly();
                    }
                    return Files.readString(out).strip();
                } finally {
                    Files.delete(out);
                }
            } catch (IOException problem) {
                continue; // the command is not there
            } catch (InterruptedException problem) {
                Thread.currentThread().interrupt();
                return "rejoin why " + group + ": interrupted";
            }
        }
        return "rejoin why " + group + ": " + String.join(" or ", commands()) + ": command not found";
    }

    /** A fault rule of a test. */
    public final class Fault {
        private final String id;

        private Fault(String id) {
            this.id = id;
        }

        /** The number of the rule. */
        public String id() {
            return id;
        }

        /** How many requests it was applied to. */
        public int hits() {
            return (int) number(map(control("GET", "/control/faults/" + id, Map.of())).get("hits"));
        }

        /** Wait until it was applied to so many requests. */
        public void waitFor(int hits) {
            control("POST", "/control/faults/" + id + "/wait", Map.of("hits", hits));
        }

        /** Let the requests go that a rule with pause holds. */
        public void release() {
            control("POST", "/control/faults/" + id + "/release", Map.of());
        }

        /** Remove the rule, and let the requests go that it holds. */
        public void remove() {
            control("DELETE", "/control/faults/" + id, Map.of());
        }
    }

    // Over HTTP.

    /** One call of the control API; returns its answer: a map, or text. Fields of a GET are its query. */
    public Object control(String method, String path, Map<String, ?> fields) {
        boolean isPost = method.equals("POST");
        String target = url + path + (isPost || fields.isEmpty() ? "" : "?" + query(fields));
        Object waits = fields.get("timeout_ms");
        Duration patience = ANSWER_TIME.plusMillis(waits instanceof Number ? ((Number) waits).longValue() : 0);
        HttpResponse<String> answer;
        try {
            HttpRequest.Builder request = HttpRequest.newBuilder(URI.create(target)).timeout(patience);
            request.method(method, isPost
                ? HttpRequest.BodyPublishers.ofString(Json.write(fields))
                : HttpRequest.BodyPublishers.noBody());
            if (isPost) {
                request.header("Content-Type", "application/json");
            }
            String token = variable("REJOIN_CONTROL_TOKEN");
            if (!token.isEmpty()) {
                request.header("Authorization", "Bearer " + token);
            }
            answer = HTTP.send(request.build(), HttpResponse.BodyHandlers.ofString());
        } catch (IOException | IllegalArgumentException problem) {
            String reason = problem.getMessage() == null ? problem.getClass().getSimpleName() : problem.getMessage();
            throw new OperationRefused(url + " does not answer (" + reason + "); expected rejoin serve --control there");
        } catch (InterruptedException problem) {
            Thread.currentThread().interrupt();
            throw new OperationRefused("interrupted while " + target + " was awaited");
        }
        boolean isJson = answer.headers().firstValue("Content-Type").orElse("").contains("json");
        if (answer.statusCode() == 200) {
            return isJson ? new Json(answer.body()).read() : answer.body();
        }
        throw problem(answer.statusCode(), target, isJson ? map(new Json(answer.body()).read()) : Map.of());
    }

    private OperationRefused problem(int status, String target, Map<String, Object> problem) {
        String kind = String.valueOf(problem.get("type"));
        String detail = String.valueOf(problem.getOrDefault("detail", target + " answers " + status));
        if (kind.endsWith(":not-reached")) {
            throw new NotReached(detail);
        } else if (status == 401) {
            detail = url + " refuses the token of REJOIN_CONTROL_TOKEN";
        } else if (kind.endsWith(":unknown-route")) {
            detail = target + " is not there: " + url + " must be a node of rejoin serve --control";
        }
        return new OperationRefused(detail);
    }

    private static String query(Map<String, ?> fields) {
        return fields.entrySet().stream()
            .map(each -> each.getKey() + "=" + URLEncoder.encode(each.getValue().toString(), StandardCharsets.UTF_8))
            .collect(Collectors.joining("&"));
    }

    private static Map<String, Object> with(Map<String, ?> fields, String name, Object value) {
        Map<String, Object> all = new LinkedHashMap<>(fields);
        all.put(name, value);
        return all;
    }

    @SuppressWarnings("unchecked")
    private static Map<String, Object> map(Object json) {
        return (Map<String, Object>) json;
    }

    @SuppressWarnings("unchecked")
    private static List<Map<String, Object>> maps(Object json) {
        return (List<Map<String, Object>>) json;
    }

    private static long number(Object json) {
        return ((Number) json).longValue();
    }

    /** Brokers by what they were started with; each runs until the tests have ended. */
    private static final Map<String, Rejoin> BROKERS = new ConcurrentHashMap<>();

    /** Hands a broker to tests, one after another, and explains failures. */
    static final class JUnitExtension
        implements BeforeEachCallback, AfterEachCallback, ParameterResolver, TestExecutionExceptionHandler,
            LifecycleMethodExecutionExceptionHandler {
        private static final ExtensionContext.Namespace SPACE = ExtensionContext.Namespace.create(Rejoin.class);

        @Override
        public void beforeEach(ExtensionContext context) throws InterruptedException {
            broker(context);
        }

        @Override
        public void afterEach(ExtensionContext context) {
            Rejoin held = context.getStore(SPACE).remove(Rejoin.class, Rejoin.class);
            if (held != null) {
                held.turn.release();
            }
        }

        @Override
        public boolean supportsParameter(ParameterContext parameter, ExtensionContext context) {
            return parameter.getParameter().getType() == Rejoin.class && context.getTestMethod().isPresent();
        }

        @Override
        public Object resolveParameter(ParameterContext parameter, ExtensionContext context) {
            return broker(context);
        }

        @Override
        public void handleTestExecutionException(ExtensionContext context, Throwable problem) throws Throwable {
            throw explained(context, problem);
        }

        @Override
        public void handleBeforeEachMethodExecutionException(ExtensionContext context, Throwable problem)
            throws Throwable {
            throw explained(context, problem);
        }

        /** The broker of a test, reset when it is first asked for. */
        private static Rejoin broker(ExtensionContext context) {
            Rejoin held = context.getStore(SPACE).get(Rejoin.class, Rejoin.class);
            if (held == null) {
                RejoinTest given = annotation(context);
                List<String> topics = List.of(given.topics());
                List<String> settings = List.of(given.settings());
                String key = given.clock() + " " + topics + " " + settings;
                held = BROKERS.computeIfAbsent(key, each -> begin(given.clock(), topics, settings));
                held.turn.acquireUninterruptibly();
                context.getStore(SPACE).put(Rejoin.class, held);
                held.reset();
            }
            return held;
        }

        private static RejoinTest annotation(ExtensionContext context) {
            Optional<RejoinTest> found = AnnotationSupport.findAnnotation(context.getTestMethod(), RejoinTest.class);
            for (Class<?> type = context.getRequiredTestClass(); found.isEmpty(); type = type.getEnclosingClass()) {
                found = AnnotationSupport.findAnnotation(type, RejoinTest.class);
            }
            return found.get();
        }

        /** The exception of a failed test, with what happened as a suppressed one: it stays what it is. */
        private static Throwable explained(ExtensionContext context, Throwable problem) {
            Rejoin held = context.getStore(SPACE).get(Rejoin.class, Rejoin.class);
            if (held != null) {
                String evidence = held.evidence();
                problem.addSuppressed(new WhatHappened(evidence));
                context.publishReportEntry("rejoin", evidence);
            }
            return problem;
        }
    }

    /** What happened before a test failed; it has no stack trace. */
    private static final class WhatHappened extends Exception {
        WhatHappened(String evidence) {
            super(evidence, null, false, false);
        }

        @Override
        public String toString() {
            return getMessage();
        }
    }

    /** JSON as maps, lists, text, numbers, booleans and null. */
    private static final class Json {
        private final String text;
        private int at;

        Json(String text) {
            this.text = text;
        }

        Object read() {
            switch (next()) {
                case '{':
                    return readMap();
                case '[':
                    return readList();
                case '"':
                    return readText();
                case 't':
                    return word("true", true);
                case 'f':
                    return word("false", false);
                case 'n':
                    return word("null", null);
                default:
                    return readNumber();
            }
        }

        private char next() {
            while (Character.isWhitespace(text.charAt(at))) {
                at++;
            }
            return text.charAt(at);
        }

        private Object word(String word, Object value) {
            at += word.length();
            return value;
        }

        private Map<String, Object> readMap() {
            Map<String, Object> found = new LinkedHashMap<>();
            at++;
            while (next() != '}') {
                if (text.charAt(at) == ',') {
                    at++;
                    next();
                }
                String name = readText();
                next();
                at++; // the colon
                found.put(name, read());
            }
            at++;
            return found;
        }

        private List<Object> readList() {
            List<Object> found = new ArrayList<>();
            at++;
            while (next() != ']') {
                if (text.charAt(at) == ',') {
                    at++;
                }
                found.add(read());
            }
            at++;
            return found;
        }

        private String readText() {
            StringBuilder found = new StringBuilder();
            for (at++; text.charAt(at) != '"'; at++) {
                char each = text.charAt(at);
                if (each != '\\') {
                    found.append(each);
                    continue;
                }
                char escaped = text.charAt(++at);
                int known = "bfnrt".indexOf(escaped);
                if (escaped == 'u') {
                    found.append((char) Integer.parseInt(text.substring(at + 1, at + 5), 16));
                    at += 4;
                } else {
                    found.append(known < 0 ? escaped : "\b\f\n\r\t".charAt(known));
                }
            }
            at++;
            return found.toString();
        }

        private Number readNumber() {
            int first = at;
            while (at < text.length() && "+-.eE0123456789".indexOf(text.charAt(at)) >= 0) {
                at++;
            }
            String number = text.substring(first, at);
            return number.matches("-?\\d+") ? (Number) Long.valueOf(number) : (Number) Double.valueOf(number);
        }

        static String write(Object value) {
            if (value instanceof Map) {
                return ((Map<?, ?>) value).entrySet().stream()
                    .map(each -> write(each.getKey().toString()) + ":" + write(each.getValue()))
                    .collect(Collectors.joining(",", "{", "}"));
            } else if (value instanceof Iterable) {
                List<String> parts = new ArrayList<>();
                ((Iterable<?>) value).forEach(each -> parts.add(write(each)));
                return "[" + String.join(",", parts) + "]";
            } else if (value == null || value instanceof Number || value instanceof Boolean) {
                return String.valueOf(value);
            }
            StringBuilder found = new StringBuilder("\"");
            for (char each : value.toString().toCharArray()) {
                if (each == '"' || each == '\\') {
                    found.append('\\').append(each);
                } else if (each < ' ') {
                    found.append(String.format("\\u%04x", (int) each));
                } else {
                    found.append(each);
                }
            }
            return found.append('"').toString();
        }
    }
}
