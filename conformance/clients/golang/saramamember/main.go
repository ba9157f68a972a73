// A consumer with sarama: saramamember TOPIC NAME=VALUE ... Lines on standard input make its handler slow ("sleep 20").
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

	"github.com/IBM/sarama"

	"rejoin/clients/steps"
)

type handler struct {
	settings map[string]string
	sleeps   chan time.Duration
	commits  bool
}

func (h *handler) Setup(sarama.ConsumerGroupSession) error   { return nil }
func (h *handler) Cleanup(sarama.ConsumerGroupSession) error { return nil }

func (h *handler) ConsumeClaim(session sarama.ConsumerGroupSession, claim sarama.ConsumerGroupClaim) error {
	for {
		select {
		case message, open := <-claim.Messages():
			if !open {
				return nil
			}
			select {
			case length := <-h.sleeps:
				time.Sleep(length)
			default:
			}
			steps.Processed(h.settings, message.Topic, message.Partition, message.Offset)
			session.MarkMessage(message, "")
			if h.commits {
				session.Commit()
			}
		case <-session.Context().Done():
			return nil
		}
	}
}

func main() {
	settings := steps.Settings(os.Args[2:])
	flags := log.LstdFlags
	if strings.HasSuffix(settings["client.id"], "-2") {
		flags |= log.Lmicroseconds
	}
	sarama.Logger = log.New(os.Stderr, "[sarama] ", flags)
	config := sarama.NewConfig()
	config.ClientID = settings["client.id"]
	config.Metadata.RefreshFrequency = steps.Millis(settings["metadata.max.age.ms"])
	config.Consumer.Offsets.Initial = sarama.OffsetOldest
	config.Consumer.Offsets.AutoCommit.Enable = settings["enable.auto.commit"] == "true"
	config.Consumer.Group.Session.Timeout = steps.Millis(settings["session.timeout.ms"])
	config.Consumer.Group.Heartbeat.Interval = steps.Millis(settings["heartbeat.interval.ms"])
	config.Consumer.Group.Rebalance.Timeout = steps.Millis(settings["max.poll.interval.ms"])
	config.Consumer.Group.InstanceId = settings["group.instance.id"]
	if interval := settings["auto.commit.interval.ms"]; interval != "" {
		config.Consumer.Offsets.AutoCommit.Interval = steps.Millis(interval)
	}
	group, err := sarama.NewConsumerGroup(strings.Split(settings["bootstrap.servers"], ","), settings["group.id"], config)
	if err != nil {
		log.Fatal(err)
	}
	run := &handler{settings, make(chan time.Duration, 10), settings["enable.auto.commit"] != "true"}
	go steps.ReadSleeps(run.sleeps)
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM)
	defer stop()
	for ctx.Err() == nil {
		if err := group.Consume(ctx, []string{os.Args[1]}, run); err != nil && !errors.Is(err, sarama.ErrClosedConsumerGroup) {
			log.Printf("Error from consumer: %v", err)
			time.Sleep(time.Second)
		}
	}
	if err := group.Close(); err != nil {
		log.Printf("Error closing client: %v", err)
	}
}
