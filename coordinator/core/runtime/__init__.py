"""The runtime of every kind of shard: routing, loading, appends in flight, timers."""
