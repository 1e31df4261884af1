"""HiveQL statements that concern a metastore: read, run by calls of a client, and written."""
