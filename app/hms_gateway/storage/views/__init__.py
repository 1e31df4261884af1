"""Hive's schema of a metastore's database, as views over ours."""
