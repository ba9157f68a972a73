"""The scripts, by set. Most are made from tables: each request in each state of a transaction."""
