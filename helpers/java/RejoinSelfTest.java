package rejoin;

import static org.junit.jupiter.api.Assertions.assertEquals;
import static org.junit.jupiter.api.Assertions.assertThrows;
import static org.junit.jupiter.api.Assertions.assertTrue;

import com.sun.net.httpserver.HttpServer;
import java.io.IOException;
import java.net.InetSocketAddress;
import java.net.URI;
import java.net.http.HttpClient;
import java.net.http.HttpRequest;
import java.net.http.HttpResponse;
import java.time.Duration;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CompletableFuture;
import org.junit.jupiter.api.Test;
import rejoin.Rejoin.RejoinTest;

/** The helper with a member of its own and without a Kafka client; REJOIN_COMMAND or rejoin starts the broker. */
@RejoinTest(clock = "virtual", topics = "orders:3")
class RejoinSelfTest {
    private static final HttpClient HTTP = HttpClient.newBuilder().version(HttpClient.Version.HTTP_1_1).build();

    private static CompletableFuture<String> join(Rejoin rejoin, String memberId) {
        String body = "{\"groupId\": \"orders-app\", \"sessionTimeoutMs\": 45000, \"rebalanceTimeoutMs\": 300000,"
            + "\"memberId\": \"" + memberId + "\", \"groupInstanceId\": null, \"protocolType\": \"consumer\", \"reason\": null,"
            + "\"protocols\": [{\"name\": \"range\", \"metadata\": \"AAAAAAABAAZvcmRlcnP/////\"}]}";
        HttpRequest request = HttpRequest.newBuilder(URI.create(rejoin.url() + "/v1/join-group"))
            .header("Content-Type", "application/json").header("Kafka-Client-Id", "one")
            .POST(HttpRequest.BodyPublishers.ofString(body)).build();
        return HTTP.sendAsync(request, HttpResponse.BodyHandlers.ofString()).thenApply(HttpResponse::body);
    }

    /** A member that has joined: its answer comes after the initial rebalance delay. */
    private static String member(Rejoin rejoin) {
        String memberId = join(rejoin, "").join().replaceAll("(?s).*\"memberId\":\"([^\"]+)\".*", "$1");
        CompletableFuture<String> joined = join(rejoin, memberId);
        rejoin.waitForGroup("orders-app", Map.of("waiting", 1));
        assertEquals(3_000L, rejoin.advance(Duration.ofSeconds(3)).get("advanced_ms"));
        return joined.join();
    }

    @Test
    void aMemberIsRemovedWhenItsSessionHasPassed(Rejoin rejoin) {
        assertTrue(member(rejoin).contains("\"generationId\":1,"));
        rejoin.waitForGroup("orders-app", "CompletingRebalance", 1);
        long before = rejoin.nowMs();
        rejoin.advanceUntilIdle();
        assertTrue(rejoin.nowMs() > before);
        rejoin.waitForGroup("orders-app", "Empty", 0);
    }

    @Test
    void eachTestBeginsWithoutGroupsAndRecords(Rejoin rejoin) {
        assertEquals(List.of(), rejoin.records("orders"));
        assertThrows(Rejoin.NotReached.class, () -> rejoin.waitForGroup("orders-app", Map.of("timeout_ms", 1)));
    }

    @Test
    void aShareGroupThatHasNoRecordsToHoldIsNotReached(Rejoin rejoin) {
        Map<String, Object> wanted = Map.of("members", 1, "acquired", 2, "available", 0, "topic", "orders", "timeout_ms", 1);
        assertThrows(Rejoin.NotReached.class, () -> rejoin.waitForShareGroup("orders-share", wanted));
    }

    @Test
    void aStreamsGroupThatIsNotThereIsNotReached(Rejoin rejoin) {
        Map<String, Object> wanted = Map.of("state", "Stable", "tasks", 6, "timeout_ms", 1);
        assertThrows(Rejoin.NotReached.class, () -> rejoin.waitForStreamsGroup("words", wanted));
        rejoin.setTopic("lines", 1);
        rejoin.deleteTopic("lines");
        assertThrows(Rejoin.OperationRefused.class, () -> rejoin.deleteTopic("lines"));
    }

    @Test
    void faultsAreAppliedAwaitedAndRemoved(Rejoin rejoin) {
        Rejoin.Fault fault = rejoin.addFault(Map.of("keys", "JoinGroup", "error", "COORDINATOR_NOT_AVAILABLE"));
        assertTrue(join(rejoin, "").join().contains("\"errorCode\":15,"));
        fault.waitFor(1);
        assertEquals(1, fault.hits());
        fault.remove();
        Rejoin.Fault paused = rejoin.addFault(Map.of("keys", "JoinGroup", "pause", true));
        CompletableFuture<String> held = join(rejoin, "");
        paused.waitFor(1);
        paused.release();
        assertTrue(held.join().contains("\"errorCode\":79,"));
        rejoin.clearFaults();
        assertEquals(2, rejoin.requests(Map.of("api", "JoinGroup", "client_id", "one")).size());
        assertTrue(rejoin.transcript().contains("JoinGroup"));
    }

