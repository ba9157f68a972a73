"""`rejoin topics`: topics from outside, as kafka-topics.sh does it."""
