import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Set;
import java.util.TreeMap;
import java.util.concurrent.Callable;
import java.util.concurrent.ExecutionException;
import java.util.stream.Collectors;
import java.util.stream.Stream;
import org.apache.kafka.clients.admin.*;
import org.apache.kafka.common.*;
import org.apache.kafka.common.acl.*;
import org.apache.kafka.common.config.ConfigResource;
import org.apache.kafka.common.quota.*;
import org.apache.kafka.common.resource.*;

/** Calls of AdminClient, each with its result as a line of JSON: a text, or an exception and its words. */
public class AdminCalls {
  private static final TopicPartition FIRST = new TopicPartition("admin-topic", 0);
  /** How long Kafka may take until a change that it has confirmed can be read. */
  private static final int SETTLED_MS = 2_000;
  private static final int UNKNOWN_NODE = 99;

  public static void main(String[] args) throws Exception {
    Map<String, Object> config = Map.of("bootstrap.servers", args[0], "request.timeout.ms", 20_000,
        "default.api.timeout.ms", 20_000, "client.id", "java");
    try (Admin admin = Admin.create(config)) {
      acls(admin);
      quotas(admin);
      users(admin);
      tokens(admin);
      telemetry(admin);
      cluster(admin);
    }
    Runtime.getRuntime().halt(0);
  }

  private static void show(String call, Callable<?> result) {
    String text, words = "";
    try {
      if (call.startsWith("describe") || call.startsWith("list")) {
        Thread.sleep(SETTLED_MS);
      }
      text = String.valueOf(result.call());
    } catch (Exception problem) {
      Throwable cause = problem instanceof ExecutionException ? problem.getCause() : problem;
      text = cause.getClass().getSimpleName();
      words = String.valueOf(cause.getMessage());
      if (words.startsWith("The node does not support")) {
        text = "not offered";
      }
    }
    System.out.println("{\"call\": " + quoted(call) + ", \"result\": " + quoted(text) + ", \"words\": " + quoted(words) + "}");
    System.out.flush();
  }

  private static String quoted(String text) {
    return '"' + text.replace("\\", "\\\\").replace("\"", "\\\"").replace("\n", " ") + '"';
  }

  private static String sorted(Stream<?> values) {
    return values.map(String::valueOf).sorted().collect(Collectors.joining("; "));
  }

  private static AclBinding acl(String name, PatternType kind, String principal, AclOperation operation) {
    ResourcePattern pattern = new ResourcePattern(ResourceType.TOPIC, name, kind);
    return new AclBinding(pattern, new AccessControlEntry(principal, "*", operation, AclPermissionType.ALLOW));
  }

  private static void acls(Admin admin) {
    List<AclBinding> both = List.of(
        acl("orders", PatternType.LITERAL, "User:alice", AclOperation.READ),
        acl("pay", PatternType.PREFIXED, "User:bob", AclOperation.WRITE));
    show("create ACLs", () -> admin.createAcls(both).all().get());
    show("create ACLs, refused", () ->
        admin.createAcls(List.of(acl("orders", PatternType.LITERAL, "alice", AclOperation.READ))).all().get());
    ResourcePatternFilter payments = new ResourcePatternFilter(ResourceType.TOPIC, "payments", PatternType.MATCH);
    AclBindingFilter matching = new AclBindingFilter(payments, AccessControlEntryFilter.ANY);
    show("describe ACLs", () -> sorted(admin.describeAcls(AclBindingFilter.ANY).values().get().stream()));
    show("describe ACLs that match", () -> sorted(admin.describeAcls(matching).values().get().stream()));
    show("delete ACLs", () -> sorted(admin.deleteAcls(List.of(matching, AclBindingFilter.ANY)).all().get().stream()));
  }

  private static void quotas(Admin admin) {
    ClientQuotaEntity alice = new ClientQuotaEntity(Map.of(ClientQuotaEntity.USER, "alice"));
    ClientQuotaEntity ip = new ClientQuotaEntity(Map.of(ClientQuotaEntity.IP, "127.0.0.9"));
    show("alter quotas", () -> admin.alterClientQuotas(List.of(
        altered(alice, "producer_byte_rate", 1000.0), altered(ip, "connection_creation_rate", 9.0))).all().get());
    show("alter quotas, refused", () -> admin.alterClientQuotas(List.of(altered(alice, "nonsense", 1.0))).all().get());
    show("describe quotas", () -> sorted(
        admin.describeClientQuotas(ClientQuotaFilter.all()).entities().get().entrySet().stream()));
    ClientQuotaFilter exact = ClientQuotaFilter.containsOnly(List.of(ClientQuotaFilterComponent.ofEntity("user", "alice")));
    show("describe quotas of a user", () -> admin.describeClientQuotas(exact).entities().get());
    show("remove quotas", () -> admin.alterClientQuotas(List.of(
        altered(alice, "producer_byte_rate", null), altered(ip, "connection_creation_rate", null))).all().get());
  }

  private static ClientQuotaAlteration altered(ClientQuotaEntity entity, String key, Double value) {
    return new ClientQuotaAlteration(entity, List.of(new ClientQuotaAlteration.Op(key, value)));
  }