    @Test
    void topicsGrowAndHaveRecords(Rejoin rejoin) {
        rejoin.setTopic("orders", 4);
        rejoin.produce("orders", 0, List.of("a", List.of("k", "b \"\\\u00e9\n")));
        rejoin.produce("orders", null, 1);
        List<Map<String, Object>> found = rejoin.records("orders");
        assertEquals("a", found.get(0).get("value"));
        assertEquals("b \"\\\u00e9\n", found.get(1).get("value"));
        assertEquals("orders-3@0", found.get(5).get("value"));
        assertThrows(Rejoin.OperationRefused.class, () -> rejoin.compact("orders"));
    }

    @Test
    void snapshotsTakeTheTimeBack(Rejoin rejoin) {
        String saved = rejoin.snapshot();
        long now = rejoin.nowMs();
        rejoin.advanceToNext();
        rejoin.restore(saved);
        assertEquals(now, rejoin.nowMs());
        assertTrue(rejoin.mark() >= 1);
    }

    @Test
    void aMemberIsExpiredAndTheCoordinatorMoves(Rejoin rejoin) {
        member(rejoin);
        assertEquals(rejoin.resign("orders-app"), rejoin.elect("orders-app"));
        assertEquals("orders-app", rejoin.waitForGroup("orders-app", Map.of()).get("group_id"));
        for (Map<String, String> missing : List.of(Map.of("instance", "none"), Map.of("client_id", "two"))) {
            assertThrows(Rejoin.OperationRefused.class, () -> rejoin.kick("orders-app", missing));
            assertThrows(Rejoin.OperationRefused.class, () -> rejoin.expire("orders-app", missing));
        }
        assertThrows(Rejoin.OperationRefused.class, () -> rejoin.waitForCommitted("orders-app", List.of()));
    }

    @Test
    void clientsAreSentToAnAddressThatIsSet(Rejoin rejoin) {
        String servers = rejoin.bootstrapServers();
        int colon = servers.lastIndexOf(':');
        int port = Integer.parseInt(servers.substring(colon + 1));
        assertEquals(servers, rejoin.advertise(servers.substring(0, colon), port));
        assertEquals(servers, rejoin.advertise(servers.substring(0, colon), port, "PLAINTEXT"));
        assertThrows(Rejoin.OperationRefused.class, () -> rejoin.advertise("broker", port, "NONE"));
    }

    @Test
    void theEvidenceOfAFailedTestHasTheTranscriptAndWhy(Rejoin rejoin) {
        member(rejoin);
        String evidence = rejoin.evidence();
        for (String part : List.of("Rejoin's transcript:", "JoinGroup", "group    orders-app")) {
            assertTrue(evidence.contains(part), evidence);
        }
    }

    @Test
    void aRefusedTokenIsNamed() throws IOException {
        HttpServer server = HttpServer.create(new InetSocketAddress("127.0.0.1", 0), 0);
        List<String> given = new ArrayList<>();
        server.createContext("/", exchange -> {
            given.add(exchange.getRequestHeaders().getFirst("Authorization"));
            exchange.sendResponseHeaders(401, -1);
            exchange.close();
        });
        server.start();
        String url = "http://127.0.0.1:" + server.getAddress().getPort();
        Map<String, String> variables = Map.of("REJOIN_URL", url, "REJOIN_CONTROL_TOKEN", "wrong");
        says(url + " refuses the token of REJOIN_CONTROL_TOKEN", variables, "", List.of());
        assertEquals(List.of("Bearer wrong"), given);
        server.stop(0);
    }

    @Test
    void aWrongAddressCommandClockOrSettingIsNamedInASentence(Rejoin rejoin) {
        Map<String, String> found = Map.of("REJOIN_URL", rejoin.url());
        says("http://127.0.0.1:9 does not answer (", Map.of("REJOIN_URL", "http://127.0.0.1:9"), "", List.of());
        says("must be a node of rejoin serve --control", Map.of("REJOIN_URL", rejoin.url() + "/no"), "", List.of());
        says("command not found", Map.of("REJOIN_COMMAND", "no-such-command", "REJOIN_URL", ""), "", List.of());
        says("--clock", Map.of("REJOIN_URL", ""), "wrong", List.of());
        says("its clock is virtual; start it with --clock real", found, "real", List.of());
        says("start it with -c group.max.size=3", found, "", List.of("group.max.size=3"));
    }

    private static void says(String part, Map<String, String> variables, String clock, List<String> settings) {
        Map<String, String> before = new HashMap<>();
        variables.forEach((name, value) -> before.put(name, System.setProperty(name, value)));
        try {
            RuntimeException problem =
                assertThrows(Rejoin.OperationRefused.class, () -> Rejoin.begin(clock, List.of(), settings));
            assertTrue(problem.getMessage().contains(part), problem.getMessage());
        } finally {
            before.forEach((name, value) -> {
                if (value == null) {
                    System.clearProperty(name);
                } else {
                    System.setProperty(name, value);
                }
            });
        }
    }
}
