"""A consumer of a share group (KIP-932) as a function of what happened and when."""
