import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import com.yammer.metrics.core.MetricsRegistry;
import java.io.BufferedReader;
import java.io.FileReader;
import java.net.InetAddress;
import java.util.ArrayList;
import java.util.Comparator;
import java.util.HashMap;
import java.util.HashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.Set;
import java.util.concurrent.CompletableFuture;
import java.util.concurrent.TimeUnit;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.Uuid;
import org.apache.kafka.common.config.AbstractConfig;
import org.apache.kafka.common.config.ConfigDef;
import org.apache.kafka.common.errors.ApiException;
import org.apache.kafka.common.message.*;
import org.apache.kafka.common.metrics.Metrics;
import org.apache.kafka.common.protocol.Errors;
import org.apache.kafka.common.requests.JoinGroupRequest;
import org.apache.kafka.common.requests.JoinGroupResponse;
import org.apache.kafka.common.requests.LeaveGroupResponse;
import org.apache.kafka.common.requests.OffsetCommitRequest;
import org.apache.kafka.common.requests.OffsetFetchResponse;
import org.apache.kafka.common.security.auth.KafkaPrincipal;
import org.apache.kafka.common.security.auth.SecurityProtocol;
import org.apache.kafka.common.utils.Time;
import org.apache.kafka.common.utils.internals.LogContext;
import org.apache.kafka.coordinator.common.runtime.CoordinatorExecutor;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataDelta;
import org.apache.kafka.coordinator.common.runtime.CoordinatorMetadataImage;
import org.apache.kafka.coordinator.common.runtime.CoordinatorRecord;
import org.apache.kafka.coordinator.common.runtime.CoordinatorResult;
import org.apache.kafka.coordinator.common.runtime.CoordinatorTimer;
import org.apache.kafka.coordinator.group.GroupConfigManager;
import org.apache.kafka.coordinator.group.GroupCoordinatorConfig;
import org.apache.kafka.coordinator.group.GroupCoordinatorShard;
import org.apache.kafka.coordinator.group.metrics.GroupCoordinatorMetrics;
import org.apache.kafka.coordinator.group.modern.share.ShareGroupConfig;
import org.apache.kafka.server.authorizer.AuthorizableRequestContext;
import org.apache.kafka.timeline.SnapshotRegistry;

/**
 * Walks every path of a graph through Kafka's group coordinator, and compares each answer and the group after each step.
 *
 * The first line of the file has the settings, the topics and the group. Each other line is a state: its edges to later
 * states, each with a request or a time that passes, and with what is expected. A path ends with an edge to END. The
 * coordinator cannot be copied, so each path begins with a new one; steps that the path before began with are taken
 * again, their answers compared, and the group is not described again. What it draws (member ids) and what its hash maps
 * order is free: a path that differs is walked again, and differs only if it does so each time.
 *
 * With a second argument, "record", each path is printed with what Kafka answered, whether it is as expected or not.
 */
public class Walk {
    static final int ATTEMPTS = 400;
    static final int SHOWN = 40;
    static final int END = -1;
    static final ObjectMapper JSON = new ObjectMapper();
    static final String LONG = "[A-Za-z0-9-]*?-?[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}";
    static final String SHORT = "[A-Za-z0-9_-]{22}";
    static final Pattern ID = Pattern.compile(LONG + "|(?<=\")" + SHORT + "(?=\"(?!:))");
    static final Pattern WHOLE_ID = Pattern.compile(LONG + "|" + SHORT);
    static final Pattern NAME = Pattern.compile("#\\d+");

    static JsonNode header;
    static String group;
    static List<Edge[]> states = new ArrayList<>();
    static final Map<String, String> texts = new HashMap<>();
    static List<Edge> compared = List.of();
    static final Set<Class<?>> unexpected = new HashSet<>();
    static boolean records;
    static GroupCoordinatorConfig config;
    static GroupConfigManager groupConfigs;
    static GroupCoordinatorMetrics metrics = new GroupCoordinatorMetrics(new MetricsRegistry(), new Metrics());
    static CoordinatorMetadataImage image;

