import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import java.util.stream.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.serialization.*;

/** KafkaShareConsumer in groups of its own, one for each step, which prints a line of JSON. */
public final class ShareGroups {
    private static final Duration PATIENCE = Duration.ofSeconds(60);
    private static final Duration QUIET = Duration.ofSeconds(1);
    private static final int LOCK_MS = 3_000;
    private static final int LONG_LOCK_MS = 60_000;

    private final String bootstrap;
    private final Admin admin;
    private final List<KafkaShareConsumer<String, String>> open = new ArrayList<>();

    private ShareGroups(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        ShareGroups all = new ShareGroups(arguments[0]);
        if (arguments.length > 1) {
            all.holdForEver(arguments[1]);
            return;
        }
        all.step("three members on two partitions", all::threeMembers);
        all.step("release", all::release);
        all.step("reject", all::reject);
        all.step("renew", all::renew);
        all.step("a lock runs out", all::lockRunsOut);
        all.step("one is killed with records in flight", all::aKill);
        all.step("delivery limit and dead letters", all::deadLetters);
        all.step("rolling restart", all::rollingRestart);
        all.step("list and describe", all::describe);
        all.step("offsets: list, alter, delete", all::offsets);
        all.step("delete a share group", all::delete);
        System.exit(0);
    }

    private interface Work {
        void run() throws Exception;
    }

    private void step(String name, Work work) {
        String problem = "";
        try {
            work.run();
        } catch (Throwable thrown) {
            problem = String.valueOf(thrown.getCause() == null ? thrown : thrown.getCause());
        }
        closeAll();
        String quoted = problem.replace("\\", "\\\\").replace("\"", "'").replaceAll("\\s+", " ");
        System.out.printf("{\"step\": \"%s\", \"problem\": \"%s\"}%n", name, quoted);
    }

