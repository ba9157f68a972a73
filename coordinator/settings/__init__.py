"""The settings of a node by subject; :mod:`rejoin.coordinator.config` joins them."""
