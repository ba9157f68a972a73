"""Checks the Grafana dashboard with Grafana's models and Prometheus' engine; wants PyPI and Go's modules."""
