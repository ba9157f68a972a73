"""The records of topics in which a coordinator keeps its state: ``__transaction_state``, ``__share_group_state``."""
