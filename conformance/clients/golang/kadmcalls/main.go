// Calls of kadm, each with its result as a line of JSON: a text, or an error and its words.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"sort"
	"strings"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"rejoin/clients/steps"
)

const (
	topic       = "admin-topic"
	unknownNode = 99
	// How long Kafka may take until a change that it has confirmed can be read.
	settled = 2 * time.Second
)

var (
	admin *kadm.Client
	words []string
)

// said keeps the words of an error; they are not part of the result.
func said(message string) string {
	if message != "" {
		words = append(words, message)
	}
	return ""
}

func show(call string, work func(context.Context) (string, error)) {
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	if strings.HasPrefix(call, "describe") || strings.HasPrefix(call, "list") {
		time.Sleep(settled)
	}
	words = nil
	result, err := work(ctx)
	if err != nil {
		result = "error: " + err.Error()
	}
	text, _ := json.Marshal(map[string]string{"call": call, "result": result, "words": strings.Join(words, "; ")})
	fmt.Println(string(text))
}

// lines are texts in order, for what has none of its own.
func lines[T any](items []T, each func(T) string) string {
	texts := make([]string, 0, len(items))
	for _, item := range items {
		texts = append(texts, each(item))
	}
	sort.Strings(texts)
	return strings.Join(texts, "; ")
}

func acl(a kadm.DescribedACL) string {
	return fmt.Sprint(a.Type, a.Name, a.Pattern, a.Principal, a.Host, a.Operation, a.Permission)
}

func acls() {
	orders := kadm.NewACLs().Topics("orders").Allow("User:alice").AllowHosts("*").Operations(kadm.OpRead)
	pay := kadm.NewACLs().Topics("pay").ResourcePatternType(kadm.ACLPatternPrefixed).Allow("User:bob").AllowHosts("*").
		Operations(kadm.OpWrite)
	bad := kadm.NewACLs().Topics("orders").Allow("alice").AllowHosts("*").Operations(kadm.OpRead)
	create := func(b *kadm.ACLBuilder) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.CreateACLs(ctx, b)
			return lines(rs, func(r kadm.CreateACLsResult) string {
				return fmt.Sprint(r.Name, r.Principal, r.Err, said(r.ErrMessage))
			}), err
		}
	}
	show("create ACLs", create(orders))
	show("create ACLs, prefixed", create(pay))
	show("create ACLs, refused", create(bad))
	describe := func(b *kadm.ACLBuilder) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.DescribeACLs(ctx, b)
			return lines(rs, func(r kadm.DescribeACLsResult) string { return fmt.Sprint(lines(r.Described, acl), r.Err) }), err
		}
	}
	every := kadm.NewACLs().AnyResource().Allow().AllowHosts().Operations(kadm.OpAny).ResourcePatternType(kadm.ACLPatternAny)
	show("describe ACLs", describe(every))
	show("describe ACLs that match", describe(kadm.NewACLs().Topics("payments").Allow().AllowHosts().Operations(kadm.OpAny).
		ResourcePatternType(kadm.ACLPatternMatch)))
	show("delete ACLs", func(ctx context.Context) (string, error) {
		rs, err := admin.DeleteACLs(ctx, every)
		return lines(rs, func(r kadm.DeleteACLsResult) string {
			deleted := lines(r.Deleted, func(a kadm.DeletedACL) string { return fmt.Sprint(a.Name, a.Principal, a.Operation, a.Err) })
			return fmt.Sprint(deleted, r.Err)
		}), err
	})
}

func quotas() {
	alice, address := "alice", "127.0.0.9"
	user := kadm.ClientQuotaEntity{{Type: "user", Name: &alice}}
	ip := kadm.ClientQuotaEntity{{Type: "ip", Name: &address}}
	alter := func(entries ...kadm.AlterClientQuotaEntry) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.AlterClientQuotas(ctx, entries)
			return lines(rs, func(r kadm.AlteredClientQuota) string { return fmt.Sprint(r.Entity, r.Err, said(r.ErrMessage)) }), err
		}
	}
	entry := func(entity kadm.ClientQuotaEntity, key string, value float64, remove bool) kadm.AlterClientQuotaEntry {
		return kadm.AlterClientQuotaEntry{Entity: entity, Ops: []kadm.AlterClientQuotaOp{{Key: key, Value: value, Remove: remove}}}
	}
	describe := func(strict bool, parts ...kadm.DescribeClientQuotaComponent) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.DescribeClientQuotas(ctx, strict, parts)
			return lines(rs, func(r kadm.DescribedClientQuota) string {
				return fmt.Sprint(r.Entity, lines(r.Values, kadm.ClientQuotaValue.String))
			}), err
		}
	}
	show("alter quotas", alter(entry(user, "producer_byte_rate", 1000, false), entry(ip, "connection_creation_rate", 9, false)))
	show("alter quotas, refused", alter(entry(user, "nonsense", 1, false)))
	show("describe quotas", describe(false))
	show("describe quotas of a user", describe(true, kadm.DescribeClientQuotaComponent{Type: "user", MatchName: &alice}))
	show("remove quotas", alter(entry(user, "producer_byte_rate", 0, true), entry(ip, "connection_creation_rate", 0, true)))
}