  private static void users(Admin admin) {
    ScramCredentialInfo few = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_256, 4096);
    ScramCredentialInfo tooFew = new ScramCredentialInfo(ScramMechanism.SCRAM_SHA_512, 10);
    show("alter users of SCRAM", () -> admin.alterUserScramCredentials(
        List.of(new UserScramCredentialUpsertion("alice", few, "alice-secret"))).all().get());
    show("alter users of SCRAM, refused", () -> admin.alterUserScramCredentials(
        List.of(new UserScramCredentialUpsertion("alice", tooFew, "alice-secret"))).all().get());
    show("describe users of SCRAM", () -> admin.describeUserScramCredentials().all().get());
    show("describe an unknown user", () -> admin.describeUserScramCredentials(List.of("nobody")).all().get());
    show("remove a user of SCRAM", () -> admin.alterUserScramCredentials(
        List.of(new UserScramCredentialDeletion("alice", ScramMechanism.SCRAM_SHA_256))).all().get());
  }

  private static void tokens(Admin admin) {
    show("create a token without a login", () -> admin.createDelegationToken().delegationToken().get());
    show("describe tokens without a login", () -> admin.describeDelegationToken().delegationTokens().get());
    show("renew a token without a login", () -> admin.renewDelegationToken(new byte[8]).expiryTimestamp().get());
    show("expire a token without a login", () -> admin.expireDelegationToken(new byte[8]).expiryTimestamp().get());
  }

  private static void telemetry(Admin admin) {
    ConfigResource subscription = new ConfigResource(ConfigResource.Type.CLIENT_METRICS, "all");
    Collection<AlterConfigOp> interval =
        List.of(new AlterConfigOp(new ConfigEntry("interval.ms", "60000"), AlterConfigOp.OpType.SET));
    show("alter a subscription of metrics", () -> admin.incrementalAlterConfigs(Map.of(subscription, interval)).all().get());
    show("describe a subscription of metrics", () -> admin.describeConfigs(List.of(subscription)).all().get().values().stream()
        .map(found -> sorted(found.entries().stream().map(each -> each.name() + "=" + each.value()))).toList());
    show("list subscriptions of metrics", () ->
        sorted(admin.listConfigResources(Set.of(ConfigResource.Type.CLIENT_METRICS), new ListConfigResourcesOptions()).all().get().stream()));
    show("list resources with settings", () -> sorted(admin.listConfigResources().all().get().stream()
        .filter(each -> !each.name().startsWith("__"))));
    Collection<AlterConfigOp> none =
        List.of(new AlterConfigOp(new ConfigEntry("interval.ms", ""), AlterConfigOp.OpType.DELETE));
    show("remove a subscription of metrics", () -> admin.incrementalAlterConfigs(Map.of(subscription, none)).all().get());
  }

  private static void cluster(Admin admin) {
    TopicPartition unknown = new TopicPartition("nowhere", 0);
    show("elect preferred leaders", () ->
        new TreeMap<>(admin.electLeaders(ElectionType.PREFERRED, Set.of(FIRST, unknown)).partitions().get().entrySet().stream()
            .collect(Collectors.toMap(each -> each.getKey().toString(), each -> each.getValue().map(error -> error.getClass().getSimpleName()).orElse("elected")))));
    show("elect any leaders", () -> admin.electLeaders(ElectionType.UNCLEAN, Set.of(FIRST)).partitions().get().get(FIRST)
        .map(error -> error.getClass().getSimpleName()));
    show("reassign a partition", () -> admin.alterPartitionReassignments(
        Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(1))))).all().get());
    show("reassign to an unknown broker", () -> admin.alterPartitionReassignments(
        Map.of(FIRST, Optional.of(new NewPartitionReassignment(List.of(UNKNOWN_NODE))))).all().get());
    show("cancel a reassignment", () -> admin.alterPartitionReassignments(Map.of(FIRST, Optional.empty())).all().get());
    show("list reassignments", () -> admin.listPartitionReassignments().reassignments().get());
    show("describe log directories", () -> admin.describeLogDirs(List.of(1)).allDescriptions().get().values().stream()
        .map(found -> found.values().stream().map(each -> each.error() + " " + each.replicaInfos().get(FIRST)
            + " total " + (each.totalBytes().orElse(0) > 0) + " usable " + (each.usableBytes().orElse(0) > 0)).toList()).toList());
    show("move to an unknown log directory", () -> admin.alterReplicaLogDirs(
        Map.of(new TopicPartitionReplica(FIRST.topic(), 0, 1), "/nowhere")).all().get());
    show("describe the quorum", () -> quorum(admin.describeMetadataQuorum().quorumInfo().get()));
    show("unregister an unknown broker", () -> admin.unregisterBroker(UNKNOWN_NODE).all().get());
    show("unregister an unknown controller", () -> admin.unregisterController(UNKNOWN_NODE).all().get());
    show("add a voter", () -> admin.addRaftVoter(UNKNOWN_NODE, Uuid.ONE_UUID,
        Set.of(new RaftVoterEndpoint("CONTROLLER", "localhost", 9)), new AddRaftVoterOptions()).all().get());
    show("remove a voter", () -> admin.removeRaftVoter(UNKNOWN_NODE, Uuid.ONE_UUID).all().get());
  }

  private static String quorum(QuorumInfo found) {
    return "leader " + found.leaderId() + ", voters " + sorted(found.voters().stream().map(QuorumInfo.ReplicaState::replicaId))
        + ", observers " + sorted(found.observers().stream().map(QuorumInfo.ReplicaState::replicaId))
        + ", nodes " + sorted(found.nodes().keySet().stream());
  }
}
