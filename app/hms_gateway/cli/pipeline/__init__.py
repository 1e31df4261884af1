"""`hms-gateway pipeline …`: one module for each command, loaded when it runs."""
