"""The tables: functions from DataFrame to DataFrame, one file each, without reading, writing or a session."""
