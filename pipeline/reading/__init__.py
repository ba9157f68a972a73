"""Reading input: journals, brokers' logs, request logs, Parquet."""
