"""Common parts of the commands that are tools of Kafka's: options, connections, one action that is run."""
