"""``rejoin log``: read, check, copy and fill an offsets log while no coordinator needs to run."""
