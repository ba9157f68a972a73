// A client's life with segmentio/kafka-go: go run ./segmentio HOST:PORT.
package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/segmentio/kafka-go"

	"rejoin/clients/steps"
)

const (
	topic = "segmentio-life"
	group = "segmentio-group"
)

type member struct {
	reader *kafka.Reader
	mutex  sync.Mutex
	read   []kafka.Message
	stop   context.CancelFunc
}

type life struct {
	servers []string
	client  *kafka.Client
	members []*member
	middle  time.Time
}

func main() {
	l := &life{servers: steps.Servers(), client: &kafka.Client{
		Addr: kafka.TCP(steps.Servers()...), Timeout: steps.Patience, Transport: &kafka.Transport{MetadataTTL: 50 * time.Millisecond},
	}}
	steps.Step("create a topic", l.createTopic)
	steps.Step("produce", l.produce)
	steps.Step("consume in a group of two", l.consume)
	steps.Step("a third joins", func() error { return l.join(3) })
	steps.Step("one leaves", l.leave)
	steps.Step("commit", l.commit)
	steps.Step("committed offsets", l.committed)
	steps.Step("offsets by time", l.offsetsByTime)
	steps.Step("describe a group", func() error { return l.described(2) })
	steps.Step("list groups", func() error { return l.listed(true) })
	steps.Step("describe configs", func() error { return l.retention("604800000") })
	steps.Step("alter configs", l.alterConfigs)
	steps.Step("add partitions", l.addPartitions)
	steps.Step("delete a group", l.deleteGroup)
	steps.Step("delete a topic", l.deleteTopic)
}

func (l *life) createTopic() error {
	created, err := l.client.CreateTopics(steps.Patient(), &kafka.CreateTopicsRequest{
		Topics: []kafka.TopicConfig{{Topic: topic, NumPartitions: steps.Partitions, ReplicationFactor: 1}},
	})
	if err != nil {
		return err
	}
	return steps.First(created.Errors[topic], l.partitionCount(steps.Partitions))
}

func (l *life) partitionCount(wanted int) error {
	found, err := l.client.Metadata(steps.Patient(), &kafka.MetadataRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return steps.First(found.Topics[0].Error, steps.Expect("partitions", len(found.Topics[0].Partitions), wanted))
}

func (l *life) produce() error {
	writer := &kafka.Writer{
		Addr: kafka.TCP(l.servers...), Topic: topic, Balancer: &kafka.RoundRobin{}, BatchTimeout: time.Millisecond,
		RequiredAcks: kafka.RequireAll, Compression: kafka.Zstd,
	}
	defer writer.Close()
	for number := range steps.Records {
		message := kafka.Message{
			Key: fmt.Appendf(nil, "key-%d", number), Value: fmt.Appendf(nil, "value-%d", number),
			Headers: []kafka.Header{{Key: "number", Value: []byte{byte(number)}}},
		}
		if err := writer.WriteMessages(steps.Patient(), message); err != nil {
			return err
		}
		if number == steps.Records/2 {
			time.Sleep(5 * time.Millisecond)
			l.middle = time.Now()
			time.Sleep(5 * time.Millisecond)
		}
	}
	return nil
}

func (l *life) newMember() *member {
	ctx, stop := context.WithCancel(context.Background())
	m := &member{stop: stop, reader: kafka.NewReader(kafka.ReaderConfig{
		Brokers: l.servers, GroupID: group, Topic: topic, MaxWait: 100 * time.Millisecond,
		HeartbeatInterval: 200 * time.Millisecond, SessionTimeout: 10 * time.Second, JoinGroupBackoff: 100 * time.Millisecond,
		StartOffset: kafka.FirstOffset, RebalanceTimeout: 10 * time.Second,
	})}
	go func() {
		for {
			message, err := m.reader.FetchMessage(ctx)
			if err != nil {
				return
			}
			m.mutex.Lock()
			if len(message.Headers) == 1 {
				m.read = append(m.read, message)
			}
			m.mutex.Unlock()
		}
	}()
	return m
}

// Members with their partitions, as the coordinator sees them: a Reader does not say what it was assigned.
func (l *life) described(members int) error {
	found, err := l.client.DescribeGroups(steps.Patient(), &kafka.DescribeGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	var assigned [][]int32
	for _, each := range found.Groups[0].Members {
		var mine []int32
		for _, topic := range each.MemberAssignments.Topics {
			for _, partition := range topic.Partitions {
				mine = append(mine, int32(partition))
			}
		}
		assigned = append(assigned, mine)
	}
	return steps.First(
		found.Groups[0].Error,
		steps.Expect("state", found.Groups[0].GroupState, "Stable"),
		steps.Expect("members", len(assigned), members),
		steps.Expect("every partition has one member", steps.Shared(assigned, steps.Partitions), true),
	)
}

func (l *life) join(count int) error {
	for len(l.members) < count {
		l.members = append(l.members, l.newMember())
	}
	last := error(nil)
	return steps.First(steps.Await("every partition has one member", func() bool {
		last = l.described(count)
		return last == nil
	}), last)
}

func (l *life) read() int {
	// A Reader that is assigned a partition anew begins at what was committed, so records come more than once.
	distinct := map[string]bool{}
	for _, m := range l.members {
		m.mutex.Lock()
		for _, message := range m.read {
			distinct[string(message.Key)] = true
		}
		m.mutex.Unlock()
	}
	return len(distinct)
}

func (l *life) consume() error {
	return steps.First(l.join(2), steps.Await("all records", func() bool { return l.read() == steps.Records }))
}

func (l *life) leave() error {
	gone := l.members[2]
	l.members = l.members[:2]
	gone.stop()
	return steps.First(gone.reader.Close(), l.join(2))
}

func (l *life) commit() error {
	if err := steps.Await("all records", func() bool { return l.read() == steps.Records }); err != nil {
		return err
	}
	last := map[int]kafka.Message{} // of each partition
	for _, m := range l.members {
		m.mutex.Lock()
		for _, message := range m.read {
			if message.Offset >= last[message.Partition].Offset {
				last[message.Partition] = message
			}
		}
		m.mutex.Unlock()
	}
	return l.members[0].reader.CommitMessages(steps.Patient(), slices.Collect(maps.Values(last))...)
}

func (l *life) committed() error {
	request := &kafka.OffsetFetchRequest{GroupID: group, Topics: map[string][]int{topic: {0, 1, 2, 3}}}
	found, err := l.client.OffsetFetch(steps.Patient(), request)
	if err != nil {
		return err
	}
	total := int64(0)
	for _, partition := range found.Topics[topic] {
		total += partition.CommittedOffset
	}
	return steps.First(found.Error, steps.Expect("the sum of the committed offsets", total, steps.Records))
}

func (l *life) offsetsByTime() error {
	found, err := l.client.ListOffsets(steps.Patient(), &kafka.ListOffsetsRequest{Topics: map[string][]kafka.OffsetRequest{
		topic: {kafka.FirstOffsetOf(0), kafka.LastOffsetOf(0), kafka.TimeOffsetOf(0, l.middle)},
	}})
	if err != nil {
		return err
	}
	first := found.Topics[topic][0]
	_, there := first.Offsets[14]
	return steps.First(
		first.Error,
		steps.Expect("the earliest offset", first.FirstOffset, 0),
		steps.Expect("the latest offset", first.LastOffset, 28),
		steps.Expect("the offset of a time", there, true),
	)
}

func (l *life) listed(wanted bool) error {
	groups, err := l.client.ListGroups(steps.Patient(), &kafka.ListGroupsRequest{})
	if err != nil {
		return err
	}
	found := slices.ContainsFunc(groups.Groups, func(each kafka.ListGroupsResponseGroup) bool { return each.GroupID == group })
	return steps.First(groups.Error, steps.Expect("listed", found, wanted))
}

func (l *life) retention(wanted string) error {
	found, err := l.client.DescribeConfigs(steps.Patient(), &kafka.DescribeConfigsRequest{
		Resources: []kafka.DescribeConfigRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic, ConfigNames: []string{"retention.ms"},
		}},
	})
	if err != nil {
		return err
	}
	if len(found.Resources[0].ConfigEntries) != 1 {
		return errors.Join(errors.New("expected one entry"), found.Resources[0].Error)
	}
	return steps.Expect("retention.ms", found.Resources[0].ConfigEntries[0].ConfigValue, wanted)
}

