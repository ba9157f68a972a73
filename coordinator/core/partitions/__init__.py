"""Data partitions: the logs of topics, and the requests that write and read them."""
