"""Audits of the tables: each violation of a rule that must always hold, with the rows that prove it.

Every audit is a function of one group's rows (:class:`~rejoin.pipeline.audits.rows.AuditedGroup`) and gives rows of
:data:`rejoin.pipeline.schemas.VIOLATIONS`. Behaviour that is unwise but allowed is a finding. One thing that Kafka
allows is shown beside violations, by a kind of its own: a removed member that has not noticed yet goes on with its
partitions together with its successor.
"""
