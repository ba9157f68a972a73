"""What holds the Grafana dashboard against Grafana's models and Prometheus' engine; wants PyPI and Go's modules."""
