"""The classic group protocol: the JoinGroup, SyncGroup and Heartbeat state machine."""
