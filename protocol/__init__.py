"""What is said: Kafka's messages, error codes, records and embedded formats, as data.

Nothing here decides anything, and nothing here imports another package of ours.
"""
