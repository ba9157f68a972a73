"""Reading input: journals, logs of brokers and of clients, request logs, Parquet."""
