// A consumer loses its session and comes back, with franz-go: go test. The helper is helpers/go of this repository; in a
// module of yours, copy its rejoin.go to a package such as internal/rejoin.
package lost_session

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	rejoin "rejoin/helpers"
)

var options = rejoin.Options{
	Topics:   map[string]int{"orders": 3},
	Settings: map[string]string{"group.initial.rebalance.delay.ms": "0"},
}

var stable = rejoin.Fields{"state": "Stable", "members": 1, "assigned": 3, "timeout_ms": 30_000}

func TestAConsumerComesBackAfterItsSession(t *testing.T) {
	broker := rejoin.New(t, options)
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	broker.Produce("orders", nil, 10) // to each partition

	var lost atomic.Int32
	consumer := consumer(t, broker, &lost)
	values := map[string]int{}
	readUntil(ctx, t, consumer, values, 30)
	six := kgo.EpochOffset{Epoch: -1, Offset: 6}
	offsets := map[string]map[int32]kgo.EpochOffset{"orders": {0: six, 1: six, 2: six}}
	consumer.CommitOffsetsSync(ctx, offsets, nil)
	broker.WaitForCommitted("orders-app", []rejoin.Offset{{Topic: "orders", Partition: 2, Offset: 6}})

	broker.Expire("orders-app", rejoin.Fields{"client_id": "one"}) // as if no heartbeat had come for 45 seconds
	for lost.Load() == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	broker.Produce("orders", nil, 1)
	readUntil(ctx, t, consumer, values, 33)

	duplicates := 0
	for _, times := range values {
		duplicates += times - 1
	}
	if duplicates != 12 || lost.Load() != 1 { // four of each partition came after the commit
		t.Fatalf("%d duplicates, and partitions were lost %d times", duplicates, lost.Load())
	}
}

// Its first attempts to join fail; it goes on trying.
func TestAConsumerJoinsAlthoughTheCoordinatorIsNotAvailable(t *testing.T) {
	broker := rejoin.New(t, options)
	broker.AddFault(rejoin.Fields{"keys": "JoinGroup", "error": "COORDINATOR_NOT_AVAILABLE", "count": 2})
	consumer(t, broker, new(atomic.Int32))
	broker.WaitForGroup("orders-app", stable)
	if count := len(broker.Requests(rejoin.Fields{"api": "JoinGroup", "client_id": "one"})); count <= 2 {
		t.Fatalf("%d JoinGroups", count)
	}
}

// The coordinator's 45 seconds pass at once. The consumer's own timers stay in real time.
func TestAConsumerLosesASessionOf45SecondsAtOnce(t *testing.T) {
	broker := rejoin.New(t, rejoin.Options{Clock: "virtual", Topics: map[string]int{"orders": 3}})
	var lost atomic.Int32
	consumer(t, broker, &lost)
	join := func() {
		broker.WaitForGroup("orders-app", rejoin.Fields{"waiting": 1, "timeout_ms": 30_000})
		broker.Advance(3 * time.Second) // the initial rebalance delay
		broker.WaitForGroup("orders-app", stable)
	}
	join()
	silence := broker.AddFault(rejoin.Fields{"keys": "Heartbeat", "pause": true, "count": -1})
	silence.Wait(1)
	broker.Advance(45 * time.Second)
	broker.WaitForGroup("orders-app", rejoin.Fields{"state": "Empty"})
	silence.Remove()
	join()
	if lost.Load() != 1 {
		t.Fatalf("partitions were lost %d times", lost.Load())
	}
}

func consumer(t *testing.T, broker *rejoin.Rejoin, lost *atomic.Int32) *kgo.Client {
	made, err := kgo.NewClient(
		kgo.SeedBrokers(broker.BootstrapServers),
		kgo.ClientID("one"), kgo.ConsumerGroup("orders-app"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(45*time.Second), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { lost.Add(1) }),
	)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.CloseAllowingRebalance)
	return made
}

func readUntil(ctx context.Context, t *testing.T, client *kgo.Client, values map[string]int, count int) {
	for len(values) < count {
		fetches := client.PollFetches(ctx)
		if ctx.Err() != nil {
			t.Fatalf("%d of %d records", len(values), count)
		}
		fetches.EachRecord(func(record *kgo.Record) { values[string(record.Value)]++ })
	}
}
