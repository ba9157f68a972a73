// Share groups with franz-go, one for each step. A poll accepts what the last one gave and no one has acknowledged, so that
// every acknowledgement is sent before the next poll.
package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"slices"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"

	"rejoin/clients/steps"
)

const (
	lock     = 3 * time.Second
	longLock = 60 * time.Second
	quiet    = time.Second
	group    = 32
	dead     = "dlq.franz"
)

type shares struct {
	bootstrap string
	client    *kgo.Client
	admin     *kadm.Client
	mutex     sync.Mutex
	open      []*kgo.Client
	refused   []error
}

func main() {
	client, err := kgo.NewClient(kgo.SeedBrokers(os.Args[1]))
	if err != nil {
		panic(err)
	}
	s := &shares{bootstrap: os.Args[1], client: client, admin: kadm.NewClient(client)}
	if len(os.Args) > 2 {
		found, err := poll(s.member(os.Args[2], "victim"), 10)
		if err != nil {
			panic(err)
		}
		fmt.Println(len(found))
		select {}
	}
	for _, each := range []struct {
		name string
		work func() error
	}{
		{"three members on two partitions", s.threeMembers},
		{"release", s.release},
		{"reject", s.reject},
		{"renew", s.renew},
		{"a lock runs out", s.lockRunsOut},
		{"one is killed with records in flight", s.kill},
		{"delivery limit and dead letters", s.deadLetters},
		{"rolling restart", s.rollingRestart},
	} {
		steps.Step(each.name, each.work)
		s.closeAll()
	}
}

// --- steps

func (s *shares) threeMembers() error {
	topic := "franz-three"
	if err := s.prepare(topic, 2, nil); err != nil {
		return err
	}
	members := []*kgo.Client{s.member(topic, "one"), s.member(topic, "two"), s.member(topic, "three")}
	seen, busy, written := map[string]int{}, map[int]bool{}, 0
	err := steps.Await("records for three members", func() bool {
		if len(seen) == written {
			if s.produce(topic, written, 60) != nil {
				return false
			}
			written += 60
		}
		for number, member := range members {
			for _, record := range records(member, 100*time.Millisecond) {
				seen[string(record.Value)]++
				busy[number] = true
			}
		}
		return len(busy) == 3 && len(seen) == written
	})
	deliveries := 0
	for _, count := range seen {
		deliveries += count
	}
	return steps.First(err, steps.Expect("deliveries", deliveries, written))
}

func (s *shares) release() error {
	topic := "franz-release"
	if err := steps.First(s.prepare(topic, 1, nil), s.produce(topic, 0, 3)); err != nil {
		return err
	}
	consumer := s.member(topic, "one")
	if err := s.acknowledge(consumer, 3, 1, kgo.AckRelease); err != nil {
		return err
	}
	again, err := poll(consumer, 1)
	if err != nil {
		return err
	}
	if err := steps.First(
		steps.Expect("offset", again[0].Offset, 1), steps.Expect("delivery count", again[0].DeliveryCount(), 2),
	); err != nil {
		return err
	}
	again[0].Ack(kgo.AckAccept)
	return steps.First(s.flush(consumer), nothingLeft(consumer))
}

func (s *shares) reject() error {
	topic := "franz-reject"
	if err := steps.First(s.prepare(topic, 1, nil), s.produce(topic, 0, 3)); err != nil {
		return err
	}
	consumer := s.member(topic, "one")
	return steps.First(s.acknowledge(consumer, 3, 1, kgo.AckReject), nothingLeft(consumer))
}

func (s *shares) renew() error {
	topic := "franz-renew"
	if err := steps.First(s.prepare(topic, 1, locked(lock)), s.produce(topic, 0, 1)); err != nil {
		return err
	}
	consumer := s.member(topic, "one")
	found, err := poll(consumer, 1)
	if err != nil {
		return err
	}
	other := s.member(topic, "two")
	for end := time.Now().Add(2 * lock); time.Now().Before(end); {
		found[0].Ack(kgo.AckRenew)
		if err := s.flush(consumer); err != nil {
			return err
		}
		if err := steps.Expect("records of the other member", len(records(other, lock/3)), 0); err != nil {
			return err
		}
	}
	found[0].Ack(kgo.AckAccept)
	return steps.First(s.flush(consumer), nothingLeft(other))
}

