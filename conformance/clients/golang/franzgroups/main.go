// Groups of the consumer protocol with franz-go, and one that moves there from the classic protocol and back. Its static
// members do not say who they are when they leave for a moment, which Kafka refuses: that step is not played.
package main

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"

	"rejoin/clients/steps"
)

const (
	orders  = "franz-orders"
	pattern = "franz-pattern"
	growing = "franz-growing"
	moving  = "franz-moving"
)

type groups struct {
	bootstrap string
	admin     *kadm.Client
	producer  *kgo.Client
	members   map[string]*member
	mutex     sync.Mutex
	seen      map[string]int
	refused   int
	written   int
}

// A member commits what it has consumed before it gives it up.
type member struct {
	all      *groups
	client   *kgo.Client
	mutex    sync.Mutex
	assigned []string
	stop     context.CancelFunc
	stopped  chan struct{}
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		panic(err)
	}
	g := &groups{
		bootstrap: os.Args[1], admin: kadm.NewClient(client), producer: client,
		members: map[string]*member{}, seen: map[string]int{},
	}
	if len(os.Args) > 2 {
		if err := g.join("victim", orders, "consumer", kgo.ConsumeTopics(orders)); err != nil {
			panic(err)
		}
		select {}
	}
	steps.Step("three members", g.threeMembers)
	steps.Step("a fourth joins", g.fourth)
	steps.Step("one is killed", g.kill)
	steps.Step("a regular expression begins to match", g.regex)
	steps.Step("a topic grows", g.growth)
	steps.Step("from classic to consumer", g.upgrade)
	steps.Step("back to classic", g.downgrade)
}

func (g *groups) threeMembers() error {
	if err := steps.First(g.create(orders, 8), g.produce(orders, 40)); err != nil {
		return err
	}
	for _, name := range []string{"one", "two", "three"} {
		if err := g.join(name, orders, "consumer", kgo.ConsumeTopics(orders)); err != nil {
			return err
		}
	}
	return steps.First(g.shared(orders, 8), g.everything())
}

func (g *groups) fourth() error {
	return steps.First(g.join("four", orders, "consumer", kgo.ConsumeTopics(orders)), g.shared(orders, 8))
}

func (g *groups) kill() error {
	victim := exec.Command(os.Args[0], g.bootstrap, "victim")
	if err := victim.Start(); err != nil {
		return err
	}
	joined := steps.Await("the fifth has partitions", func() bool {
		found := g.describe(orders)
		return slices.ContainsFunc(found.Members, func(m kadm.ConsumerGroupMember) bool {
			return m.ClientID == "victim" && len(m.Assignment) > 0
		})
	})
	_ = victim.Process.Kill()
	_ = victim.Wait()
	return steps.First(
		joined,
		steps.Await("the session ends", func() bool { return len(g.describe(orders).Members) == 4 }),
		g.shared(orders, 8), g.produce(orders, 20), g.everything(), g.leaveAll(),
	)
}

func (g *groups) regex() error {
	topics := kgo.ConsumeTopics("franz-pattern-.*")
	return steps.First(
		g.create(pattern+"-a", 2),
		g.join("one", pattern, "consumer", topics, kgo.ConsumeRegex()),
		g.join("two", pattern, "consumer", topics, kgo.ConsumeRegex()),
		g.shared(pattern, 2),
		g.create(pattern+"-b", 2),
		g.shared(pattern, 4),
		g.leaveAll(),
	)
}

func (g *groups) growth() error {
	topics := kgo.ConsumeTopics(growing)
	if err := steps.First(
		g.create(growing, 2),
		g.join("one", growing, "consumer", topics),
		g.join("two", growing, "consumer", topics),
		g.shared(growing, 2),
	); err != nil {
		return err
	}
	if _, err := g.admin.CreatePartitions(steps.Patient(), 4, growing); err != nil {
		return err
	}
	return steps.First(g.shared(growing, 6), g.leaveAll())
}

func (g *groups) upgrade() error {
	g.mutex.Lock()
	g.seen, g.written = map[string]int{}, 0
	g.mutex.Unlock()
	if err := g.create(moving, 6); err != nil {
		return err
	}
	names := []string{"a", "b", "c"}
	for _, name := range names {
		if err := g.join(name, moving, "classic", kgo.ConsumeTopics(moving)); err != nil {
			return err
		}
	}
	if err := g.shared(moving, 6); err != nil {
		return err
	}
	for _, name := range names {
		if err := steps.First(g.replace(name, strings.ToUpper(name), "consumer"), g.isConsumer(true)); err != nil {
			return err
		}
	}
	return g.everything()
}

func (g *groups) downgrade() error {
	for _, name := range []string{"A", "B", "C"} {
		if err := steps.First(g.isConsumer(true), g.replace(name, strings.ToLower(name), "classic")); err != nil {
			return err
		}
	}
	if err := steps.First(g.isConsumer(false), g.everything(), g.leaveAll()); err != nil {
		return err
	}
	g.mutex.Lock()
	defer g.mutex.Unlock()
	duplicates := -len(g.seen)
	for _, count := range g.seen {
		duplicates += count
	}
	steps.Count("records while the group moves", len(g.seen))
	steps.Count("of them read twice", duplicates)
	steps.Count("commits refused", g.refused)
	if duplicates > 0 && g.refused == 0 {
		return fmt.Errorf("%d duplicates without a refused commit", duplicates)
	}
	return nil
}

