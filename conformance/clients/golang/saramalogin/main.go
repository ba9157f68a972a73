// Logs in with sarama: go run ./saramalogin FILE.
package main

import (
	"errors"
	"os"
	"time"

	"github.com/IBM/sarama"
	"github.com/xdg-go/scram"

	"rejoin/clients/steps"
)

type token string

func (t token) Token() (*sarama.AccessToken, error) { return &sarama.AccessToken{Token: string(t)}, nil }

type scramClient struct {
	hash         scram.HashGeneratorFcn
	conversation *scram.ClientConversation
}

func (c *scramClient) Begin(user, password, authzID string) error {
	client, err := c.hash.NewClient(user, password, authzID)
	if err == nil {
		c.conversation = client.NewConversation()
	}
	return err
}

func (c *scramClient) Step(challenge string) (string, error) { return c.conversation.Step(challenge) }

func (c *scramClient) Done() bool { return c.conversation.Done() }

func main() {
	steps.Logins(os.Args[1], live)
}

func settings(login steps.Login) *sarama.Config {
	config := sarama.NewConfig()
	config.Producer.Return.Successes = true
	config.Metadata.Retry.Max = 1
	if tls := login.TLS(); tls != nil {
		config.Net.TLS.Enable, config.Net.TLS.Config = true, tls
	}
	if login.Mechanism == "" {
		return config
	}
	config.Net.SASL.Enable = true
	config.Net.SASL.Mechanism = sarama.SASLMechanism(login.Mechanism)
	config.Net.SASL.User, config.Net.SASL.Password = login.User, login.Password
	config.Net.SASL.TokenProvider = token(login.Token)
	config.Net.SASL.SCRAMClientGeneratorFunc = func() sarama.SCRAMClient {
		if login.Mechanism == sarama.SASLTypeSCRAMSHA256 {
			return &scramClient{hash: scram.SHA256}
		}
		return &scramClient{hash: scram.SHA512}
	}
	return config
}

func live(login steps.Login) error {
	client, err := sarama.NewClient([]string{login.Server}, settings(login))
	if err != nil {
		return err
	}
	defer client.Close()
	producer, err := sarama.NewSyncProducerFromClient(client)
	if err != nil {
		return err
	}
	if _, _, err := producer.SendMessage(&sarama.ProducerMessage{Topic: "logins", Value: sarama.StringEncoder("value")}); err != nil {
		return err
	}
	consumer, err := sarama.NewConsumerFromClient(client)
	if err != nil {
		return err
	}
	partition, err := consumer.ConsumePartition("logins", 0, sarama.OffsetOldest)
	if err != nil {
		return err
	}
	defer partition.Close()
	select {
	case <-partition.Messages():
		return nil
	case <-time.After(20 * time.Second):
		return errors.New("no record came")
	}
}
