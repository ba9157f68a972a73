"""Who may connect to a node, and as whom: TLS, SASL, and the same logins over HTTP."""
