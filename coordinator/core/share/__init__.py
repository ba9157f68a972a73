"""Share groups on the leader of a partition (KIP-932): the window of records that members share."""
