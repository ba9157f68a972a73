"""The control API in front of a real cluster: faults, the recording of requests, and groups as the cluster has them."""
