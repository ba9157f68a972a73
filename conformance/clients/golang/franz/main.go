// A client's life with franz-go: go run ./franz HOST:PORT.
package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rejoin/clients/steps"
)

const (
	topic = "franz-life"
	group = "franz-group"
)

type member struct {
	client   *kgo.Client
	mutex    sync.Mutex
	assigned []int32
	records  int
	stop     context.CancelFunc
}

type life struct {
	servers []string
	admin   *kadm.Client
	members []*member
	middle  time.Time
	session *kgo.GroupTransactSession
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(steps.Servers()...))
	if err != nil {
		panic(err)
	}
	l := &life{servers: steps.Servers(), admin: kadm.NewClient(client)}
	steps.Step("create a topic", l.createTopic)
	steps.Step("produce", func() error { return l.produce(100, false) })
	steps.Step("produce idempotently", func() error { return l.produce(10, true) })
	steps.Step("consume in a group of two", l.consume)
	steps.Step("a third joins", func() error { return l.join(3) })
	steps.Step("one leaves", l.leave)
	steps.Step("commit", l.commit)
	steps.Step("committed offsets", l.committed)
	steps.Step("offsets by time", l.offsetsByTime)
	steps.Step("describe a group", l.describeGroup)
	steps.Step("list groups", func() error { return l.listed(true) })
	steps.Step("describe configs", func() error { return l.retention("604800000") })
	steps.Step("alter configs", l.alterConfigs)
	steps.Step("add partitions", l.addPartitions)
	steps.Step("delete records", l.deleteRecords)
	steps.Step("delete a group", l.deleteGroup)
	steps.Step("delete a topic", l.deleteTopic)
	steps.Step("commit a transaction", l.commitTransaction)
	steps.Step("abort a transaction", l.abortTransaction)
	steps.Step("fence a zombie", l.fenceZombie)
}

func (l *life) partitionCount() int {
	topics, err := l.admin.ListTopics(steps.Patient(), topic)
	if err != nil {
		return -1
	}
	return len(topics[topic].Partitions)
}

// has waits for a number of partitions: the next node that is asked may not know them yet.
func (l *life) has(partitions int) error {
	return steps.Await(fmt.Sprintf("%d partitions", partitions), func() bool { return l.partitionCount() == partitions })
}

func (l *life) createTopic() error {
	if _, err := l.admin.CreateTopic(steps.Patient(), steps.Partitions, 1, nil, topic); err != nil {
		return err
	}
	return l.has(steps.Partitions)
}

