import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.Collection;
import java.util.Collections;
import java.util.HashMap;
import java.util.HashSet;
import java.util.LinkedHashSet;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;

import org.apache.kafka.common.Uuid;
import org.apache.kafka.coordinator.group.api.assignor.ConsumerGroupPartitionAssignor;
import org.apache.kafka.coordinator.group.api.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.assignor.MemberSubscription;
import org.apache.kafka.coordinator.group.api.assignor.SubscribedTopicDescriber;
import org.apache.kafka.coordinator.group.api.assignor.SubscriptionType;
import org.apache.kafka.coordinator.group.assignor.RangeAssignor;
import org.apache.kafka.coordinator.group.assignor.UniformAssignor;

/**
 * Times Kafka's server-side assignors on the problems of benchmarks/server_assignors.py.
 *
 * Reads one problem a line: topics, partitions of each, members, who wants what, assignor and event. Answers each with
 * the best time in milliseconds once warmed up.
 */
public class ServerAssignorBenchmark {
    private static final int MOST_RUNS = 30;
    private static final double ENOUGH_SECONDS = 1;
    /** Kafka asks for a map of this class. */
    private static final Map<Uuid, Set<Integer>> NOTHING = Collections.unmodifiableMap(new HashMap<>());

    public static void main(String[] words) throws IOException {
        BufferedReader problems = new BufferedReader(new InputStreamReader(System.in));
        for (String line = problems.readLine(); line != null; line = problems.readLine()) {
            String[] problem = line.split(",");
            System.out.println(best(new Group(problem), problem[4].equals("uniform"), problem[5].equals("one leaves")));
        }
    }

    private static double best(Group group, boolean isUniform, boolean leaves) {
        ConsumerGroupPartitionAssignor assignor = isUniform ? new UniformAssignor() : new RangeAssignor();
        if (leaves)
            group.leave(assignor.assign(group, group).members());
        double best = Double.MAX_VALUE;
        double spent = 0;
        for (int run = 0; run < MOST_RUNS && spent < ENOUGH_SECONDS; run++) {
            System.gc();
            long started = System.nanoTime();
            Map<String, MemberAssignment> answer = assignor.assign(group, group).members();
            double taken = (System.nanoTime() - started) / 1e9;
            if (answer.size() != group.members.size())
                throw new IllegalStateException("the answer lacks members");
            best = Math.min(best, taken);
            spent += taken;
        }
        return best * 1_000;
    }

    private record Member(Set<Uuid> subscribedTopicIds, Map<Uuid, Set<Integer>> partitions)
        implements MemberSubscription, MemberAssignment {
        @Override
        public Optional<String> rackId() {
            return Optional.empty();
        }

        @Override
        public Optional<String> instanceId() {
            return Optional.empty();
        }
    }

    private static final class Group implements GroupSpec, SubscribedTopicDescriber {
        private final Map<String, Member> members = new HashMap<>();
        private final Map<Uuid, Map<Integer, String>> owners = new HashMap<>();
        private final List<Uuid> topics = new ArrayList<>();
        private final int partitions;
        private final int size;
        private final String wishes;

        Group(String[] problem) {
            for (int topic = 0; topic < Integer.parseInt(problem[0]); topic++)
                topics.add(Uuid.fromString(String.format("%021dA", topic)));
            partitions = Integer.parseInt(problem[1]);
            size = Integer.parseInt(problem[2]);
            wishes = problem[3];
            for (int member = 0; member < size; member++)
                members.put(id(member), new Member(new LinkedHashSet<>(wanted(member)), NOTHING));
        }

        private static String id(int member) {
            return String.format("m-%04d", member);
        }

        private List<Uuid> wanted(int member) {
            if (wishes.equals("equal"))
                return topics;
            if (wishes.equals("one wants less"))
                return member == size - 1 ? topics.subList(0, 1) : topics;
            List<Uuid> found = new ArrayList<>();
            for (int step = 0; step < topics.size() / 2; step++)
                found.add(topics.get((member + step) % topics.size()));
            return found;
        }

        /** What each has now is what the coordinator reads from its records; one of them goes. */
        void leave(Map<String, MemberAssignment> assigned) {
            members.remove(id(size / 2));
            members.replaceAll((id, member) -> {
                Map<Uuid, Set<Integer>> target = new HashMap<>();
                assigned.get(id).partitions().forEach((topic, held) -> {
                    target.put(topic, new HashSet<>(held));
                    Map<Integer, String> known = owners.computeIfAbsent(topic, __ -> new HashMap<>());
                    held.forEach(partition -> known.put(partition, id));
                });
                return new Member(member.subscribedTopicIds(), Collections.unmodifiableMap(target));
            });
        }

        @Override
        public Collection<String> memberIds() {
            return members.keySet();
        }

        @Override
        public SubscriptionType subscriptionType() {
            return wishes.equals("equal") ? SubscriptionType.HOMOGENEOUS : SubscriptionType.HETEROGENEOUS;
        }

        @Override
        public boolean isPartitionAssigned(Uuid topic, int partition) {
            Map<Integer, String> known = owners.get(topic);
            return known != null && known.containsKey(partition);
        }

        @Override
        public boolean isPartitionAssignable(Uuid topic, int partition) {
            return true;
        }

        @Override
        public MemberSubscription memberSubscription(String memberId) {
            return members.get(memberId);
        }

        @Override
        public MemberAssignment memberAssignment(String memberId) {
            return members.get(memberId);
        }

        @Override
        public int numPartitions(Uuid topic) {
            return partitions;
        }

        @Override
        public Set<String> racksForPartition(Uuid topic, int partition) {
            return Set.of();
        }
    }
}
