"""The language of transcripts: one table of commands, which writers and the player share."""
