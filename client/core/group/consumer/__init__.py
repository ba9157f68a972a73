"""Membership by the consumer group protocol (KIP-848): the coordinator assigns, the member takes over step by step."""
