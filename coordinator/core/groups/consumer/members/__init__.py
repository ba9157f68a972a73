"""How members of a consumer group move: subscribing, targets, reconciliation, time, leaving."""
