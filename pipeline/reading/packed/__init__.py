"""Files that hold other files: opening what is packed, and the members of archives as if they were files."""
