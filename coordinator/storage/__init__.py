"""The offsets log: what the coordinator writes so that another node, or this one after a restart, can go on."""
