"""What every shard needs, whatever it keeps: routing, loading, appends in flight, timers."""
