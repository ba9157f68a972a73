"""Messages of share groups (KIP-932)."""
