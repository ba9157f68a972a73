import java.time.Duration;
import java.util.*;
import java.util.concurrent.*;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.clients.consumer.*;
import org.apache.kafka.clients.producer.*;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.errors.GroupIdNotFoundException;
import org.apache.kafka.common.serialization.*;

/** Groups of the consumer protocol, and one that moves there from the classic one and back; a line of JSON for each step. */
public final class ConsumerGroups {
    private static final String TOPIC = "java-orders";
    private static final String STATIC = "java-static";
    private static final String MOVING = "java-moving";
    private static final Duration PATIENCE = Duration.ofSeconds(60);

    private final String bootstrap;
    private final Admin admin;
    private final Map<String, Member> members = new LinkedHashMap<>();
    private final ConcurrentMap<String, Integer> seen = new ConcurrentHashMap<>();
    private int written;

    private ConsumerGroups(String bootstrap) {
        this.bootstrap = bootstrap;
        this.admin = Admin.create(Map.of("bootstrap.servers", bootstrap));
    }

    public static void main(String[] arguments) throws Exception {
        ConsumerGroups all = new ConsumerGroups(arguments[0]);
        if (arguments.length > 1) {
            all.join("victim", TOPIC, "consumer", null, TOPIC);
            Thread.sleep(Long.MAX_VALUE);
        }
        all.step("three members", all::threeMembers);
        all.step("a fourth joins", all::aFourth);
        all.step("one is killed", all::aKill);
        all.step("a static member restarts", all::staticRestart);
        all.step("a regular expression begins to match", all::regex);
        all.step("a topic grows", all::growth);
        all.step("from classic to consumer", all::upgrade);
        all.step("back to classic", all::downgrade);
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
            members.values().forEach(member -> member.closing = true);
            members.clear();
        }
        String quoted = problem.replace("\\", "\\\\").replace("\"", "'").replaceAll("\\s+", " ");
        System.out.printf("{\"step\": \"%s\", \"problem\": \"%s\"}%n", name, quoted);
    }

    private static void count(String what, int number) {
        System.out.printf("{\"count\": \"%s\", \"number\": %d}%n", what, number);
    }

    private static void expect(String what, Object found, Object wanted) {
        if (!found.equals(wanted)) throw new AssertionError(what + ": expected " + wanted + ", got " + found);
    }

    private void await(String what, Callable<Boolean> condition) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (!condition.call()) {
            for (Member member : members.values()) {
                if (member.problem != null) throw new IllegalStateException(member.problem);
            }
            if (System.nanoTime() > end) throw new TimeoutException(what);
            Thread.sleep(20);
        }
    }

    // --- steps

    private void threeMembers() throws Exception {
        create(TOPIC, 8);
        produce(TOPIC, 40);
        for (String name : List.of("one", "two", "three")) join(name, TOPIC, "consumer", null, TOPIC);
        shared(Map.of(TOPIC, 8));
        everything();
        var found = describe(TOPIC);
        expect("type", found.type().toString(), "Consumer");
        expect("state", found.groupState().toString(), "Stable");
    }

    private void aFourth() throws Exception {
        join("four", TOPIC, "consumer", null, TOPIC);
        shared(Map.of(TOPIC, 8));
        for (Member member : members.values()) expect("partitions", member.assigned.size(), 2);
    }

    private void aKill() throws Exception {
        String source = System.getProperty("sun.java.command").split(" ")[1];
        String java = ProcessHandle.current().info().command().orElse("java");
        Process victim = new ProcessBuilder(java, "-cp", System.getProperty("java.class.path"), source, bootstrap, "victim")
            .redirectOutput(ProcessBuilder.Redirect.DISCARD).redirectError(ProcessBuilder.Redirect.DISCARD).start();
        try {
            await("the fifth has partitions", () -> describe(TOPIC).members().stream()
                .filter(member -> member.clientId().equals("victim")).anyMatch(member -> !member.assignment().topicPartitions().isEmpty()));
        } finally {
            victim.destroyForcibly().waitFor();
        }
        await("the session ends", () -> describe(TOPIC).members().size() == 4);
        shared(Map.of(TOPIC, 8));
        produce(TOPIC, 20);
        everything();
        leaveAll();
    }

    private void staticRestart() throws Exception {
        create(STATIC, 4);
        join("old", STATIC, "consumer", "i", STATIC);
        join("other", STATIC, "consumer", "j", STATIC);
        shared(Map.of(STATIC, 4));
        Set<TopicPartition> had = members.get("old").assigned;
        int epoch = describe(STATIC).groupEpoch().get();
        leave("old");
        join("new", STATIC, "consumer", "i", STATIC);
        shared(Map.of(STATIC, 4));
        expect("partitions", members.get("new").assigned, had);
        expect("group epoch", describe(STATIC).groupEpoch().get(), epoch);
        leaveAll();
    }

    private void regex() throws Exception {
        create("java-pattern-a", 2);
        for (String name : List.of("one", "two")) {
            join(name, "java-pattern", "consumer", null, new SubscriptionPattern("java-pattern-.*"));
        }
        shared(Map.of("java-pattern-a", 2));
        create("java-pattern-b", 2);
        shared(Map.of("java-pattern-a", 2, "java-pattern-b", 2));
        leaveAll();
    }

    private void growth() throws Exception {
        create("java-growing", 2);
        for (String name : List.of("one", "two")) join(name, "java-growing", "consumer", null, "java-growing");
        shared(Map.of("java-growing", 2));
        admin.createPartitions(Map.of("java-growing", NewPartitions.increaseTo(6))).all().get();
        shared(Map.of("java-growing", 6));
        leaveAll();
    }

    private void upgrade() throws Exception {
        seen.clear();
        written = 0;
        create(MOVING, 6);
        for (String name : List.of("a", "b", "c")) join(name, MOVING, "classic", null, MOVING);
        shared(Map.of(MOVING, 6));
        for (String name : List.of("a", "b", "c")) {
            replace(name, name.toUpperCase(), "consumer");
            expect("type", describe(MOVING).type().toString(), "Consumer");
        }
        everything();
    }

    private void downgrade() throws Exception {
        for (String name : List.of("A", "B", "C")) {
            expect("type", describe(MOVING).type().toString(), "Consumer");
            replace(name, name.toLowerCase(), "classic");
        }
        expect("type", describe(MOVING).type().toString(), "Classic");
        everything();
        leaveAll();
        int duplicates = seen.values().stream().mapToInt(count -> count - 1).sum();
        count("records while the group moves", written);
        count("of them read twice", duplicates);
        count("commits refused", refused);
        expect("duplicates without a refused commit", refused == 0 ? duplicates : 0, 0);
    }

    /** Replaces a member by one of another protocol, with records before, between and after. */
    private void replace(String before, String after, String protocol) throws Exception {
        produce(MOVING, 20);
        leave(before);
        produce(MOVING, 20);
        join(after, MOVING, protocol, null, MOVING);
        shared(Map.of(MOVING, 6));
        produce(MOVING, 20);
    }

    // --- what they are made of

    private volatile int refused;

    private void create(String topic, int partitions) throws Exception {
        admin.createTopics(List.of(new NewTopic(topic, partitions, (short) 1))).all().get();
    }

    private ConsumerGroupDescription describe(String group) throws Exception {
        long end = System.nanoTime() + PATIENCE.toNanos();
        while (true) {
            try {
                return admin.describeConsumerGroups(List.of(group)).all().get().get(group);
            } catch (ExecutionException missing) {
                // It is not there yet, or became one of the other kind between the two requests that ask for either.
                boolean isMissing = missing.getCause() instanceof GroupIdNotFoundException;
                if (!isMissing || System.nanoTime() > end) throw missing;
            }
        }
    }

    private void produce(String topic, int records) throws Exception {
        var settings = Map.<String, Object>of("bootstrap.servers", bootstrap, "acks", "all");
        try (var producer = new KafkaProducer<>(settings, new StringSerializer(), new StringSerializer())) {
            for (int end = written + records; written < end; written++) {
                producer.send(new ProducerRecord<>(topic, "key-" + written, String.valueOf(written)));
            }
        }
    }

    private void everything() throws Exception {
        await("all records, got " + seen.size() + " of " + written, () -> seen.size() == written);
    }

    /** Waits until coordinator and consumers agree that each partition has one member. */
    private void shared(Map<String, Integer> topics) throws Exception {
        Set<TopicPartition> wanted = new HashSet<>();
        topics.forEach((topic, count) -> {
            for (int partition = 0; partition < count; partition++) wanted.add(new TopicPartition(topic, partition));
        });
        String group = members.values().iterator().next().group;
        await("every partition has one member", () -> {
            var found = describe(group);
            List<TopicPartition> owned = members.values().stream().flatMap(member -> member.assigned.stream()).toList();
            return found.groupState().toString().equals("Stable") && found.members().size() == members.size()
                && owned.size() == wanted.size() && wanted.equals(new HashSet<>(owned));
        });
    }

    private void join(String name, String group, String protocol, String instance, Object subscription) {
        members.put(name, new Member(name, group, protocol, instance, subscription));
    }

    private void leave(String name) throws Exception {
        members.remove(name).close();
    }

    private void leaveAll() throws Exception {
        for (String name : List.copyOf(members.keySet())) leave(name);
    }

    /** A consumer in a thread of its own. It commits what it has consumed before it gives it up. */
    private final class Member extends Thread implements ConsumerRebalanceListener {
        final String group;
        volatile Set<TopicPartition> assigned = Set.of();
        volatile String problem;
        private final KafkaConsumer<String, String> consumer;
        private final Object subscription;
        private volatile boolean closing;

        Member(String name, String group, String protocol, String instance, Object subscription) {
            Map<String, Object> settings = new HashMap<>(Map.of(
                "bootstrap.servers", bootstrap, "client.id", name, "group.id", group, "group.protocol", protocol,
                "auto.offset.reset", "earliest", "enable.auto.commit", false, "metadata.max.age.ms", 1_000));
            if (instance != null) settings.put("group.instance.id", instance);
            if (protocol.equals("classic")) settings.putAll(Map.of("session.timeout.ms", 10_000, "heartbeat.interval.ms", 200));
            this.group = group;
            this.subscription = subscription;
            consumer = new KafkaConsumer<>(settings, new StringDeserializer(), new StringDeserializer());
            setDaemon(true);
            start();
        }

        @Override
        public void run() {
            try {
                if (subscription instanceof SubscriptionPattern pattern) consumer.subscribe(pattern, this);
                else consumer.subscribe(List.of((String) subscription), this);
                while (!closing) {
                    for (var record : consumer.poll(Duration.ofMillis(50))) seen.merge(record.value(), 1, Integer::sum);
                    assigned = Set.copyOf(consumer.assignment());
                }
                consumer.close();
            } catch (RuntimeException thrown) {
                problem = String.valueOf(thrown);
            }
        }

        @Override
        public void onPartitionsRevoked(Collection<TopicPartition> partitions) {
            try {
                consumer.commitSync();
            } catch (RuntimeException thrown) {
                refused++;
            }
        }

        @Override
        public void onPartitionsAssigned(Collection<TopicPartition> partitions) {}

        void close() throws InterruptedException {
            closing = true;
            join(PATIENCE.toMillis());
        }
    }
}
