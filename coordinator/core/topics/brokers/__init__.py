"""Settings of brokers that change while they run."""
