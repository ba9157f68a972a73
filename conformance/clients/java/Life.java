import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.serialization.*;

/** What a Java application does with Kafka from the first topic to the last; one line of JSON for each step. */
public final class Life {
    private static final String TOPIC = "java-life";
    private static final String GROUP = "java-group";
    private static final int PARTITIONS = 4;
    private static final int RECORDS = 110;
    private static final Duration PATIENCE = Duration.ofSeconds(30);

    private final String bootstrap;
    private final Admin admin;
    private final List<Member> members = new ArrayList<>();
    private long middle;

    private Life(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap, "request.timeout.ms", "10000", "default.api.timeout.ms", "20000"));
    }

    public static void main(String[] arguments) {
        Life life = new Life(arguments[0]);
        life.step("create a topic", life::createTopic);
        life.step("produce", () -> life.produce(100, false));
        life.step("produce idempotently", () -> life.produce(10, true));
        life.step("consume in a group of two", () -> life.consume(2));
        life.step("a third joins", () -> life.join(3));
        life.step("one leaves", life::leave);
        life.step("commit", life::commit);
        life.step("committed offsets", life::committed);
        life.step("offsets by time", life::offsetsByTime);
        life.step("describe a group", life::describeGroup);
        life.step("list groups", life::listGroups);
        life.step("describe configs", life::describeConfigs);
        life.step("alter configs", life::alterConfigs);
        life.step("add partitions", life::addPartitions);
        life.step("delete records", life::deleteRecords);
        life.step("delete a group", life::deleteGroup);
        life.step("delete a topic", life::deleteTopic);
        life.step("commit a transaction", life::commitTransaction);
        life.step("abort a transaction", life::abortTransaction);
        life.step("fence a zombie", life::fenceZombie);
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
        String quoted = problem.replace("\\", "\\\\").replace("\"", "'").replaceAll("\\s+", " ");
        System.out.printf("{\"step\": \"%s\", \"passed\": %b, \"problem\": \"%s\"}%n", name, problem.isEmpty(), quoted);
    }

    private static void expect(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) {
            throw new AssertionError(what + ": expected " + wanted + ", got " + found);
        }
    }

    private static void await(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            if (System.nanoTime() > end) {
                throw new TimeoutException(what);
            }
            Thread.sleep(20);
        }
    }

    private void createTopic() throws Exception {
        admin.createTopics(List.of(new NewTopic(TOPIC, PARTITIONS, (short) 1))).all().get();
        TopicDescription found = admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC);
        expect("partitions", found.partitions().size(), PARTITIONS);
        expect("listed", admin.listTopics().names().get().contains(TOPIC), true);
    }

    private void produce(int records, boolean idempotent) throws Exception {
        Map<String, Object> settings = Map.of(
            "bootstrap.servers", bootstrap, "enable.idempotence", idempotent, "acks", "all",
            "compression.type", idempotent ? "zstd" : "none", "delivery.timeout.ms", 20_000, "request.timeout.ms", 10_000);
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            List<Future<RecordMetadata>> sent = new ArrayList<>();
            for (int number = 0; number < records; number++) {
                var record = new ProducerRecord<>(TOPIC, number % PARTITIONS, "key-" + number, "value-" + number);
                record.headers().add("number", new byte[] {(byte) number});
                sent.add(producer.send(record));
                if (number == records / 2 && !idempotent) {
                    producer.flush();
                    Thread.sleep(5);
                    middle = System.currentTimeMillis();
                    Thread.sleep(5);
                }
            }
            for (Future<RecordMetadata> future : sent) {
                expect("an offset", future.get().hasOffset(), true);
            }
        }
    }

    private void consume(int count) throws Exception {
        join(count);
        await("110 records, got " + read(), () -> read() == RECORDS);
        expect("a header", members.stream().allMatch(member -> member.headers > 0), true);
    }

    private int read() {
        return members.stream().mapToInt(member -> member.records).sum();
    }

    private void join(int count) throws Exception {
        while (members.size() < count) {
            members.add(new Member(bootstrap));
        }
        awaitAssignments();
    }

    private void awaitAssignments() throws Exception {
        await("every partition has one member", () -> {
            Set<TopicPartition> all = new HashSet<>();
            int total = 0;
            for (Member member : members) {
                all.addAll(member.assigned);
                total += member.assigned.size();
                if (member.assigned.isEmpty()) {
                    return false;
                }
            }
            return all.size() == PARTITIONS && total == PARTITIONS;
        });
    }

    private void leave() throws Exception {
        members.remove(2).close();
        awaitAssignments();
    }

    private void commit() throws Exception {
        for (Member member : members) {
            member.inThread(consumer -> {
                Map<TopicPartition, OffsetAndMetadata> ends = new HashMap<>();
                consumer.endOffsets(consumer.assignment()).forEach((partition, end) -> ends.put(partition, new OffsetAndMetadata(end)));
                consumer.commitSync(ends);
            });
        }
    }

    private void committed() throws Exception {
        var offsets = admin.listConsumerGroupOffsets(GROUP).partitionsToOffsetAndMetadata().get();
        long total = offsets.values().stream().mapToLong(OffsetAndMetadata::offset).sum();
        expect("the sum of the committed offsets", total, (long) RECORDS);
        TopicPartition first = new TopicPartition(TOPIC, 0);
        members.get(0).inThread(consumer -> expect("committed", consumer.committed(Set.of(first)).get(first), offsets.get(first)));
    }

    private long offset(OffsetSpec spec) throws Exception {
        TopicPartition first = new TopicPartition(TOPIC, 0);
        return admin.listOffsets(Map.of(first, spec)).partitionResult(first).get().offset();
    }

    private void offsetsByTime() throws Exception {
        expect("the earliest offset", offset(OffsetSpec.earliest()), 0L);
        expect("the latest offset", offset(OffsetSpec.latest()), 28L);
        expect("the offset of a time", offset(OffsetSpec.forTimestamp(middle)), 13L);
        expect("the offset of the future", offset(OffsetSpec.forTimestamp(middle + 3_600_000)), -1L);
        expect("the offset with the greatest time", offset(OffsetSpec.maxTimestamp()) >= 25L, true);
    }

    private void describeGroup() throws Exception {
        var found = admin.describeConsumerGroups(List.of(GROUP)).all().get().get(GROUP);
        expect("members", found.members().size(), 2);
        expect("state", found.groupState().toString(), "Stable");
        int assigned = found.members().stream().mapToInt(member -> member.assignment().topicPartitions().size()).sum();
        expect("assigned partitions", assigned, PARTITIONS);
    }

    private void listGroups() throws Exception {
        boolean found = admin.listGroups().all().get().stream().anyMatch(group -> group.groupId().equals(GROUP));
        expect("listed", found, true);
    }

    private String retention() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        return admin.describeConfigs(List.of(topic)).all().get().get(topic).get("retention.ms").value();
    }

    private void describeConfigs() throws Exception {
        expect("retention.ms", retention(), "604800000");
        String node = String.valueOf(admin.describeCluster().nodes().get().iterator().next().id());
        ConfigResource broker = new ConfigResource(ConfigResource.Type.BROKER, node);
        Config config = admin.describeConfigs(List.of(broker)).all().get().get(broker);
        expect("num.partitions is there", config.get("num.partitions") != null, true);
    }

    private void alterConfigs() throws Exception {
        ConfigResource topic = new ConfigResource(ConfigResource.Type.TOPIC, TOPIC);
        var change = new AlterConfigOp(new ConfigEntry("retention.ms", "86400000"), AlterConfigOp.OpType.SET);
        admin.incrementalAlterConfigs(Map.of(topic, List.of(change))).all().get();
        await("retention.ms is 86400000", () -> retention().equals("86400000"));
    }

    private void addPartitions() throws Exception {
        admin.createPartitions(Map.of(TOPIC, NewPartitions.increaseTo(PARTITIONS + 2))).all().get();
        await("there are more partitions", () -> {
            var found = admin.describeTopics(List.of(TOPIC)).allTopicNames().get().get(TOPIC);
            return found.partitions().size() == PARTITIONS + 2;
        });
    }

    private void deleteRecords() throws Exception {
        TopicPartition first = new TopicPartition(TOPIC, 0);
        var deleted = admin.deleteRecords(Map.of(first, RecordsToDelete.beforeOffset(10))).lowWatermarks().get(first).get();
        expect("the low watermark", deleted.lowWatermark(), 10L);
        expect("the earliest offset", offset(OffsetSpec.earliest()), 10L);
    }

    private void deleteGroup() throws Exception {
        for (Member member : members) {
            member.close();
        }
        admin.deleteConsumerGroups(List.of(GROUP)).all().get();
        boolean found = admin.listGroups().all().get().stream().anyMatch(group -> group.groupId().equals(GROUP));
        expect("listed", found, false);
    }

    private void deleteTopic() throws Exception {
        admin.deleteTopics(List.of(TOPIC)).all().get();
        await("the topic is gone", () -> !admin.listTopics().names().get().contains(TOPIC));
    }

    // --- transactions: results and offsets of a group, both or neither

    private static final String RESULTS = "java-results";
    private static final String TRANSFORMER = "java-transformer";
    private static final TopicPartition RESULT = new TopicPartition(RESULTS, 0);
    private KafkaProducer<String, String> transactional;

    private KafkaProducer<String, String> transactionalProducer() {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "transactional.id", TRANSFORMER, "max.block.ms", 20_000);
        var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer());
        producer.initTransactions();
        return producer;
    }

    private void transform(String value, long offset) throws Exception {
        transactional.beginTransaction();
        transactional.send(new ProducerRecord<>(RESULTS, 0, "key", value)).get();
        var offsets = Map.of(new TopicPartition("java-orders", 0), new OffsetAndMetadata(offset));
        transactional.sendOffsetsToTransaction(offsets, new ConsumerGroupMetadata(TRANSFORMER));
    }

    private List<String> results(String isolation, int count) throws Exception {
        Map<String, Object> settings = Map.of("bootstrap.servers", bootstrap, "isolation.level", isolation, "auto.offset.reset", "earliest");
        List<String> found = new ArrayList<>();
        try (var consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer())) {
            consumer.assign(List.of(RESULT));
            await(count + " results, got " + found, () -> {
                consumer.poll(Duration.ofMillis(100)).forEach(record -> found.add(record.value()));
                return found.size() >= count;
            });
        }
        return found;
    }

    private long transformed() throws Exception {
        var offsets = admin.listConsumerGroupOffsets(TRANSFORMER).partitionsToOffsetAndMetadata().get();
        return offsets.get(new TopicPartition("java-orders", 0)).offset();
    }

    private void commitTransaction() throws Exception {
        admin.createTopics(List.of(new NewTopic(RESULTS, 1, (short) 1), new NewTopic("java-orders", 1, (short) 1))).all().get();
        transactional = transactionalProducer();
        transform("one", 1);
        transactional.commitTransaction();
        expect("results", results("read_committed", 1), List.of("one"));
        await("the offset of the transaction", () -> transformed() == 1L);
    }

    private void abortTransaction() throws Exception {
        transform("aborted", 99);
        transactional.abortTransaction();
        transform("two", 2);
        transactional.commitTransaction();
        expect("committed results", results("read_committed", 2), List.of("one", "two"));
        expect("all results", results("read_uncommitted", 3), List.of("one", "aborted", "two"));
        await("the offset of the last transaction", () -> transformed() == 2L);
    }

    private void fenceZombie() throws Exception {
        transform("of a zombie", 99);
        var zombie = transactional;
        transactional = transactionalProducer();
        try {
            zombie.commitTransaction();
            throw new AssertionError("the zombie was not fenced");
        } catch (org.apache.kafka.common.KafkaException fenced) {
            boolean isFenced = fenced instanceof org.apache.kafka.common.errors.ProducerFencedException
                || fenced instanceof org.apache.kafka.common.errors.InvalidProducerEpochException;
            expect("fenced by " + fenced, isFenced, true);
        } finally {
            zombie.close(Duration.ZERO);
        }
        transform("three", 3);
        transactional.commitTransaction();
        expect("committed results", results("read_committed", 3), List.of("one", "two", "three"));
        await("the offset of the last transaction", () -> transformed() == 3L);
        transactional.close();
    }

    /** A consumer of the group in a thread of its own. */
    private static final class Member extends Thread {
        volatile Set<TopicPartition> assigned = Set.of();
        volatile int records;
        volatile int headers;
        private final BlockingQueue<FutureTask<Void>> tasks = new LinkedBlockingQueue<>();
        private final KafkaConsumer<String, String> consumer;
        private volatile boolean closing;

        private interface Use {
            void with(KafkaConsumer<String, String> consumer);
        }

        Member(String bootstrap) {
            Map<String, Object> settings = Map.of(
                "bootstrap.servers", bootstrap, "group.id", GROUP, "auto.offset.reset", "earliest",
                "enable.auto.commit", false, "session.timeout.ms", 10_000, "heartbeat.interval.ms", 200);
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            consumer.subscribe(List.of(TOPIC));
            while (!closing) {
                for (ConsumerRecord<String, String> record : consumer.poll(Duration.ofMillis(50))) {
                    records++;
                    headers += record.headers().toArray().length;
                }
                assigned = Set.copyOf(consumer.assignment());
                for (FutureTask<Void> task = tasks.poll(); task != null; task = tasks.poll()) {
                    task.run();
                }
            }
            consumer.close();
        }

        void inThread(Use use) throws Exception {
            FutureTask<Void> task = new FutureTask<>(() -> use.with(consumer), null);
            tasks.add(task);
            task.get(PATIENCE.toSeconds(), TimeUnit.SECONDS);
        }

        void close() throws InterruptedException {
            closing = true;
            join(PATIENCE.toMillis());
        }
    }
}
