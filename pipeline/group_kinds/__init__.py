"""Tables of one kind of groups (share, streams): made from events on one machine or on Spark, and judged."""
