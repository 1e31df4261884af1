"""Commands of operators: serve, bridge, users, check, backup, restore, migrate."""
