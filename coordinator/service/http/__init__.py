"""The service over HTTP: Kafka's requests by POST, views by GET, the control API."""