// replace puts a member of another protocol in the place of one, with records before, between and after.
func (g *groups) replace(before, after, protocol string) error {
	if err := steps.First(g.produce(moving, 20), g.leave(before), g.produce(moving, 20)); err != nil {
		return err
	}
	if err := g.join(after, moving, protocol, kgo.ConsumeTopics(moving)); err != nil {
		return err
	}
	return steps.First(g.shared(moving, 6), g.produce(moving, 20))
}

func (g *groups) create(topic string, partitions int32) error {
	_, err := g.admin.CreateTopic(steps.Patient(), partitions, 1, nil, topic)
	return err
}

func (g *groups) describe(group string) kadm.DescribedConsumerGroup {
	found, _ := g.admin.DescribeConsumerGroups(steps.Patient(), group)
	return found[group]
}

func (g *groups) isConsumer(wanted bool) error {
	found, err := g.admin.ListGroupsByType(steps.Patient(), []string{"consumer"})
	_, isListed := found[moving]
	return steps.First(err, steps.Expect("of the consumer protocol", isListed, wanted))
}

func (g *groups) produce(topic string, count int) error {
	for end := g.written + count; g.written < end; g.written++ {
		value := fmt.Sprint(g.written)
		record := &kgo.Record{Topic: topic, Key: []byte("key-" + value), Value: []byte(value)}
		if err := g.producer.ProduceSync(steps.Patient(), record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func (g *groups) everything() error {
	return steps.Await("all records", func() bool {
		g.mutex.Lock()
		defer g.mutex.Unlock()
		return len(g.seen) == g.written
	})
}

// shared waits until the consumers and the coordinator agree that every partition has one member.
func (g *groups) shared(group string, partitions int) error {
	return steps.Await("every partition has one member", func() bool {
		owners := map[string]int{}
		for _, each := range g.members {
			owned := each.owned()
			if len(owned) == 0 {
				return false
			}
			for _, partition := range owned {
				owners[partition]++
			}
		}
		for _, count := range owners {
			if count != 1 {
				return false
			}
		}
		listed, err := g.admin.ListGroups(steps.Patient())
		return err == nil && listed[group].State == "Stable" && len(owners) == partitions
	})
}

func (g *groups) leave(name string) error {
	left := g.members[name]
	delete(g.members, name)
	left.close()
	return nil
}

func (g *groups) leaveAll() error {
	for name := range g.members {
		_ = g.leave(name)
	}
	return nil
}

func (g *groups) join(name, group, protocol string, more ...kgo.Opt) error {
	m := &member{all: g, stopped: make(chan struct{})}
	options := append(more,
		kgo.SeedBrokers(g.bootstrap), kgo.ClientID(name), kgo.ConsumerGroup(group), kgo.DisableAutoCommit(),
		kgo.Balancers(kgo.RangeBalancer()), kgo.BlockRebalanceOnPoll(), kgo.MetadataMaxAge(time.Second),
		kgo.MetadataMinAge(100*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more map[string][]int32) { m.take(more) }),
		kgo.OnPartitionsRevoked(func(ctx context.Context, client *kgo.Client, less map[string][]int32) {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				g.mutex.Lock()
				g.refused++
				g.mutex.Unlock()
			}
			m.drop(less)
		}),
		kgo.OnPartitionsLost(func(_ context.Context, _ *kgo.Client, less map[string][]int32) { m.drop(less) }),
	)
	if protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	} else {
		options = append(options, kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(200*time.Millisecond))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	m.client = client
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go m.run(ctx)
	g.members[name] = m
	return nil
}

func (m *member) run(ctx context.Context) {
	defer close(m.stopped)
	for ctx.Err() == nil {
		fetches := m.client.PollFetches(ctx)
		m.all.mutex.Lock()
		fetches.EachRecord(func(record *kgo.Record) { m.all.seen[string(record.Value)]++ })
		m.all.mutex.Unlock()
		m.client.AllowRebalance()
	}
}

func (m *member) take(more map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.assigned = append(m.assigned, names(more)...)
}

func (m *member) drop(less map[string][]int32) {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	gone := names(less)
	m.assigned = slices.DeleteFunc(m.assigned, func(each string) bool { return slices.Contains(gone, each) })
}

func (m *member) owned() []string {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	owned := slices.Clone(m.assigned)
	slices.Sort(owned)
	return owned
}

func (m *member) close() {
	m.stop()
	<-m.stopped
	m.client.CloseAllowingRebalance()
}

func names(partitions map[string][]int32) []string {
	found := []string{}
	for topic, indexes := range partitions {
		for _, index := range indexes {
			found = append(found, fmt.Sprintf("%s-%d", topic, index))
		}
	}
	return found
}
