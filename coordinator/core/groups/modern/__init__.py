"""Parts shared by the kinds of groups whose coordinator assigns: consumer groups, share groups.

Their state changes by records alone, members have epochs, and a target assignment is computed in a heartbeat.
Kafka: ModernGroup.
"""
