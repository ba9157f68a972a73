import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.lang.management.ThreadMXBean;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.TreeMap;
import java.util.stream.IntStream;

import org.apache.kafka.coordinator.group.api.streams.assignor.GroupSpec;
import org.apache.kafka.coordinator.group.api.streams.assignor.MemberAssignment;
import org.apache.kafka.coordinator.group.api.streams.assignor.TopologyDescriber;
import org.apache.kafka.coordinator.group.streams.assignor.AssignmentConfigsImpl;
import org.apache.kafka.coordinator.group.streams.assignor.GroupSpecImpl;
import org.apache.kafka.coordinator.group.streams.assignor.MemberMetadataAndStateImpl;
import org.apache.kafka.coordinator.group.streams.assignor.StickyTaskAssignor;

/**
 * Times Kafka's StickyTaskAssignor on the problems of benchmarks/assignors/tasks.py.
 *
 * Reads one problem a line: subtopologies, tasks of each, members, members of a process, standbys and event. Answers each
 * with the best CPU time of a run in milliseconds once warmed up, and its numbers of active and standby tasks.
 */
public class TaskAssignorBenchmark {
    private static final int MOST_RUNS = 30;
    private static final double ENOUGH_SECONDS = 2;
    private static final ThreadMXBean THREADS = ManagementFactory.getThreadMXBean();

    public static void main(String[] words) throws Exception {
        BufferedReader problems = new BufferedReader(new InputStreamReader(System.in));
        for (String line = problems.readLine(); line != null; line = problems.readLine())
            System.out.println(best(new Problem(line.split(","))));
    }

    private static String best(Problem problem) throws Exception {
        StickyTaskAssignor assignor = new StickyTaskAssignor();
        if (!problem.event.equals("fresh"))
            problem.move(assignor.assign(problem.group(), problem).members());
        GroupSpec group = problem.group();
        double best = Double.MAX_VALUE;
        double spent = 0;
        Map<String, MemberAssignment> answer = Map.of();
        for (int run = 0; run < MOST_RUNS && spent < ENOUGH_SECONDS; run++) {
            System.gc();
            long started = THREADS.getCurrentThreadCpuTime();
            answer = assignor.assign(group, problem).members();
            double taken = (THREADS.getCurrentThreadCpuTime() - started) / 1e9;
            best = Math.min(best, taken);
            spent += taken;
        }
        return best * 1_000 + " " + count(answer, true) + " " + count(answer, false);
    }

    private static long count(Map<String, MemberAssignment> answer, boolean isActive) {
        return answer.values().stream()
            .flatMap(each -> (isActive ? each.activeTasks() : each.standbyTasks()).values().stream())
            .mapToLong(each -> each.size()).sum();
    }

    private static final class Problem implements TopologyDescriber {
        private final List<String> subtopologies;
        private final int tasks;
        private final int perProcess;
        private final int standbys;
        private final String event;
        private final Map<String, MemberMetadataAndStateImpl> members = new TreeMap<>();

        Problem(String[] words) {
            subtopologies = IntStream.range(0, Integer.parseInt(words[0])).mapToObj(String::valueOf).toList();
            tasks = Integer.parseInt(words[1]);
            perProcess = Integer.parseInt(words[3]);
            standbys = Integer.parseInt(words[4]);
            event = words[5];
            for (int member = 0; member < Integer.parseInt(words[2]); member++)
                put(member, Map.of());
        }

        private void put(int number, Map<String, MemberAssignment> before) {
            String id = String.format("m-%04d", number);
            MemberAssignment held = before.get(id);
            members.put(id, new MemberMetadataAndStateImpl(
                Optional.empty(), Optional.empty(), "process-" + number / perProcess, Map.of(),
                held == null ? Map.of() : held.activeTasks(), held == null ? Map.of() : held.standbyTasks(),
                Map.of(), Map.of(), Map.of()));
        }

        /** Members have what they were given, and one joins or leaves. */
        void move(Map<String, MemberAssignment> before) {
            int size = members.size();
            for (int member = 0; member < size; member++)
                put(member, before);
            if (event.equals("one joins"))
                put(size, Map.of());
            else if (event.equals("one leaves"))
                members.remove(String.format("m-%04d", size / 2));
        }

        GroupSpec group() {
            return new GroupSpecImpl(new HashMap<>(members), new AssignmentConfigsImpl(standbys, List.of()));
        }

        @Override
        public List<String> subtopologies() {
            return subtopologies;
        }

        @Override
        public int maxNumInputPartitions(String subtopology) {
            return tasks;
        }

        @Override
        public boolean isStateful(String subtopology) {
            return true;
        }
    }
}
