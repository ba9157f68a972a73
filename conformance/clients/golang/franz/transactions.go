// Transactions: results and offsets of a group, both or neither.
package main

import (
	"errors"
	"fmt"
	"strings"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"rejoin/clients/steps"
)

const (
	results     = "franz-results"
	orders      = "franz-orders"
	transformer = "franz-transformer"
)

// A transformer consumes one order after the other, and writes its result within a transaction.
func (l *life) newTransformer() (*kgo.GroupTransactSession, error) {
	return kgo.NewGroupTransactSession(
		kgo.SeedBrokers(l.servers...), kgo.TransactionalID(transformer), kgo.ConsumerGroup(transformer),
		kgo.ConsumeTopics(orders), kgo.FetchIsolationLevel(kgo.ReadCommitted()), kgo.RequireStableFetchOffsets(),
		kgo.FetchMaxBytes(1), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
}

func write(client *kgo.Client, topic, value string) error {
	record := &kgo.Record{Topic: topic, Key: []byte("key"), Value: []byte(value)}
	return client.ProduceSync(steps.Patient(), record).FirstErr()
}

// transform takes the next order; its offset counts with the result, or not at all.
func (l *life) transform(value string, commits kgo.TransactionEndTry) error {
	if fetches := l.session.PollRecords(steps.Patient(), 1); fetches.NumRecords() != 1 {
		return fmt.Errorf("%d orders: %v", fetches.NumRecords(), fetches.Err())
	}
	if err := l.session.Begin(); err != nil {
		return err
	}
	if err := write(l.session.Client(), results, value); err != nil {
		return err
	}
	committed, err := l.session.End(steps.Patient(), commits)
	return steps.First(err, steps.Expect("committed", committed, bool(commits)))
}

func (l *life) found(level kgo.IsolationLevel, count int) string {
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.servers...), kgo.ConsumeTopics(results), kgo.FetchIsolationLevel(level),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
	)
	if err != nil {
		return err.Error()
	}
	defer client.Close()
	var values []string
	ctx := steps.Patient()
	for len(values) < count && ctx.Err() == nil {
		client.PollFetches(ctx).EachRecord(func(record *kgo.Record) { values = append(values, string(record.Value)) })
	}
	return strings.Join(values, ",")
}

func (l *life) transformed(wanted int64) error {
	return steps.Await(fmt.Sprintf("offset %d", wanted), func() bool {
		offsets, err := l.admin.FetchOffsets(steps.Patient(), transformer)
		found, _ := offsets.Lookup(orders, 0)
		return err == nil && found.At == wanted
	})
}

func (l *life) commitTransaction() error {
	for _, name := range []string{results, orders} {
		if _, err := l.admin.CreateTopic(steps.Patient(), 1, 1, nil, name); err != nil {
			return err
		}
	}
	client, err := kgo.NewClient(kgo.SeedBrokers(l.servers...))
	if err != nil {
		return err
	}
	defer client.Close()
	for _, value := range []string{"a", "b", "c", "d"} {
		if err := write(client, orders, value); err != nil {
			return err
		}
	}
	if l.session, err = l.newTransformer(); err != nil {
		return err
	}
	return steps.First(
		l.transform("one", kgo.TryCommit),
		steps.Expect("committed results", l.found(kgo.ReadCommitted(), 1), "one"),
		l.transformed(1),
	)
}

func (l *life) abortTransaction() error {
	return steps.First(
		l.transform("aborted", kgo.TryAbort),
		l.transform("two", kgo.TryCommit),
		steps.Expect("committed results", l.found(kgo.ReadCommitted(), 2), "one,two"),
		steps.Expect("all results", l.found(kgo.ReadUncommitted(), 3), "one,aborted,two"),
		l.transformed(2),
	)
}

func (l *life) fenceZombie() error {
	zombie := l.session.Client()
	if err := steps.First(l.session.Begin(), write(zombie, results, "of a zombie")); err != nil {
		return err
	}
	client, err := kgo.NewClient(
		kgo.SeedBrokers(l.servers...), kgo.TransactionalID(transformer), kgo.RecordPartitioner(kgo.ManualPartitioner()),
	)
	if err != nil {
		return err
	}
	defer client.Close()
	if err := steps.First(client.BeginTransaction(), write(client, results, "three")); err != nil {
		return err
	}
	refused := zombie.EndTransaction(steps.Patient(), kgo.TryCommit)
	isFenced := errors.Is(refused, kerr.ProducerFenced) || errors.Is(refused, kerr.InvalidProducerEpoch)
	return steps.First(
		steps.Expect(fmt.Sprintf("fenced by %v", refused), isFenced, true),
		client.EndTransaction(steps.Patient(), kgo.TryCommit),
		steps.Expect("committed results", l.found(kgo.ReadCommitted(), 3), "one,two,three"),
	)
}