func (l *life) alterConfigs() error {
	day := "86400000"
	altered, err := l.client.IncrementalAlterConfigs(steps.Patient(), &kafka.IncrementalAlterConfigsRequest{
		Resources: []kafka.IncrementalAlterConfigsRequestResource{{
			ResourceType: kafka.ResourceTypeTopic, ResourceName: topic,
			Configs: []kafka.IncrementalAlterConfigsRequestConfig{{
				Name: "retention.ms", Value: day, ConfigOperation: kafka.ConfigOperationSet,
			}},
		}},
	})
	if err != nil {
		return err
	}
	return steps.First(altered.Resources[0].Error, l.retention(day))
}

func (l *life) addPartitions() error {
	grown, err := l.client.CreatePartitions(steps.Patient(), &kafka.CreatePartitionsRequest{
		Topics: []kafka.TopicPartitionsConfig{{Name: topic, Count: steps.Partitions + 2}},
	})
	if err != nil {
		return err
	}
	// The client caches metadata for a moment.
	return steps.First(grown.Errors[topic], steps.Await("the new partitions", func() bool {
		return l.partitionCount(steps.Partitions+2) == nil
	}))
}

func (l *life) deleteGroup() error {
	for _, m := range l.members {
		m.stop()
		if err := m.reader.Close(); err != nil {
			return err
		}
	}
	deleted, err := l.client.DeleteGroups(steps.Patient(), &kafka.DeleteGroupsRequest{GroupIDs: []string{group}})
	if err != nil {
		return err
	}
	return steps.First(deleted.Errors[group], l.listed(false))
}

func (l *life) deleteTopic() error {
	deleted, err := l.client.DeleteTopics(steps.Patient(), &kafka.DeleteTopicsRequest{Topics: []string{topic}})
	if err != nil {
		return err
	}
	return steps.First(deleted.Errors[topic], steps.Await("the topic is gone", func() bool {
		found, err := l.client.Metadata(steps.Patient(), &kafka.MetadataRequest{})
		return err == nil && !slices.ContainsFunc(found.Topics, func(each kafka.Topic) bool { return each.Name == topic })
	}))
}
