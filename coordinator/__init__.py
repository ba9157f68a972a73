"""Who decides: Kafka's group coordinator. ``core`` is the state machine, ``service`` the event loop around it."""
