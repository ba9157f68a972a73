"""Transactions: what a user may call when, and the requests that follow, one after the other.

    UNINITIALIZED, INITIALIZING, READY, IN_TRANSACTION, COMMITTING or ABORTING, READY, …

An error makes a transaction one that can only be aborted (ABORTABLE_ERROR), or ends the producer (FATAL_ERROR): the
tables in ``reactions`` say which. With transaction.version 2, Produce and TxnOffsetCommit add partitions, and the
answer of EndTxn has the next epoch (KIP-890); before, AddPartitionsToTxn and AddOffsetsToTxn do so.

Kafka: TransactionManager, Sender.maybeSendAndPollTransactionalRequest.
"""