func (l *life) produce(count int, idempotent bool) error {
	options := []kgo.Opt{kgo.SeedBrokers(l.servers...), kgo.RecordPartitioner(kgo.ManualPartitioner())}
	if idempotent {
		options = append(options, kgo.ProducerBatchCompression(kgo.ZstdCompression()))
	} else {
		options = append(options, kgo.DisableIdempotentWrite(), kgo.ProducerBatchCompression(kgo.NoCompression()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	for number := range count {
		record := &kgo.Record{
			Topic: topic, Partition: int32(number % steps.Partitions),
			Key: fmt.Appendf(nil, "key-%d", number), Value: fmt.Appendf(nil, "value-%d", number),
			Headers: []kgo.RecordHeader{{Key: "number", Value: []byte{byte(number)}}},
		}
		if err := client.ProduceSync(steps.Patient(), record).FirstErr(); err != nil {
			return err
		}
		if number == count/2 && !idempotent {
			time.Sleep(5 * time.Millisecond)
			l.middle = time.Now()
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

func (l *life) newMember() (*member, error) {
	m := &member{}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.servers...), kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(10*time.Second), kgo.HeartbeatInterval(200*time.Millisecond),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, more map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.assigned = append(m.assigned, more[topic]...)
		}),
		kgo.OnPartitionsRevoked(func(_ context.Context, _ *kgo.Client, less map[string][]int32) {
			m.mutex.Lock()
			defer m.mutex.Unlock()
			m.assigned = slices.DeleteFunc(m.assigned, func(p int32) bool { return slices.Contains(less[topic], p) })
		}),
	)
	if err != nil {
		return nil, err
	}
	m.client = client
	ctx, stop := context.WithCancel(context.Background())
	m.stop = stop
	go func() {
		for ctx.Err() == nil {
			fetches := client.PollFetches(ctx)
			m.mutex.Lock()
			fetches.EachRecord(func(record *kgo.Record) {
				if len(record.Headers) == 1 {
					m.records++
				}
			})
			m.mutex.Unlock()
		}
	}()
	return m, nil
}

func (l *life) settled() bool {
	var assigned [][]int32
	for _, m := range l.members {
		m.mutex.Lock()
		assigned = append(assigned, slices.Clone(m.assigned))
		m.mutex.Unlock()
	}
	return steps.Shared(assigned, steps.Partitions)
}

func (l *life) read() int {
	total := 0
	for _, m := range l.members {
		m.mutex.Lock()
		total += m.records
		m.mutex.Unlock()
	}
	return total
}

func (l *life) join(count int) error {
	for len(l.members) < count {
		m, err := l.newMember()
		if err != nil {
			return err
		}
		l.members = append(l.members, m)
	}
	return steps.Await("every partition has one member", l.settled)
}

func (l *life) consume() error {
	return steps.First(
		l.join(2),
		steps.Await("all records", func() bool { return l.read() >= steps.Records }),
		steps.Expect("records", l.read(), steps.Records),
	)
}

func (l *life) leave() error {
	gone := l.members[2]
	l.members = l.members[:2]
	gone.stop()
	gone.client.Close()
	return steps.Await("every partition has one member", l.settled)
}

func (l *life) commit() error {
	ends, err := l.admin.ListEndOffsets(steps.Patient(), topic)
	if err != nil {
		return err
	}
	for _, m := range l.members {
		m.mutex.Lock()
		offsets := map[int32]kgo.EpochOffset{}
		for _, partition := range m.assigned {
			end, _ := ends.Lookup(topic, partition)
			offsets[partition] = kgo.EpochOffset{Epoch: -1, Offset: end.Offset}
		}
		m.mutex.Unlock()
		m.client.CommitOffsetsSync(steps.Patient(), map[string]map[int32]kgo.EpochOffset{topic: offsets},
			func(_ *kgo.Client, _ *kmsg.OffsetCommitRequest, _ *kmsg.OffsetCommitResponse, failed error) {
				err = errors.Join(err, failed)
			})
	}
	return err
}

func (l *life) committed() error {
	offsets, err := l.admin.FetchOffsets(steps.Patient(), group)
	if err != nil {
		return err
	}
	total := int64(0)
	offsets.Each(func(offset kadm.OffsetResponse) { total += offset.At })
	return steps.Expect("the sum of the committed offsets", total, steps.Records)
}

func (l *life) offsetsByTime() error {
	first := func(found kadm.ListedOffsets, err error) int64 {
		if err != nil {
			return -100
		}
		offset, _ := found.Lookup(topic, 0)
		return offset.Offset
	}
	return steps.First(
		steps.Expect("the earliest offset", first(l.admin.ListStartOffsets(steps.Patient(), topic)), 0),
		steps.Expect("the latest offset", first(l.admin.ListEndOffsets(steps.Patient(), topic)), 28),
		steps.Expect("the offset of a time",
			first(l.admin.ListOffsetsAfterMilli(steps.Patient(), l.middle.UnixMilli(), topic)), 13),
	)
}

func (l *life) describeGroup() error {
	described, err := l.admin.DescribeGroups(steps.Patient(), group)
	if err != nil {
		return err
	}
	return steps.First(
		steps.Expect("state", described[group].State, "Stable"),
		steps.Expect("members", len(described[group].Members), 2),
		steps.Expect("assigned partitions", len(described.AssignedPartitions()[topic]), steps.Partitions),
	)
}

func (l *life) listed(wanted bool) error {
	groups, err := l.admin.ListGroups(steps.Patient())
	if err != nil {
		return err
	}
	return steps.Expect("listed", slices.Contains(groups.Groups(), group), wanted)
}

func (l *life) retention(wanted string) error {
	configs, err := l.admin.DescribeTopicConfigs(steps.Patient(), topic)
	if err != nil {
		return err
	}
	resource, err := configs.On(topic, nil)
	if err != nil {
		return err
	}
	for _, config := range resource.Configs {
		if config.Key == "retention.ms" {
			return steps.Expect("retention.ms", config.MaybeValue(), wanted)
		}
	}
	return fmt.Errorf("no retention.ms: %v", resource.Err)
}

func (l *life) alterConfigs() error {
	day := "86400000"
	change := kadm.AlterConfig{Op: kadm.SetConfig, Name: "retention.ms", Value: &day}
	altered, err := l.admin.AlterTopicConfigs(steps.Patient(), []kadm.AlterConfig{change}, topic)
	if err != nil {
		return err
	}
	return steps.First(altered[0].Err, l.retention(day))
}

func (l *life) addPartitions() error {
	grown, err := l.admin.UpdatePartitions(steps.Patient(), steps.Partitions+2, topic)
	if err != nil {
		return err
	}
	return steps.First(grown.Error(), l.has(steps.Partitions+2))
}

func (l *life) deleteRecords() error {
	offsets := kadm.Offsets{}
	offsets.AddOffset(topic, 0, 10, -1)
	deleted, err := l.admin.DeleteRecords(steps.Patient(), offsets)
	if err != nil {
		return err
	}
	found, _ := deleted.Lookup(topic, 0)
	return steps.First(found.Err, steps.Expect("the low watermark", found.LowWatermark, 10))
}

func (l *life) deleteGroup() error {
	for _, m := range l.members {
		m.stop()
		m.client.Close()
	}
	deleted, err := l.admin.DeleteGroups(steps.Patient(), group)
	if err != nil {
		return err
	}
	return steps.First(deleted.Error(), l.listed(false))
}

func (l *life) deleteTopic() error {
	deleted, err := l.admin.DeleteTopics(steps.Patient(), topic)
	if err != nil {
		return err
	}
	return steps.First(deleted.Error(), steps.Await("the topic is gone", func() bool { return l.partitionCount() <= 0 }))
}
