"""Commands of operators: serve, bridge, users, check, backup, migrate."""