    private static void expect(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) throw new AssertionError(what + ": expected " + wanted + ", got " + found);
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!holds(condition)) {
            if (System.nanoTime() > end) throw new TimeoutException(what);
            Thread.sleep(20);
        }
    }

    /** A group is not found before its first member has joined. */
    private static boolean holds(Callable<Boolean> condition) throws Exception {
        try {
            return condition.call();
        } catch (ExecutionException failed) {
            if (failed.getCause() instanceof GroupIdNotFoundException) return false;
            throw failed;
        }
    }

    // --- steps

    private void threeMembers() throws Exception {
        String group = prepare("java-three", 2, Map.of());
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        Set<String> busy = ConcurrentHashMap.newKeySet();
        List<Member> members = Stream.of("one", "two", "three").map(name -> new Member(name, group, seen, busy)).toList();
        await("three members, each with a partition", () -> {
            var found = described(group);
            return found.members().size() == 3 && found.groupState() == GroupState.STABLE
                && found.members().stream().noneMatch(each -> each.assignment().topicPartitions().isEmpty());
        });
        int written = 0;
        while (busy.size() < 3 && written < 3_000) {
            produce(group, written, 60);
            written += 60;
            int wanted = written;
            await("all records", () -> seen.size() == wanted);
        }
        expect("members that were given records", busy, Set.of("one", "two", "three"));
        for (Member member : members) member.close();
        expect("deliveries", seen.values().stream().mapToInt(Integer::intValue).sum(), written);
        await("lag 0", () -> lag(group) == 0);
    }

    private void release() throws Exception {
        String group = prepare("java-release", 1, Map.of());
        produce(group, 0, 3);
        var consumer = explicit(group, "one");
        for (var record : poll(consumer, 3)) {
            expect("delivery count", record.deliveryCount().get(), (short) 1);
            consumer.acknowledge(record, record.offset() == 1 ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
        }
        commit(consumer);
        var again = poll(consumer, 1).get(0);
        expect("offset", again.offset(), 1L);
        expect("delivery count", again.deliveryCount().get(), (short) 2);
        consumer.acknowledge(again);
        commit(consumer);
        nothingLeft(consumer, group);
    }

    private void reject() throws Exception {
        String group = prepare("java-reject", 1, Map.of());
        produce(group, 0, 3);
        var consumer = explicit(group, "one");
        for (var record : poll(consumer, 3)) {
            consumer.acknowledge(record, record.offset() == 1 ? AcknowledgeType.REJECT : AcknowledgeType.ACCEPT);
        }
        commit(consumer);
        nothingLeft(consumer, group);
    }

    private void renew() throws Exception {
        String group = prepare("java-renew", 1, Map.of("share.record.lock.duration.ms", String.valueOf(LOCK_MS)));
        produce(group, 0, 1);
        var consumer = explicit(group, "one");
        var other = explicit(group, "two");
        var record = poll(consumer, 1).get(0);
        expect("lock of the group", consumer.acquisitionLockTimeoutMs(), Optional.of(LOCK_MS));
        long end = System.nanoTime() + Duration.ofMillis(2 * LOCK_MS).toNanos();
        while (System.nanoTime() < end) {
            consumer.acknowledge(record, AcknowledgeType.RENEW);
            commit(consumer);
            expect("records of the other member", other.poll(Duration.ofMillis(LOCK_MS / 6)).count(), 0);
            for (var same : consumer.poll(Duration.ofMillis(LOCK_MS / 6))) record = same;
        }
        expect("delivery count", record.deliveryCount().get(), (short) 1);
        consumer.acknowledge(record, AcknowledgeType.ACCEPT);
        commit(consumer);
        nothingLeft(other, group);
    }

    private void lockRunsOut() throws Exception {
        String group = prepare("java-lock", 1, Map.of("share.record.lock.duration.ms", String.valueOf(LOCK_MS)));
        produce(group, 0, 2);
        var slow = explicit(group, "slow");
        var held = poll(slow, 2);
        var other = explicit(group, "other");
        var again = poll(other, 2);
        held.forEach(record -> slow.acknowledge(record));
        var refused = slow.commitSync().values().stream().flatMap(Optional::stream).map(each -> each.getClass().getSimpleName());
        expect("commit after the lock", refused.toList(), List.of("InvalidRecordStateException"));
        for (var record : again) {
            expect("delivery count", record.deliveryCount().get(), (short) 2);
            other.acknowledge(record);
        }
        commit(other);
        nothingLeft(other, group);
    }

    private void aKill() throws Exception {
        String group = prepare("java-kill", 1, Map.of("share.record.lock.duration.ms", String.valueOf(LONG_LOCK_MS)));
        produce(group, 0, 10);
        String source = System.getProperty("sun.java.command").split(" ")[1];
        String java = ProcessHandle.current().info().command().orElse("java");
        Process victim = new ProcessBuilder(
            java, "-Xmx128m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1",
            "-cp", System.getProperty("java.class.path"), source, bootstrap, group)
            .redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try (var lines = victim.inputReader()) {
            expect("records of the victim", CompletableFuture.supplyAsync(() -> lines.lines().findFirst().orElse("none"))
                .get(PATIENCE.toSeconds(), TimeUnit.SECONDS), "10");
        } finally {
            victim.destroyForcibly().waitFor(10, TimeUnit.SECONDS);
        }
        long killed = System.nanoTime();
        var consumer = explicit(group, "heir");
        for (var record : poll(consumer, 10)) {
            expect("delivery count", record.deliveryCount().get(), (short) 2);
            consumer.acknowledge(record);
        }
        commit(consumer);
        boolean soon = System.nanoTime() - killed < Duration.ofMillis(LONG_LOCK_MS).toNanos() / 2;
        expect("released with the connection and not with the lock", soon, true);
        nothingLeft(consumer, group);
    }

    /** The life of a process that is killed: it takes all records and acknowledges none. */
    private void holdForEver(String group) throws Exception {
        System.out.println(poll(explicit(group, "victim"), 10).size());
        Thread.sleep(PATIENCE.toMillis());
    }

    private void deadLetters() throws Exception {
        String dead = "dlq.java";
        create(dead, 1, Map.of("errors.deadletterqueue.group.enable", "true"));
        String group = prepare("java-poison", 1, Map.of(
            "share.delivery.count.limit", "3", "errors.deadletterqueue.topic.name", dead,
            "errors.deadletterqueue.copy.record.enable", "true"));
        produce(group, 0, 3);
        var consumer = explicit(group, "one");
        List<Integer> deliveries = new ArrayList<>();
        for (int rest = 3; rest > 0; rest = deliveries.size() == 3 ? 0 : 1) {
            for (var record : poll(consumer, rest)) {
                boolean poison = record.offset() == 1;
                if (poison) deliveries.add((int) record.deliveryCount().get());
                consumer.acknowledge(record, poison ? AcknowledgeType.RELEASE : AcknowledgeType.ACCEPT);
            }
            commit(consumer);
        }
        expect("deliveries of the poison", deliveries, List.of(1, 2, 3));
        nothingLeft(consumer, group);
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", "java-dead", "auto.offset.reset", "earliest");
        try (var reader = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            reader.assign(List.of(new TopicPartition(dead, 0)));
            List<ConsumerRecord<String, String>> letters = new ArrayList<>();
            await("a dead letter", () -> {
                reader.poll(Duration.ofMillis(100)).forEach(letters::add);
                return !letters.isEmpty();
            });
            expect("dead letters", letters.size(), 1);
            expect("key", letters.get(0).key(), "key-1");
            expect("value", letters.get(0).value(), "1");
            Map<String, String> headers = new TreeMap<>();
            letters.get(0).headers().forEach(each -> headers.put(each.key(), new String(each.value(), StandardCharsets.UTF_8)));
            expect("group", headers.get("__dlq.errors.group"), group);
            expect("topic", headers.get("__dlq.errors.topic"), group);
            expect("partition", headers.get("__dlq.errors.partition"), "0");
            expect("offset", headers.get("__dlq.errors.offset"), "1");
            expect("delivery count", headers.get("__dlq.errors.delivery.count"), "3");
        }
    }

    /** Members are replaced one by one while records come: each record comes, and all are acknowledged. */
    private void rollingRestart() throws Exception {
        String group = prepare("java-rolling", 2, Map.of());
        Map<String, Integer> seen = new ConcurrentHashMap<>();
        Set<String> busy = ConcurrentHashMap.newKeySet();
        List<Member> members = new ArrayList<>();
        for (String name : List.of("one", "two", "three")) members.add(new Member(name, group, seen, busy));
        int written = 60;
        produce(group, 0, 60);
        await("all records of the first members", () -> seen.size() == 60);
        for (int number = 0; number < 3; number++) {
            produce(group, written, 60);
            members.get(number).close();
            members.set(number, new Member("next-" + number, group, seen, busy));
            produce(group, written + 60, 60);
            written += 120;
            int wanted = written;
            await("all records after restart " + number, () -> seen.size() == wanted);
        }
        for (Member member : members) member.close();
        await("lag 0", () -> lag(group) == 0);
    }

    private void describe() throws Exception {
        String group = prepare("java-described", 2, Map.of());
        explicit(group, "one").poll(Duration.ofMillis(100));
        await("one member with both partitions", () -> described(group).members().stream()
            .anyMatch(each -> each.clientId().equals("one") && each.assignment().topicPartitions().size() == 2));
        var listed = admin.listGroups(ListGroupsOptions.forShareGroups()).all().get().stream()
            .filter(each -> each.groupId().equals(group)).toList();
        expect("listed groups", listed.size(), 1);
        expect("type", listed.get(0).type(), Optional.of(GroupType.SHARE));
        expect("state", listed.get(0).groupState(), Optional.of(GroupState.STABLE));
    }

    private void offsets() throws Exception {
        String group = prepare("java-offsets", 1, Map.of());
        TopicPartition partition = new TopicPartition(group, 0);
        produce(group, 0, 5);
        drain(group, 5);
        await("all acknowledged", () -> lag(group) == 0);
        admin.alterShareGroupOffsets(group, Map.of(partition, 2L)).all().get();
        expect("start offset", offset(group, partition).startOffset(), 2L);
        expect("lag", offset(group, partition).lag(), Optional.of(3L));
        admin.deleteShareGroupOffsets(group, Set.of(group)).all().get();
        expect("offsets after deletion", admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get().containsKey(partition), false);
    }

    private void delete() throws Exception {
        String group = prepare("java-deleted", 1, Map.of());
        produce(group, 0, 1);
        drain(group, 1);
        admin.deleteShareGroups(List.of(group)).all().get();
        expect("listed", admin.listGroups().all().get().stream().anyMatch(each -> each.groupId().equals(group)), false);
    }

    // --- what they are made of

    private void create(String topic, int partitions, Map<String, String> configs) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1).configs(configs))).all().get();
    }

    /** Makes a topic, and a group of its name that reads from the earliest record; returns the name. */
    private String prepare(String name, int partitions, Map<String, String> settings) throws Exception {
        create(name, partitions, Map.of());
        Map<String, String> wanted = new HashMap<>(settings);
        wanted.put("share.auto.offset.reset", "earliest");
        List<AlterConfigOp> changes = wanted.entrySet().stream()
            .map(each -> new AlterConfigOp(new ConfigEntry(each.getKey(), each.getValue()), AlterConfigOp.OpType.SET)).toList();
        admin.incrementalAlterConfigs(Map.of(new ConfigResource(ConfigResource.Type.GROUP, name), changes)).all().get();
        return name;
    }

    private void produce(String topic, int first, int records) {
        var settings = Map.<String, Object>of("bootstrap.servers", bootstrap, "linger.ms", 0, "batch.size", 0);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int number = first; number < first + records; number++) {
                producer.send(new ProducerRecord<>(topic, "key-" + number, String.valueOf(number)));
            }
        }
    }

    private KafkaShareConsumer<String, String> consumer(String group, String name, String mode) {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "group.id", group, "client.id", name,
            "share.acknowledgement.mode", mode, "max.poll.records", 10);
        var consumer = new KafkaShareConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
        consumer.subscribe(List.of(group));
        return consumer;
    }

    private KafkaShareConsumer<String, String> explicit(String group, String name) {
        var consumer = consumer(group, name, "explicit");
        open.add(consumer);
        return consumer;
    }

    /** Polls until this many records have come; explicit members are given them in one poll or acknowledge between two. */
    private static List<ConsumerRecord<String, String>> poll(KafkaShareConsumer<String, String> consumer, int wanted) throws Exception {
        List<ConsumerRecord<String, String>> found = new ArrayList<>();
        await(wanted + " records", () -> {
            consumer.poll(Duration.ofMillis(500)).forEach(found::add);
            return !found.isEmpty();
        });
        expect("records of one poll", found.size(), wanted);
        return found;
    }

    private static void commit(KafkaShareConsumer<String, String> consumer) {
        consumer.commitSync().forEach((partition, problem) -> expect("commit of " + partition, problem, Optional.empty()));
    }

    private void nothingLeft(KafkaShareConsumer<String, String> consumer, String group) throws Exception {
        expect("records after the last", consumer.poll(QUIET).count(), 0);
        await("lag 0", () -> lag(group) == 0);
    }

    /** Reads records in the implicit mode, and commits them. */
    private void drain(String group, int records) throws Exception {
        Set<Long> seen = new HashSet<>();
        try (var consumer = consumer(group, "drain", "implicit")) {
            await(records + " records", () -> {
                consumer.poll(Duration.ofMillis(500)).forEach(each -> seen.add(each.offset()));
                return seen.size() == records;
            });
            commit(consumer);
        }
    }

    private ShareGroupDescription described(String group) throws Exception {
        return admin.describeShareGroups(List.of(group)).all().get().get(group);
    }

    private SharePartitionOffsetInfo offset(String group, TopicPartition partition) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec()))
            .partitionsToOffsetInfo(group).get().get(partition);
    }

    /** The records of the group's partitions that are not done with. A start offset moves with the write after its own. */
    private long lag(String group) throws Exception {
        return admin.listShareGroupOffsets(Map.of(group, new ListShareGroupOffsetsSpec())).partitionsToOffsetInfo(group).get()
            .values().stream().mapToLong(each -> each == null ? 1_000_000 : each.lag().orElse(1_000_000L)).sum();
    }

    private void closeAll() {
        for (var consumer : open) {
            try {
                consumer.close(Duration.ofSeconds(5));
            } catch (RuntimeException thrown) {
                System.err.println(thrown);
            }
        }
        open.clear();
    }

    /** A consumer in the implicit mode, in a thread of its own. */
    private final class Member extends Thread {
        private final KafkaShareConsumer<String, String> consumer;
        private final Map<String, Integer> seen;
        private final Set<String> busy;
        private volatile boolean closing;

        Member(String name, String group, Map<String, Integer> seen, Set<String> busy) {
            super(name);
            this.seen = seen;
            this.busy = busy;
            consumer = consumer(group, name, "implicit");
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            while (!closing) {
                for (var record : consumer.poll(Duration.ofMillis(50))) {
                    busy.add(getName());
                    seen.merge(record.value(), 1, Integer::sum);
                }
            }
            consumer.close();
        }

        void close() throws InterruptedException {
            closing = true;
            join(PATIENCE.toMillis());
        }
    }
}
