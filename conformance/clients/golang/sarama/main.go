// A client's life with sarama: go run ./sarama HOST:PORT.
package main

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/IBM/sarama"

	"rejoin/clients/steps"
)

const (
	topic = "sarama-life"
	group = "sarama-group"
)

type life struct {
	brokers []string
	client  sarama.Client
	admin   sarama.ClusterAdmin
	members []*member
	middle  time.Time
}

func settings() *sarama.Config {
	config := sarama.NewConfig() // its default version, 2.8
	config.Producer.Return.Successes = true
	config.Producer.Partitioner = sarama.NewManualPartitioner
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = false
	config.Consumer.Group.Heartbeat.Interval = 200 * time.Millisecond
	return config
}

func main() {
	l := &life{brokers: steps.Servers()}
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
}

func (l *life) createTopic() (err error) {
	if l.client, err = sarama.NewClient(l.brokers, settings()); err != nil {
		return err
	}
	if l.admin, err = sarama.NewClusterAdminFromClient(l.client); err != nil {
		return err
	}
	details := &sarama.TopicDetail{NumPartitions: steps.Partitions, ReplicationFactor: 1}
	if err := l.admin.CreateTopic(topic, details, false); err != nil {
		return err
	}
	return l.partitionCount(steps.Partitions)
}

func (l *life) partitionCount(wanted int) error {
	topics, err := l.admin.DescribeTopics([]string{topic})
	if err != nil {
		return err
	}
	return steps.Expect("partitions", len(topics[0].Partitions), wanted)
}

func (l *life) produce(count int, idempotent bool) error {
	config := settings()
	if idempotent {
		config.Producer.Idempotent = true
		config.Producer.RequiredAcks = sarama.WaitForAll
		config.Producer.Compression = sarama.CompressionZSTD
		config.Net.MaxOpenRequests = 1
	}
	producer, err := sarama.NewSyncProducer(l.brokers, config)
	if err != nil {
		return err
	}
	defer producer.Close()
	for number := range count {
		message := &sarama.ProducerMessage{
			Topic: topic, Partition: int32(number % steps.Partitions),
			Key:     sarama.StringEncoder(fmt.Sprintf("key-%d", number)),
			Value:   sarama.StringEncoder(fmt.Sprintf("value-%d", number)),
			Headers: []sarama.RecordHeader{{Key: []byte("number"), Value: []byte{byte(number)}}},
		}
		if _, _, err := producer.SendMessage(message); err != nil {
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

// A member is the handler of its consumer group.
type member struct {
	group    sarama.ConsumerGroup
	mutex    sync.Mutex
	assigned []int32
	session  sarama.ConsumerGroupSession
	last     map[int32]int64
	records  int
	stop     context.CancelFunc
	done     chan error
}

func (m *member) Setup(session sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	m.assigned, m.session = session.Claims()[topic], session
	return nil
}

func (m *member) Cleanup(sarama.ConsumerGroupSession) error {
	m.mutex.Lock()
	defer m.mutex.Unlock()
	for partition, offset := range m.last {
		m.session.MarkOffset(topic, partition, offset+1, "")
	}
	m.session.Commit()
	m.assigned = nil
	return nil
}

func (m *member) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			m.mutex.Lock()
			if len(message.Headers) == 1 {
				m.records++
			}
			m.last[message.Partition] = message.Offset
			m.mutex.Unlock()
		case <-session.Context().Done():
			return nil
		}
	}
}

func (l *life) newMember() (*member, error) {
	joined, err := sarama.NewConsumerGroup(l.brokers, group, settings())
	if err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	m := &member{group: joined, last: map[int32]int64{}, stop: stop, done: make(chan error, 1)}
	go func() {
		for ctx.Err() == nil {
			if err := joined.Consume(ctx, []string{topic}, m); err != nil {
				break
			}
		}
		m.done <- joined.Close()
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
	// Whoever had read before the second came commits in Cleanup, so no record is read twice.
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
	return steps.First(<-gone.done, steps.Await("every partition has one member", l.settled))
}

func (l *life) commit() error {
	for _, m := range l.members {
		m.mutex.Lock()
		for partition, offset := range m.last {
			m.session.MarkOffset(topic, partition, offset+1, "")
		}
		m.session.Commit()
		m.mutex.Unlock()
	}
	return nil
}

func (l *life) committed() error {
	partitions := map[string][]int32{topic: {0, 1, 2, 3}}
	found, err := l.admin.ListConsumerGroupOffsets(group, partitions)
	if err != nil {
		return err
	}
	total := int64(0)
	for partition := range int32(steps.Partitions) {
		total += found.GetBlock(topic, partition).Offset
	}
	return steps.Expect("the sum of the committed offsets", total, steps.Records)
}

func (l *life) offsetsByTime() error {
	for time, wanted := range map[int64]int64{sarama.OffsetOldest: 0, sarama.OffsetNewest: 28, l.middle.UnixMilli(): 13} {
		found, err := l.client.GetOffset(topic, 0, time)
		if err := steps.First(err, steps.Expect("the offset of a time", found, wanted)); err != nil {
			return err
		}
	}
	return nil
}

func (l *life) describeGroup() error {
	described, err := l.admin.DescribeConsumerGroups([]string{group})
	if err != nil {
		return err
	}
	return steps.First(
		steps.Expect("state", described[0].State, "Stable"),
		steps.Expect("members", len(described[0].Members), 2),
	)
}

func (l *life) listed(wanted bool) error {
	groups, err := l.admin.ListConsumerGroups()
	_, found := groups[group]
	return steps.First(err, steps.Expect("listed", found, wanted))
}

func (l *life) retention(wanted string) error {
	resource := sarama.ConfigResource{Type: sarama.TopicResource, Name: topic, ConfigNames: []string{"retention.ms"}}
	entries, err := l.admin.DescribeConfig(resource)
	if err != nil {
		return err
	}
	if len(entries) != 1 {
		return fmt.Errorf("%d entries", len(entries))
	}
	return steps.Expect("retention.ms", entries[0].Value, wanted)
}

func (l *life) alterConfigs() error {
	day := "86400000"
	change := sarama.IncrementalAlterConfigsEntry{Operation: sarama.IncrementalAlterConfigsOperationSet, Value: &day}
	changes := map[string]sarama.IncrementalAlterConfigsEntry{"retention.ms": change}
	return steps.First(
		l.admin.IncrementalAlterConfig(sarama.TopicResource, topic, changes, false),
		l.retention(day),
	)
}

func (l *life) addPartitions() error {
	return steps.First(
		l.admin.CreatePartitions(topic, steps.Partitions+2, nil, false),
		l.partitionCount(steps.Partitions+2),
	)
}

func (l *life) deleteRecords() error {
	if err := l.admin.DeleteRecords(topic, map[int32]int64{0: 10}); err != nil {
		return err
	}
	found, err := l.client.GetOffset(topic, 0, sarama.OffsetOldest)
	return steps.First(err, steps.Expect("the earliest offset", found, 10))
}

func (l *life) deleteGroup() error {
	for _, m := range l.members {
		m.stop()
		if err := <-m.done; err != nil {
			return err
		}
	}
	return steps.First(l.admin.DeleteConsumerGroup(group), l.listed(false))
}

func (l *life) deleteTopic() error {
	if err := l.admin.DeleteTopic(topic); err != nil {
		return err
	}
	return steps.Await("the topic is gone", func() bool {
		topics, err := l.admin.ListTopics()
		_, found := topics[topic]
		return err == nil && !found
	})
}
