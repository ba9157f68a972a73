// Logs in with segmentio/kafka-go: go run ./segmentiologin FILE.
package main

import (
	"context"
	"os"
	"time"

	"github.com/segmentio/kafka-go"
	"github.com/segmentio/kafka-go/sasl"
	"github.com/segmentio/kafka-go/sasl/plain"
	"github.com/segmentio/kafka-go/sasl/scram"

	"rejoin/clients/steps"
)

func main() {
	steps.Logins(os.Args[1], live)
}

// bearer is OAUTHBEARER, which the library has no mechanism for, but an interface.
type bearer string

func (b bearer) Name() string { return "OAUTHBEARER" }

func (b bearer) Start(context.Context) (sasl.StateMachine, []byte, error) {
	return b, []byte("n,,\x01auth=Bearer " + string(b) + "\x01\x01"), nil
}

func (b bearer) Next(context.Context, []byte) (bool, []byte, error) { return true, nil, nil }

func mechanism(login steps.Login) (sasl.Mechanism, error) {
	switch login.Mechanism {
	case "PLAIN":
		return plain.Mechanism{Username: login.User, Password: login.Password}, nil
	case "SCRAM-SHA-256":
		return scram.Mechanism(scram.SHA256, login.User, login.Password)
	case "SCRAM-SHA-512":
		return scram.Mechanism(scram.SHA512, login.User, login.Password)
	case "OAUTHBEARER":
		return bearer(login.Token), nil
	}
	return nil, nil
}

func live(login steps.Login) error {
	mechanism, err := mechanism(login)
	if err != nil {
		return err
	}
	patient, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	writer := &kafka.Writer{
		Addr: kafka.TCP(login.Server), Topic: "logins", BatchTimeout: time.Millisecond, MaxAttempts: 2,
		Transport: &kafka.Transport{TLS: login.TLS(), SASL: mechanism},
	}
	defer writer.Close()
	if err := writer.WriteMessages(patient, kafka.Message{Value: []byte("value")}); err != nil {
		return err
	}
	dialer := &kafka.Dialer{TLS: login.TLS(), SASLMechanism: mechanism, Timeout: 10 * time.Second}
	reader := kafka.NewReader(kafka.ReaderConfig{Brokers: []string{login.Server}, Topic: "logins", Dialer: dialer})
	defer reader.Close()
	_, err = reader.ReadMessage(patient)
	return err
}
