// A consumer with franz-go: franzmember TOPIC NAME=VALUE ... Lines on standard input make its handler slow ("sleep 20").
package main

import (
	"context"
	"log"
	"log/slog"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/plugin/kslog"

	"rejoin/clients/steps"
)

func logger(client string) kgo.Logger {
	switch {
	case strings.HasSuffix(client, "-2"):
		return kslog.New(slog.New(slog.NewTextHandler(os.Stderr, nil)))
	case strings.HasSuffix(client, "-3"):
		return kslog.New(slog.New(slog.NewJSONHandler(os.Stderr, nil)))
	}
	return kgo.BasicLogger(os.Stderr, kgo.LogLevelInfo, func() string {
		return time.Now().Format("[2006-01-02 15:04:05.000] ")
	})
}

func main() {
	settings := steps.Settings(os.Args[2:])
	options := []kgo.Opt{
		kgo.SeedBrokers(strings.Split(settings["bootstrap.servers"], ",")...),
		kgo.ClientID(settings["client.id"]),
		kgo.ConsumerGroup(settings["group.id"]),
		kgo.ConsumeTopics(os.Args[1]),
		kgo.MetadataMaxAge(steps.Millis(settings["metadata.max.age.ms"])),
		kgo.SessionTimeout(steps.Millis(settings["session.timeout.ms"])),
		kgo.HeartbeatInterval(steps.Millis(settings["heartbeat.interval.ms"])),
		kgo.RebalanceTimeout(steps.Millis(settings["max.poll.interval.ms"])),
		kgo.WithLogger(logger(settings["client.id"])),
	}
	if age := steps.Millis(settings["metadata.max.age.ms"]); age < 5*time.Second {
		options = append(options, kgo.MetadataMinAge(age))
	}
	if instance := settings["group.instance.id"]; instance != "" {
		options = append(options, kgo.InstanceID(instance))
	}
	if interval := settings["auto.commit.interval.ms"]; interval != "" {
		options = append(options, kgo.AutoCommitInterval(steps.Millis(interval)))
	}
	commits := settings["enable.auto.commit"] == "false"
	if commits {
		options = append(options, kgo.DisableAutoCommit())
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		log.Fatal(err)
	}
	sleeps := make(chan time.Duration, 10)
	go steps.ReadSleeps(sleeps)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		pollCtx, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		fetches := client.PollFetches(pollCtx)
		cancel()
		fetches.EachRecord(func(record *kgo.Record) {
			steps.Processed(settings, record.Topic, record.Partition, record.Offset)
		})
		select {
		case length := <-sleeps:
			time.Sleep(length)
		default:
		}
		if commits && !fetches.Empty() {
			if err := client.CommitUncommittedOffsets(ctx); err != nil {
				log.Printf("cannot commit: %v", err)
			}
		}
	}
	client.Close()
}
