"""``rejoin conform-client`` over real clients: ``python -m conformance.clients.conform [CLIENT ...]``."""
