// A consumer with franz-go that transforms in transactions: franztransform NAME=VALUE ..., until SIGTERM.
package main

import (
	"context"
	"errors"
	"log"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kerr"
	"github.com/twmb/franz-go/pkg/kgo"

	"rejoin/clients/steps"
)

func main() {
	settings := steps.Settings(os.Args[1:])
	session, err := kgo.NewGroupTransactSession(
		kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...),
		kgo.ClientID(settings["client.id"]),
		kgo.TransactionalID(settings["transactional.id"]),
		kgo.ConsumerGroup(settings["group.id"]),
		kgo.ConsumeTopics(os.Getenv("TOPIC")),
		kgo.DefaultProduceTopic(os.Getenv("OUTPUT_TOPIC")),
		kgo.SessionTimeout(steps.Millis(settings["session.timeout.ms"])),
		kgo.HeartbeatInterval(steps.Millis(settings["heartbeat.interval.ms"])),
		kgo.RequireStableFetchOffsets(),
	)
	if err != nil {
		log.Fatal(err)
	}
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		pollCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := session.PollFetches(pollCtx)
		cancel()
		if fetches.NumRecords() == 0 {
			continue
		}
		if err := session.Begin(); err != nil {
			log.Fatal(err)
		}
		first := kgo.AbortingFirstErrPromise(session.Client())
		fetches.EachRecord(func(record *kgo.Record) {
			session.Produce(context.Background(), kgo.KeySliceRecord(record.Key, record.Value), first.Promise())
		})
		failed := first.Err()
		_, err := session.End(context.Background(), kgo.TransactionEndTry(failed == nil))
		for _, problem := range []error{failed, err} {
			if errors.Is(problem, kerr.ProducerFenced) || errors.Is(problem, kerr.InvalidProducerEpoch) {
				log.Fatalf("fenced: %v", problem)
			}
		}
		if err != nil {
			log.Printf("cannot end the transaction: %v", err)
		}
	}
	session.Close()
}