    static long paths, steps, again, unanswered, differences, sameDeadline, otherDeadline;

    static class Edge {
        int to;
        long wait = -1;
        String api, body, client, label, state;
        short version;
        int sender;
        long deadline;
        List<Expected> answers = new ArrayList<>();
        boolean differs;
        JsonNode json;
    }

    record Expected(int sender, int index, boolean optional, String text) { }

    record Answer(int sender, int index, String text) { }

    public static void main(String[] arguments) throws Exception {
        records = arguments.length > 1;
        try (BufferedReader lines = new BufferedReader(new FileReader(arguments[0]))) {
            header = JSON.readTree(lines.readLine());
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                ArrayNode edges = (ArrayNode) JSON.readTree(line);
                Edge[] read = new Edge[edges.size()];
                for (int i = 0; i < read.length; i++) read[i] = edge(edges.get(i));
                states.add(read);
            }
        }
        group = header.get("group").asText();
        Map<String, String> settings = JSON.convertValue(header.get("settings"), Map.class);
        config = GroupCoordinatorConfig.fromProps(settings);
        ConfigDef all = new ConfigDef(GroupCoordinatorConfig.CONFIG_DEF);
        ShareGroupConfig.CONFIG_DEF.configKeys().values().forEach(all::define);
        groupConfigs = new GroupConfigManager(config, new ShareGroupConfig(new AbstractConfig(all, settings, false)));
        Properties own = new Properties();
        header.get("groupSettings").fields().forEachRemaining(each -> own.put(each.getKey(), each.getValue().asText()));
        if (!own.isEmpty()) groupConfigs.updateGroupConfig(group, own);
        image = new Topics(header.get("topics"));
        texts.clear();
        walk(new ArrayList<>(), 0);
        if (records) return;
        System.out.printf(
            "{\"paths\": %d, \"steps\": %d, \"again\": %d, \"unanswered\": %d, \"differences\": %d, "
                + "\"sameDeadlines\": %d, \"otherDeadlines\": %d}%n",
            paths, steps, again, unanswered, differences, sameDeadline, otherDeadline);
    }

    static Edge edge(JsonNode json) {
        Edge edge = new Edge();
        edge.to = json.get("to").asInt();
        edge.label = text(json.get("label"));
        if (json.has("wait")) {
            edge.wait = json.get("wait").asLong();
        } else {
            edge.api = text(json.get("api"));
            edge.version = (short) json.get("version").asInt();
            edge.sender = json.get("sender").asInt();
            edge.client = text(json.get("client"));
            edge.body = text(json.get("body"));
        }
        for (JsonNode each : json.get("answers")) {
            edge.answers.add(new Expected(
                each.get(0).asInt(), each.get(1).asInt(), each.get(2).asBoolean(), text(each.get(3))));
        }
        edge.state = text(json.get("state"));
        edge.deadline = json.get("deadline").asLong();
        return edge;
    }

    /** A string that many edges share. */
    static String text(JsonNode json) {
        return texts.computeIfAbsent(json.asText(), each -> each);
    }

    static void walk(List<Edge> path, int state) throws Exception {
        for (Edge edge : states.get(state)) {
            if (edge.differs) continue;
            path.add(edge);
            if (edge.to == END) walkPath(path);
            else walk(path, edge.to);
            path.remove(path.size() - 1);
            for (Edge each : path) if (each.differs) return;
        }
    }

    static void walkPath(List<Edge> path) throws Exception {
        for (int attempt = 1; attempt <= ATTEMPTS; attempt++) {
            if (tryPath(path, attempt == ATTEMPTS)) {
                compared = List.copyOf(path);
                paths++;
                return;
            }
            again++;
        }
    }

    static boolean tryPath(List<Edge> path, boolean last) throws Exception {
        Run run = new Run();
        ArrayNode found = JSON.createArrayNode();
        boolean agrees = true;
        boolean known = !records;
        for (int i = 0; i < path.size(); i++) {
            Edge edge = path.get(i);
            known &= i < compared.size() && compared.get(i) == edge;
            String problem = run.take(edge, known, found);
            steps++;
            agrees &= problem == null;
            if (problem != null && !records) {
                if (last) differs(path, i, problem);
                return false;
            }
        }
        if (records && (agrees || last)) System.out.println(found);
        return agrees;
    }

    static void differs(List<Edge> path, int at, String problem) {
        path.get(at).differs = true;
        if (++differences > SHOWN) return;
        ObjectNode shown = JSON.createObjectNode();
        ArrayNode labels = shown.putArray("path");
        for (int k = 0; k <= at; k++) labels.add(path.get(k).label);
        shown.put("problem", problem);
        System.out.println(shown);
        System.out.flush();
    }

    /** A coordinator of its own, and what its clients know by name. */
    static class Run implements CoordinatorTimer<CoordinatorRecord>, CoordinatorExecutor<CoordinatorRecord> {
        final Clock clock = new Clock();
        final GroupCoordinatorShard shard;
        final Map<String, Timeout> timers = new HashMap<>();
        final Map<String, String> names = new HashMap<>();
        final Map<String, String> ids = new HashMap<>();
        final Map<Integer, List<Waiting>> waiting = new HashMap<>();
        final List<Runnable> tasks = new ArrayList<>();
        long offset;
        long serial;
        boolean began;
        int written;

        Run() {
            GroupCoordinatorShard.Builder builder = new GroupCoordinatorShard.Builder(config, groupConfigs);
            builder.withAuthorizerPlugin(Optional.empty());
            builder.withLogContext(new LogContext()).withTime(clock).withTimer(this).withExecutor(this)
                .withCoordinatorMetrics(metrics).withTopicPartition(new TopicPartition("__consumer_offsets", 0))
                .withSnapshotRegistry(new SnapshotRegistry(new LogContext()));
            shard = builder.build();
            shard.onLoaded(image);
            for (Uuid topic : image.topicIds()) names.put(topic.toString(), topic.toString());
            began = true;
        }

        /** Take a step. Returns how it differs, or null. The group of a known step is not described again. */
        String take(Edge edge, boolean known, ArrayNode shown) throws Exception {
            String problem = null;
            if (edge.wait >= 0) {
                long until = clock.now + edge.wait;
                int before = written;
                if (edge.wait > 0) fire(until - 1);
                if (written != before || answered()) problem = "fired early: " + found();
                fire(until);
            } else {
                send(edge);
            }
            while (!tasks.isEmpty()) tasks.remove(0).run();
            List<Answer> found = found();
            String answers = compared(edge, found);
            if (problem == null) problem = answers;
            if (known && problem == null) return null;
            String state = state();
            if (problem == null && !state.equals(edge.state)) {
                problem = "state: expected " + edge.state + ", found " + state;
            }
            long next = Long.MAX_VALUE;
            for (Timeout each : timers.values()) next = Math.min(next, each.at);
            long deadline = next == Long.MAX_VALUE ? -1 : next - clock.now;
            if (records) show(shown, found, state, deadline);
            if (problem != null) return problem;
            if (deadline == edge.deadline) sameDeadline++;
            else if (otherDeadline++ < SHOWN) System.err.println(edge.label + ": timer in " + deadline + ", not " + edge.deadline);
            return null;
        }

        void show(ArrayNode shown, List<Answer> found, String state, long deadline) {
            ObjectNode step = shown.addObject();
            ArrayNode answers = step.putArray("answers");
            for (Answer each : found) answers.addArray().add(each.sender).add(each.index).add(each.text);
            step.put("state", state).put("deadline", deadline);
        }

        boolean answered() {
            for (List<Waiting> all : waiting.values()) for (Waiting each : all) if (each.future.isDone()) return true;
            return false;
        }

        List<Answer> found() throws Exception {
            List<Answer> found = new ArrayList<>();
            for (Map.Entry<Integer, List<Waiting>> each : new java.util.TreeMap<>(waiting).entrySet()) {
                List<Waiting> all = each.getValue();
                for (int i = 0; i < all.size(); i++) {
                    if (all.get(i).future.isDone()) {
                        found.add(new Answer(each.getKey(), i, named(all.get(i).json())));
                    }
                }
            }
            return found;
        }

        String compared(Edge edge, List<Answer> found) {
            String problem = difference(edge, found);
            if (problem == null) {
                for (int i = edge.answers.size() - 1; i >= 0; i--) {
                    waiting.get(edge.answers.get(i).sender).remove(edge.answers.get(i).index);
                }
            } else {
                for (int i = found.size() - 1; i >= 0; i--) waiting.get(found.get(i).sender).remove(found.get(i).index);
            }
            return problem;
        }

        String difference(Edge edge, List<Answer> found) {
            int next = 0;
            for (Expected each : edge.answers) {
                Answer got = next < found.size() ? found.get(next) : null;
                boolean same = got != null && got.sender == each.sender && got.index == each.index;
                if (same && !got.text.equals(each.text)) return "expected " + each.text + ", found " + got.text;
                if (same) next++;
                else if (!each.optional) return "expected " + each + ", found " + found;
                else unanswered++;
            }
            return next < found.size() ? "expected " + edge.answers + ", found " + found : null;
        }

        /** An answer as text, with names in place of member ids: in the order in which they were first answered. */
        String named(JsonNode json) {
            sortMembers(json);
            Matcher matcher = ID.matcher(json.toString());
            StringBuilder text = new StringBuilder();
            while (matcher.find()) {
                String id = matcher.group();
                String name = names.computeIfAbsent(id, each -> "#" + (names.size() + 1));
                ids.put(name, id);
                matcher.appendReplacement(text, name);
            }
            return matcher.appendTail(text).toString();
        }

        String known(String id) {
            return WHOLE_ID.matcher(id).matches() ? names.getOrDefault(id, "#?") : id;
        }

        void sortMembers(JsonNode json) {
            JsonNode members = json.get("members");
            if (!(members instanceof ArrayNode) || members.size() < 2) return;
            List<JsonNode> sorted = new ArrayList<>();
            members.forEach(sorted::add);
            sorted.sort(Comparator.comparing(each ->
                each.path("metadata").asText() + "|" + each.path("groupInstanceId").asText() + "|"
                    + known(each.path("memberId").asText())));
            ((ObjectNode) json).putArray("members").addAll(sorted);
        }

        String state() {
            List<String> found = new ArrayList<>();
            Context context = new Context("", (short) 5, ApiKey.DESCRIBE_GROUPS);
            for (DescribeGroupsResponseData.DescribedGroup each : shard.describeGroups(context, List.of(group), Long.MAX_VALUE)) {
                found.add(each.groupState() + " " + each.protocolData());
                List<String> members = new ArrayList<>();
                for (DescribeGroupsResponseData.DescribedGroupMember member : each.members()) {
                    members.add(known(member.memberId()) + " " + member.groupInstanceId() + " "
                        + member.clientId() + " " + hex(member.memberMetadata()) + " " + hex(member.memberAssignment()));
                }
                members.sort(null);
                found.addAll(members);
            }
            for (ConsumerGroupDescribeResponseData.DescribedGroup each
                    : shard.consumerGroupDescribe(List.of(group), Long.MAX_VALUE)) {
                found.add(each.groupState() + " " + each.groupEpoch() + " " + each.assignmentEpoch());
                List<String> members = new ArrayList<>();
                for (ConsumerGroupDescribeResponseData.Member member : each.members()) {
                    members.add(known(member.memberId()) + " " + member.instanceId() + " " + member.memberEpoch() + " "
                        + partitions(member.assignment()) + " " + partitions(member.targetAssignment()));
                }
                members.sort(null);
                found.addAll(members);
            }
            return String.join("; ", found);
        }

        void send(Edge edge) throws Exception {
            JsonNode json = edge.json;
            if (json == null) {
                String body = NAME.matcher(edge.body).replaceAll(each -> ids.getOrDefault(each.group(), each.group()));
                json = JSON.readTree(body);
                if (edge.body.indexOf('#') < 0) edge.json = json;
            }
            short version = edge.version;
            Context context = new Context(edge.client, version, ApiKey.HEARTBEAT);
            List<Waiting> all = waiting.computeIfAbsent(edge.sender, each -> new ArrayList<>());
            Waiting sent = new Waiting(edge.api, version);
            all.add(sent);
            try {
                switch (edge.api) {
                    case "JoinGroup" -> apply(shard.classicGroupJoin(
                        context, join(json, version), sent.as(), false), null);
                    case "SyncGroup" -> apply(shard.classicGroupSync(
                        context, SyncGroupRequestDataJsonConverter.read(json, version), sent.as()), null);
                    case "Heartbeat" -> apply(shard.classicGroupHeartbeat(
                        context, HeartbeatRequestDataJsonConverter.read(json, version)), sent.future);
                    case "LeaveGroup" -> apply(shard.classicGroupLeave(
                        context, leave(json, version)), sent.future);
                    case "OffsetCommit" -> apply(shard.commitOffset(
                        context, withIds(OffsetCommitRequestDataJsonConverter.read(json, version))), sent.future);
                    case "ConsumerGroupHeartbeat" -> apply(shard.consumerGroupHeartbeat(
                        context, ConsumerGroupHeartbeatRequestDataJsonConverter.read(json, version)), sent.future);
                    case "OffsetFetch" -> sent.future.complete(new OffsetFetchResponseData().setGroups(List.of(
                        shard.fetchOffsets(OffsetFetchRequestDataJsonConverter.read(json, version).groups().get(0),
                            Long.MAX_VALUE))));
                    default -> throw new IllegalStateException(edge.api);
                }
            } catch (Exception problem) {
                if (!(problem instanceof ApiException) && unexpected.add(problem.getClass())) problem.printStackTrace();
                sent.future.complete(refused(edge.api, json, version, Errors.forException(problem)));
            }
        }

        /** As a broker reads a JoinGroup: in version 0 the session timeout is the rebalance timeout as well. */
        JoinGroupRequestData join(JsonNode json, short version) {
            return new JoinGroupRequest(JoinGroupRequestDataJsonConverter.read(json, version), version).data();
        }

        /** As KafkaApis hands a LeaveGroup on: with a list of members in every version. */
        LeaveGroupRequestData leave(JsonNode json, short version) {
            LeaveGroupRequestData request = LeaveGroupRequestDataJsonConverter.read(json, version);
            if (version >= 3) return request;
            LeaveGroupRequestData.MemberIdentity member = new LeaveGroupRequestData.MemberIdentity();
            return new LeaveGroupRequestData().setGroupId(request.groupId())
                .setMembers(List.of(member.setMemberId(request.memberId())));
        }

        /** As KafkaApis hands a commit on: with the id of each topic that it names. */
        OffsetCommitRequestData withIds(OffsetCommitRequestData request) {
            request.topics().forEach(topic ->
                image.topicMetadata(topic.name()).ifPresent(known -> topic.setTopicId(known.id())));
            return request;
        }

        Object refused(String api, JsonNode json, short version, Errors error) {
            return switch (api) {
                case "JoinGroup" -> new JoinGroupResponseData().setErrorCode(error.code());
                case "SyncGroup" -> new SyncGroupResponseData().setErrorCode(error.code());
                case "Heartbeat" -> new HeartbeatResponseData().setErrorCode(error.code());
                case "LeaveGroup" -> notLeft(leave(json, version), error);
                case "ConsumerGroupHeartbeat" -> new ConsumerGroupHeartbeatResponseData().setErrorCode(error.code());
                case "OffsetCommit" -> OffsetCommitRequest.getErrorResponse(
                    OffsetCommitRequestDataJsonConverter.read(json, version), error);
                default -> new OffsetFetchResponseData().setGroups(List.of(OffsetFetchResponse.groupError(
                    OffsetFetchRequestDataJsonConverter.read(json, version).groups().get(0), error, version)));
            };
        }

        /** As GroupCoordinatorService answers for a group that does not exist: each member is unknown. */
        Object notLeft(LeaveGroupRequestData request, Errors error) {
            LeaveGroupResponseData answer = new LeaveGroupResponseData();
            if (error != Errors.UNKNOWN_MEMBER_ID) return answer.setErrorCode(error.code());
            for (LeaveGroupRequestData.MemberIdentity each : request.members()) {
                answer.members().add(new LeaveGroupResponseData.MemberResponse().setMemberId(each.memberId())
                    .setGroupInstanceId(each.groupInstanceId()).setErrorCode(error.code()));
            }
            return answer;
        }

        /** Replay what was written, as once it is stored; then answer. */
        <T> void apply(CoordinatorResult<T, CoordinatorRecord> result, CompletableFuture<Object> future) {
            written += result.records().size();
            if (result.replayRecords()) {
                for (CoordinatorRecord record : result.records()) shard.replay(offset++, -1L, (short) -1, record);
            }
            if (result.appendFuture() != null) result.appendFuture().complete(null);
            if (future != null) future.complete(result.response());
        }

        // -- timers

        void fire(long until) {
            while (true) {
                Timeout first = null;
                for (Timeout each : timers.values()) {
                    if (each.at <= until && (first == null || each.at < first.at
                            || each.at == first.at && each.serial < first.serial)) first = each;
                }
                if (first == null) break;
                clock.now = Math.max(clock.now, first.at);
                timers.remove(first.key);
                apply(first.operation.generateRecords(), null);
            }
            clock.now = until;
        }

        @Override public void schedule(
                String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            if (began) timers.put(key, new Timeout(key, clock.now + unit.toMillis(delay), serial++, operation));
        }

        @Override public void schedule(String key, long delay, TimeUnit unit, boolean retry, long backoff,
                TimeoutOperation<CoordinatorRecord> operation) {
            schedule(key, delay, unit, retry, operation);
        }

        @Override public void scheduleIfAbsent(
                String key, long delay, TimeUnit unit, boolean retry, TimeoutOperation<CoordinatorRecord> operation) {
            if (!timers.containsKey(key)) schedule(key, delay, unit, retry, operation);
        }

        @Override public void cancel(String key) {
            timers.remove(key);
        }

        @Override public boolean isScheduled(String key) {
            return timers.containsKey(key);
        }

        @Override public <R> boolean schedule(
                String key, TaskRunnable<R> task, TaskOperation<CoordinatorRecord, R> operation) {
            tasks.add(() -> {
                try {
                    apply(operation.onComplete(task.run(), null), null);
                } catch (Throwable problem) {
                    throw new IllegalStateException(problem);
                }
            });
            return true;
        }
    }

    record Timeout(String key, long at, long serial, CoordinatorTimer.TimeoutOperation<CoordinatorRecord> operation) { }

    enum ApiKey { HEARTBEAT, DESCRIBE_GROUPS }

    static class Waiting {
        final String api;
        final short version;
        final CompletableFuture<Object> future = new CompletableFuture<>();

        Waiting(String api, short version) {
            this.api = api;
            this.version = version;
        }

        @SuppressWarnings("unchecked")
        <T> CompletableFuture<T> as() {
            return (CompletableFuture<T>) (CompletableFuture<?>) future;
        }

        JsonNode json() throws Exception {
            Object answer = future.get();
            JsonNode json = switch (api) {
                case "JoinGroup" -> JoinGroupResponseDataJsonConverter.write(
                    new JoinGroupResponse((JoinGroupResponseData) answer, version).data(), version);
                case "SyncGroup" -> SyncGroupResponseDataJsonConverter.write((SyncGroupResponseData) answer, version);
                case "Heartbeat" -> HeartbeatResponseDataJsonConverter.write((HeartbeatResponseData) answer, version);
                case "LeaveGroup" -> LeaveGroupResponseDataJsonConverter.write(
                    new LeaveGroupResponse((LeaveGroupResponseData) answer, version).data(), version);
                case "OffsetCommit" ->
                    OffsetCommitResponseDataJsonConverter.write((OffsetCommitResponseData) answer, version);
                case "ConsumerGroupHeartbeat" -> ConsumerGroupHeartbeatResponseDataJsonConverter.write(
                    (ConsumerGroupHeartbeatResponseData) answer, version);
                default -> OffsetFetchResponseDataJsonConverter.write((OffsetFetchResponseData) answer, version);
            };
            if (json.has("errorMessage")) ((ObjectNode) json).remove("errorMessage");
            return json;
        }
    }

    static class Clock implements Time {
        long now = 1_600_000_000_000L;

        @Override public long milliseconds() {
            return now;
        }

        @Override public long nanoseconds() {
            return now * 1_000_000L;
        }

        @Override public void sleep(long ms) {
            now += ms;
        }

        @Override public void waitObject(Object object, java.util.function.Supplier<Boolean> condition, long deadline) {
            throw new UnsupportedOperationException();
        }

        @Override public <T> T waitForFuture(java.util.concurrent.Future<T> future, long deadline) {
            throw new UnsupportedOperationException();
        }
    }

    record Context(String clientId, short version, ApiKey api) implements AuthorizableRequestContext {
        @Override public String listenerName() {
            return "PLAINTEXT";
        }

        @Override public SecurityProtocol securityProtocol() {
            return SecurityProtocol.PLAINTEXT;
        }

        @Override public KafkaPrincipal principal() {
            return KafkaPrincipal.ANONYMOUS;
        }

        @Override public InetAddress clientAddress() {
            return InetAddress.getLoopbackAddress();
        }

        @Override public int requestType() {
            return 0;
        }

        @Override public int requestVersion() {
            return version;
        }

        @Override public int correlationId() {
            return 0;
        }
    }

    static class Topics implements CoordinatorMetadataImage {
        final Map<String, TopicMetadata> byName = new HashMap<>();
        final Map<Uuid, TopicMetadata> byId = new HashMap<>();

        record Topic(String name, Uuid id, int partitionCount) implements TopicMetadata {
            @Override public List<String> partitionRacks(int partition) {
                return new ArrayList<>();
            }
        }

        Topics(JsonNode topics) {
            for (JsonNode each : topics) {
                Topic topic = new Topic(
                    each.get(0).asText(), Uuid.fromString(each.get(1).asText()), each.get(2).asInt());
                byName.put(topic.name(), topic);
                byId.put(topic.id(), topic);
            }
        }

        @Override public Set<Uuid> topicIds() {
            return byId.keySet();
        }

        @Override public Set<String> topicNames() {
            return byName.keySet();
        }

        @Override public Optional<TopicMetadata> topicMetadata(String name) {
            return Optional.ofNullable(byName.get(name));
        }

        @Override public Optional<TopicMetadata> topicMetadata(Uuid id) {
            return Optional.ofNullable(byId.get(id));
        }

        @Override public CoordinatorMetadataDelta emptyDelta() {
            return CoordinatorMetadataDelta.EMPTY;
        }

        @Override public long version() {
            return 1;
        }

        @Override public boolean isEmpty() {
            return byName.isEmpty();
        }
    }

    static String hex(byte[] bytes) {
        return java.util.HexFormat.of().formatHex(bytes);
    }

    static String partitions(ConsumerGroupDescribeResponseData.Assignment assignment) {
        List<String> found = new ArrayList<>();
        for (ConsumerGroupDescribeResponseData.TopicPartitions topic : assignment.topicPartitions()) {
            for (int partition : topic.partitions()) found.add(topic.topicName() + "-" + partition);
        }
        found.sort(null);
        return found.toString();
    }
}
