"""A consumer's own log, written from its events, in the words of a client library and one of its versions."""
