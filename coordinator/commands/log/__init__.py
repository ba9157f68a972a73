"""``rejoin log``: read, check, copy and fill an offsets log offline."""
