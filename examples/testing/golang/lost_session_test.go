// A consumer loses its session and comes back: go test, with BOOTSTRAP_SERVERS and CONTROL_URL in the environment.
package lost_session

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

const partitions = 3

var (
	bootstrap = os.Getenv("BOOTSTRAP_SERVERS")
	control   = os.Getenv("CONTROL_URL")
)

func TestAConsumerComesBackAfterItsSession(t *testing.T) {
	if bootstrap == "" || control == "" {
		t.Fatal("set BOOTSTRAP_SERVERS=127.0.0.1:9092 and CONTROL_URL=http://127.0.0.1:9095")
	}
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	plain := client(t, kgo.RecordPartitioner(kgo.ManualPartitioner()))
	if _, err := kadm.NewClient(plain).CreateTopic(ctx, partitions, 1, nil, "orders"); err != nil {
		t.Fatal(err)
	}
	produce(ctx, t, plain, 0, 10)

	var lost atomic.Int32
	consumer := client(t,
		kgo.ClientID("one"), kgo.ConsumerGroup("orders-app"), kgo.ConsumeTopics("orders"), kgo.DisableAutoCommit(),
		kgo.SessionTimeout(45*time.Second), kgo.HeartbeatInterval(100*time.Millisecond),
		kgo.OnPartitionsLost(func(context.Context, *kgo.Client, map[string][]int32) { lost.Add(1) }),
	)
	values := map[string]int{}
	readUntil(ctx, t, consumer, values, 30)
	six := kgo.EpochOffset{Epoch: -1, Offset: 6}
	offsets := map[string]map[int32]kgo.EpochOffset{"orders": {0: six, 1: six, 2: six}}
	consumer.CommitOffsetsSync(ctx, offsets, nil)

	expire(t, "orders-app", "one") // as if no heartbeat had come for 45 seconds
	for lost.Load() == 0 && ctx.Err() == nil {
		time.Sleep(10 * time.Millisecond)
	}
	produce(ctx, t, plain, 10, 11)
	readUntil(ctx, t, consumer, values, 33)

	duplicates := 0
	for _, times := range values {
		duplicates += times - 1
	}
	if duplicates != 12 || lost.Load() != 1 { // four of each partition came after the commit
		t.Fatalf("%d duplicates, and partitions were lost %d times", duplicates, lost.Load())
	}
}

func client(t *testing.T, options ...kgo.Opt) *kgo.Client {
	made, err := kgo.NewClient(append(options, kgo.SeedBrokers(bootstrap))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(made.Close)
	return made
}

func produce(ctx context.Context, t *testing.T, client *kgo.Client, first, end int) {
	for partition := range int32(partitions) {
		for number := first; number < end; number++ {
			value := fmt.Appendf(nil, "%d/%d", partition, number)
			record := &kgo.Record{Topic: "orders", Partition: partition, Value: value}
			if err := client.ProduceSync(ctx, record).FirstErr(); err != nil {
				t.Fatal(err)
			}
		}
	}
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

func expire(t *testing.T, group, clientID string) {
	body := fmt.Sprintf(`{"group": %q, "client_id": %q}`, group, clientID)
	answer, err := http.Post(control+"/control/groups/expire", "application/json", strings.NewReader(body))
	if err != nil || answer.StatusCode != http.StatusOK {
		t.Fatal(answer, err)
	}
}
