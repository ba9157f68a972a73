// Logs in with franz-go: go run ./franzlogin FILE.
package main

import (
	"context"
	"os"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/sasl/oauth"
	"github.com/twmb/franz-go/pkg/sasl/plain"
	"github.com/twmb/franz-go/pkg/sasl/scram"

	"rejoin/clients/steps"
)

func main() {
	steps.Logins(os.Args[1], live)
}

func live(login steps.Login) error {
	options := []kgo.Opt{
		kgo.SeedBrokers(login.Server),
		kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{"logins": {0: kgo.NewOffset().AtStart()}}),
		kgo.RecordRetries(1),
		kgo.RetryTimeout(10 * time.Second),
	}
	if config := login.TLS(); config != nil {
		options = append(options, kgo.DialTLSConfig(config))
	}
	switch login.Mechanism {
	case "PLAIN":
		options = append(options, kgo.SASL(plain.Auth{User: login.User, Pass: login.Password}.AsMechanism()))
	case "SCRAM-SHA-256":
		options = append(options, kgo.SASL(scram.Auth{User: login.User, Pass: login.Password}.AsSha256Mechanism()))
	case "SCRAM-SHA-512":
		options = append(options, kgo.SASL(scram.Auth{User: login.User, Pass: login.Password}.AsSha512Mechanism()))
	case "OAUTHBEARER":
		options = append(options, kgo.SASL(oauth.Auth{Token: login.Token}.AsMechanism()))
	}
	client, err := kgo.NewClient(options...)
	if err != nil {
		return err
	}
	defer client.Close()
	patient, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	record := &kgo.Record{Topic: "logins", Value: []byte("value")}
	if err := client.ProduceSync(patient, record).FirstErr(); err != nil {
		return err
	}
	return client.PollFetches(patient).Err()
}
