import java.util.ArrayList;
import java.util.Collections;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;

import org.apache.kafka.clients.consumer.ConsumerGroupMetadata;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Assignment;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.GroupSubscription;
import org.apache.kafka.clients.consumer.ConsumerPartitionAssignor.Subscription;
import org.apache.kafka.clients.consumer.CooperativeStickyAssignor;
import org.apache.kafka.clients.consumer.RangeAssignor;
import org.apache.kafka.clients.consumer.RoundRobinAssignor;
import org.apache.kafka.clients.consumer.StickyAssignor;
import org.apache.kafka.clients.consumer.internals.ConsumerProtocol;
import org.apache.kafka.common.Cluster;
import org.apache.kafka.common.Node;
import org.apache.kafka.common.PartitionInfo;
import org.apache.kafka.common.TopicPartition;

/**
 * Times one of Kafka's own assignors on a problem of benchmarks/assignors/problems.py.
 *
 *   java -Xmx4g -cp 'jars/*' AssignorBenchmark.java sticky leave equal 2000 500 2000
 *
 * where jars holds kafka-clients, slf4j-api and slf4j-nop. Prints the best time in seconds once warmed up, and the
 * heap in use after a run less that before it, in bytes.
 */
public class AssignorBenchmark {
    private static final int MOST_RUNS = 12;
    private static final double ENOUGH_SECONDS = 30;

    public static void main(String[] words) {
        String assignor = words[0];
        boolean leave = words[1].equals("leave");
        Problem problem = new Problem(words[2], Integer.parseInt(words[3]), Integer.parseInt(words[4]),
            Integer.parseInt(words[5]));
        Cluster cluster = problem.cluster();
        Map<String, Subscription> members = problem.fresh();
        if (leave) {
            Map<String, Assignment> before = make(assignor).assign(cluster, new GroupSubscription(members)).groupAssignment();
            members = problem.afterLeaving(assignor, before);
        }

        double best = Double.MAX_VALUE;
        double spent = 0;
        long peak = 0;
        for (int run = 0; run < MOST_RUNS && spent < ENOUGH_SECONDS; run++) {
            rewind(members);
            System.gc();
            long before = used();
            ConsumerPartitionAssignor fresh = make(assignor);
            long started = System.nanoTime();
            Map<String, Assignment> answer = fresh.assign(cluster, new GroupSubscription(members)).groupAssignment();
            double taken = (System.nanoTime() - started) / 1e9;
            peak = Math.max(peak, used() - before);
            if (answer.size() != members.size())
                throw new IllegalStateException("somebody is missing");
            best = Math.min(best, taken);
            spent += taken;
        }
        System.out.println(best + " " + peak);
    }

    private static ConsumerPartitionAssignor make(String name) {
        switch (name) {
            case "range":
                return new RangeAssignor();
            case "roundrobin":
                return new RoundRobinAssignor();
            case "sticky":
                return new StickyAssignor();
            case "cooperative-sticky":
                return new CooperativeStickyAssignor();
            default:
                throw new IllegalArgumentException(name);
        }
    }

    /** The sticky assignor reads its user data once and leaves the buffer at its end. */
    private static void rewind(Map<String, Subscription> members) {
        for (Subscription member : members.values())
            if (member.userData() != null)
                member.userData().rewind();
    }

    private static long used() {
        Runtime runtime = Runtime.getRuntime();
        return runtime.totalMemory() - runtime.freeMemory();
    }

    private static final class Problem {
        private final String wishes;
        private final int members;
        private final int partitions;
        private final List<String> topics = new ArrayList<>();

        Problem(String wishes, int members, int topics, int partitions) {
            this.wishes = wishes;
            this.members = members;
            this.partitions = partitions;
            for (int topic = 0; topic < topics; topic++)
                this.topics.add(String.format("topic-%04d", topic));
        }

        Cluster cluster() {
            List<PartitionInfo> infos = new ArrayList<>();
            Node[] none = new Node[0];
            for (String topic : topics)
                for (int number = 0; number < partitions; number++)
                    infos.add(new PartitionInfo(topic, number, Node.noNode(), none, none));
            return new Cluster("benchmark", List.of(), infos, Collections.emptySet(), Collections.emptySet());
        }

        List<String> wanted(int member) {
            int half = topics.size() / 2;
            switch (wishes) {
                case "odd-one":
                    return member == members - 1 ? topics.subList(0, 1) : topics;
                case "quarters":
                    return member % 4 == 0 ? topics.subList(0, half) : topics.subList(half, topics.size());
                case "rotating":
                    List<String> found = new ArrayList<>();
                    for (int step = 0; step < half; step++)
                        found.add(topics.get((member + step) % topics.size()));
                    return found;
                default:
                    return topics;
            }
        }

        Map<String, Subscription> fresh() {
            Map<String, Subscription> found = new HashMap<>();
            for (int member = 0; member < members; member++)
                found.put(id(member), throughTheWire(new Subscription(wanted(member))));
            return found;
        }

        Map<String, Subscription> afterLeaving(String assignor, Map<String, Assignment> before) {
            Map<String, Subscription> found = new HashMap<>();
            for (int member = 0; member < members; member++) {
                if (member == members / 2)
                    continue;
                Assignment held = before.get(id(member));
                Subscription told;
                if (assignor.equals("sticky")) {
                    StickyAssignor memory = new StickyAssignor();
                    memory.onAssignment(held, new ConsumerGroupMetadata("benchmark", 1, id(member), Optional.empty()));
                    told = new Subscription(wanted(member), memory.subscriptionUserData(Collections.emptySet()),
                        Collections.emptyList(), 1, Optional.empty());
                } else {
                    List<TopicPartition> owned = assignor.equals("cooperative-sticky") ? held.partitions() : List.of();
                    told = new Subscription(wanted(member), null, owned, 1, Optional.empty());
                }
                found.put(id(member), throughTheWire(told));
            }
            return found;
        }

        private static Subscription throughTheWire(Subscription told) {
            return ConsumerProtocol.deserializeSubscription(ConsumerProtocol.serializeSubscription(told));
        }

        private static String id(int member) {
            return String.format("consumer-%04d", member);
        }
    }
}
