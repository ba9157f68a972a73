"""Records of groups whose coordinator assigns, each kind in a module of its own."""