func users() {
	alter := func(del []kadm.DeleteSCRAM, upsert []kadm.UpsertSCRAM) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.AlterUserSCRAMs(ctx, del, upsert)
			return lines(rs.Sorted(), func(r kadm.AlteredUserSCRAM) string { return fmt.Sprint(r.User, r.Err, said(r.ErrMessage)) }), err
		}
	}
	describe := func(names ...string) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			rs, err := admin.DescribeUserSCRAMs(ctx, names...)
			return lines(rs.Sorted(), func(r kadm.DescribedUserSCRAM) string {
				return fmt.Sprint(r.User, lines(r.CredInfos, kadm.CredInfo.String), r.Err, said(r.ErrMessage))
			}), err
		}
	}
	upsert := kadm.UpsertSCRAM{User: "alice", Mechanism: kadm.ScramSha256, Iterations: 4096, Password: "alice-secret"}
	few := kadm.UpsertSCRAM{User: "alice", Mechanism: kadm.ScramSha512, Iterations: 10, Password: "alice-secret"}
	show("alter users of SCRAM", alter(nil, []kadm.UpsertSCRAM{upsert}))
	show("alter users of SCRAM, refused", alter(nil, []kadm.UpsertSCRAM{few}))
	show("describe users of SCRAM", describe())
	show("describe an unknown user", describe("nobody"))
	show("remove a user of SCRAM", alter([]kadm.DeleteSCRAM{{User: "alice", Mechanism: kadm.ScramSha256}}, nil))
}

func tokens() {
	show("create a token without a login", func(ctx context.Context) (string, error) {
		token, err := admin.CreateDelegationToken(ctx, kadm.CreateDelegationToken{MaxLifetime: -1})
		return fmt.Sprint(token.Owner), err
	})
	show("describe tokens without a login", func(ctx context.Context) (string, error) {
		found, err := admin.DescribeDelegationTokens(ctx)
		return fmt.Sprint(len(found)), err
	})
	show("renew a token without a login", func(ctx context.Context) (string, error) {
		_, err := admin.RenewDelegationToken(ctx, make([]byte, 8), time.Hour)
		return "", err
	})
	show("expire a token without a login", func(ctx context.Context) (string, error) {
		_, err := admin.ExpireDelegationToken(ctx, make([]byte, 8), time.Hour)
		return "", err
	})
}

func telemetry() {
	list := func(kinds ...kadm.ConfigResourceType) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			found, err := admin.ListConfigResources(ctx, kinds...)
			return lines(found.Resources, func(r kadm.ConfigResource) string {
				if strings.HasPrefix(r.Name, "__") {
					return ""
				}
				return fmt.Sprint(r.Type, r.Name)
			}), err
		}
	}
	show("list subscriptions of metrics", list(kadm.ConfigResourceClientMetrics))
	show("list resources with settings", list())
}

func cluster() {
	first := make(kadm.TopicsSet)
	first.Add(topic, 0)
	elect := func(how kadm.ElectLeadersHow) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			found, err := admin.ElectLeaders(ctx, how, first)
			return fmt.Sprint(found[topic][0].Err, said(found[topic][0].ErrMessage)), err
		}
	}
	show("elect preferred leaders", elect(kadm.ElectPreferredReplica))
	show("elect any leaders", elect(kadm.ElectLiveReplica))
	assign := func(brokers ...int32) func(context.Context) (string, error) {
		return func(ctx context.Context) (string, error) {
			var req kadm.AlterPartitionAssignmentsReq
			if brokers == nil {
				req.CancelAssign(topic, 0)
			} else {
				req.Assign(topic, 0, brokers)
			}
			found, err := admin.AlterPartitionAssignments(ctx, req)
			return lines(found.Sorted(), func(r kadm.AlterPartitionAssignmentsResponse) string {
				return fmt.Sprint(r.Topic, r.Partition, r.Err, said(r.ErrMessage))
			}), err
		}
	}
	show("reassign a partition", assign(1))
	show("reassign to an unknown broker", assign(unknownNode))
	show("cancel a reassignment", assign())
	show("list reassignments", func(ctx context.Context) (string, error) {
		found, err := admin.ListPartitionReassignments(ctx, first)
		return fmt.Sprint(len(found)), err
	})
	show("describe log directories", func(ctx context.Context) (string, error) {
		found, err := admin.DescribeBrokerLogDirs(ctx, 1, first)
		return lines(found.Sorted(), func(d kadm.DescribedLogDir) string {
			part, _ := d.Topics.Lookup(topic, 0)
			return fmt.Sprint(d.Broker, d.Err, part.Size, part.OffsetLag, part.IsFuture, d.TotalBytes > 0, d.UsableBytes > 0, d.IsCordoned)
		}), err
	})
	show("move to an unknown log directory", func(ctx context.Context) (string, error) {
		var req kadm.AlterReplicaLogDirsReq
		req.Add("/nowhere", first)
		found, err := admin.AlterBrokerReplicaLogDirs(ctx, 1, req)
		return lines(found.Sorted(), func(r kadm.AlterReplicaLogDirsResponse) string { return fmt.Sprint(r.Topic, r.Partition, r.Err) }), err
	})
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(steps.Servers()...), kgo.ClientID("kadm"))
	if err != nil {
		panic(err)
	}
	defer client.Close()
	admin = kadm.NewClient(client)
	acls()
	quotas()
	users()
	tokens()
	telemetry()
	cluster()
}
