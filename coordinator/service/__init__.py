"""The service around the core: its driver on asyncio, the listeners, the publisher of events, metrics, logging."""