func (s *shares) lockRunsOut() error {
	topic := "franz-lock"
	if err := steps.First(s.prepare(topic, 1, locked(lock)), s.produce(topic, 0, 2)); err != nil {
		return err
	}
	slow := s.member(topic, "slow")
	held, err := poll(slow, 2)
	if err != nil {
		return err
	}
	other := s.member(topic, "other")
	again, err := poll(other, 2)
	if err != nil {
		return err
	}
	for _, record := range held {
		record.Ack(kgo.AckAccept)
	}
	if err := s.flush(slow); !errors.Is(err, kerr.InvalidRecordState) {
		return fmt.Errorf("acknowledgement after the lock: %v", err)
	}
	for _, record := range again {
		if err := steps.Expect("delivery count", record.DeliveryCount(), 2); err != nil {
			return err
		}
		record.Ack(kgo.AckAccept)
	}
	return steps.First(s.flush(other), nothingLeft(other))
}

func (s *shares) kill() error {
	topic := "franz-kill"
	if err := steps.First(s.prepare(topic, 1, locked(longLock)), s.produce(topic, 0, 10)); err != nil {
		return err
	}
	victim := exec.Command(os.Args[0], s.bootstrap, topic)
	output, err := victim.StdoutPipe()
	if err != nil {
		return err
	}
	if err := victim.Start(); err != nil {
		return err
	}
	time.AfterFunc(steps.Patience, func() { _ = victim.Process.Kill() })
	count := 0
	_, err = fmt.Fscan(output, &count)
	_ = victim.Process.Kill()
	_ = victim.Wait()
	if err := steps.First(err, steps.Expect("records of the victim", count, 10)); err != nil {
		return err
	}
	killed := time.Now()
	heir := s.member(topic, "heir")
	found, err := poll(heir, 10)
	if err != nil {
		return err
	}
	for _, record := range found {
		if err := steps.Expect("delivery count", record.DeliveryCount(), 2); err != nil {
			return err
		}
		record.Ack(kgo.AckAccept)
	}
	soon := time.Since(killed) < longLock/2
	return steps.First(
		s.flush(heir), steps.Expect("released with the connection", soon, true), nothingLeft(heir),
	)
}

func (s *shares) deadLetters() error {
	topic := "franz-poison"
	enabled := "true"
	_, err := s.admin.CreateTopic(
		steps.Patient(), 1, 1, map[string]*string{"errors.deadletterqueue.group.enable": &enabled}, dead,
	)
	settings := map[string]string{
		"share.delivery.count.limit": "3", "errors.deadletterqueue.topic.name": dead,
		"errors.deadletterqueue.copy.record.enable": "true",
	}
	if err := steps.First(err, s.prepare(topic, 1, settings), s.produce(topic, 0, 3)); err != nil {
		return err
	}
	consumer := s.member(topic, "one")
	for _, wanted := range []int{3, 1, 1} {
		if err := s.acknowledge(consumer, wanted, 1, kgo.AckRelease); err != nil {
			return err
		}
	}
	if err := nothingLeft(consumer); err != nil {
		return err
	}
	reader, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap), kgo.ConsumeTopics(dead), kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err
	}
	defer reader.Close()
	letters, err := poll(reader, 1)
	if err != nil {
		return err
	}
	headers := map[string]string{}
	for _, header := range letters[0].Headers {
		headers[header.Key] = string(header.Value)
	}
	return steps.First(
		steps.Expect("key", string(letters[0].Key), "key-1"),
		steps.Expect("group", headers["__dlq.errors.group"], topic),
		steps.Expect("offset", headers["__dlq.errors.offset"], "1"),
		steps.Expect("delivery count", headers["__dlq.errors.delivery.count"], "3"),
	)
}

func (s *shares) rollingRestart() error {
	topic := "franz-rolling"
	if err := s.prepare(topic, 2, nil); err != nil {
		return err
	}
	members := []*kgo.Client{s.member(topic, "one"), s.member(topic, "two"), s.member(topic, "three")}
	seen, written := map[string]bool{}, 0
	everything := func() error {
		if err := s.produce(topic, written, 60); err != nil {
			return err
		}
		written += 60
		return steps.Await("all records", func() bool {
			for _, member := range members {
				for _, record := range records(member, 50*time.Millisecond) {
					seen[string(record.Value)] = true
				}
			}
			return len(seen) == written
		})
	}
	if err := everything(); err != nil {
		return err
	}
	for number := range members {
		if err := s.produce(topic, written, 60); err != nil {
			return err
		}
		written += 60
		for _, record := range records(members[number], 50*time.Millisecond) {
			seen[string(record.Value)] = true
			record.Ack(kgo.AckAccept)
		}
		members[number].Close()
		members[number] = s.member(topic, fmt.Sprint("next-", number))
		if err := everything(); err != nil {
			return err
		}
	}
	return steps.Expect("records that came", len(seen), written)
}

