"""Logs of real brokers: the group coordinator's lines of ``server.log`` and the request log, as journal rows.

``lines`` cuts files into log records, ``messages`` and ``reasons`` read what Kafka's coordinators say, ``statements``
puts a file's lines into context. ``histories`` (with ``membership``) follows a group through them, ``requests`` does so
from requests and answers, and ``reconstruction`` makes the journal's events of it all. Only ``tables`` needs Spark: it
runs the rest on many files.
"""
