"""`hms-gateway sql`: the shell for statements that concern a metastore."""
