"""Who decides: Kafka's group coordinator. ``core`` is the state machine, ``server`` the service around it."""