// --- what they are made of

func locked(duration time.Duration) map[string]string {
	return map[string]string{"share.record.lock.duration.ms": fmt.Sprint(duration.Milliseconds())}
}

// prepare makes a topic, and a group of its name that reads from the earliest record.
func (s *shares) prepare(name string, partitions int32, settings map[string]string) error {
	if _, err := s.admin.CreateTopic(steps.Patient(), partitions, 1, nil, name); err != nil {
		return err
	}
	earliest := "earliest"
	resource := kmsg.NewIncrementalAlterConfigsRequestResource()
	resource.ResourceType, resource.ResourceName = group, name
	resource.Configs = []kmsg.IncrementalAlterConfigsRequestResourceConfig{{Name: "share.auto.offset.reset", Value: &earliest}}
	for key, value := range settings {
		resource.Configs = append(
			resource.Configs, kmsg.IncrementalAlterConfigsRequestResourceConfig{Name: key, Value: &value},
		)
	}
	request := kmsg.NewPtrIncrementalAlterConfigsRequest()
	request.Resources = append(request.Resources, resource)
	answer, err := request.RequestWith(steps.Patient(), s.client)
	if err != nil {
		return err
	}
	return kerr.ErrorForCode(answer.Resources[0].ErrorCode)
}

func (s *shares) produce(topic string, first, count int) error {
	for number := first; number < first+count; number++ {
		value := fmt.Sprint(number)
		record := &kgo.Record{Topic: topic, Key: []byte("key-" + value), Value: []byte(value)}
		if err := s.client.ProduceSync(steps.Patient(), record).FirstErr(); err != nil {
			return err
		}
	}
	return nil
}

func (s *shares) member(topic, name string) *kgo.Client {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(s.bootstrap), kgo.ClientID(name), kgo.ShareGroup(topic), kgo.ConsumeTopics(topic),
		kgo.ShareMaxRecords(10), kgo.ShareMaxRecordsStrict(),
		kgo.ShareAckCallback(func(_ *kgo.Client, results kgo.ShareAckResults) {
			if err := results.Error(); err != nil {
				s.mutex.Lock()
				s.refused = append(s.refused, err)
				s.mutex.Unlock()
			}
		}),
	)
	if err != nil {
		panic(err)
	}
	s.open = append(s.open, client)
	return client
}

func (s *shares) closeAll() {
	for _, client := range s.open {
		client.Close()
	}
	s.open = nil
}

// flush sends what is acknowledged, and returns the error of an acknowledgement that was refused.
func (s *shares) flush(client *kgo.Client) error {
	err := client.FlushAcks(steps.Patient())
	s.mutex.Lock()
	defer s.mutex.Unlock()
	refused := slices.Clone(s.refused)
	s.refused = nil
	return steps.First(append([]error{err}, refused...)...)
}

// acknowledge accepts the records of a poll, but one.
func (s *shares) acknowledge(client *kgo.Client, wanted int, offset int64, status kgo.AckStatus) error {
	found, err := poll(client, wanted)
	if err != nil {
		return err
	}
	for _, record := range found {
		if record.Offset == offset {
			record.Ack(status)
		} else {
			record.Ack(kgo.AckAccept)
		}
	}
	return s.flush(client)
}

func records(client *kgo.Client, atMost time.Duration) []*kgo.Record {
	ctx, stop := context.WithTimeout(context.Background(), atMost)
	defer stop()
	return client.PollRecords(ctx, 10).Records()
}

// poll returns the records of the first poll that has any.
func poll(client *kgo.Client, wanted int) ([]*kgo.Record, error) {
	var found []*kgo.Record
	err := steps.Await(fmt.Sprint(wanted, " records"), func() bool {
		found = records(client, 500*time.Millisecond)
		return len(found) > 0
	})
	return found, steps.First(err, steps.Expect("records of one poll", len(found), wanted))
}

func nothingLeft(client *kgo.Client) error {
	return steps.Expect("records after the last", len(records(client, quiet)), 0)
}
