"""The job `compact`: small files of plain Hive tables become larger ones, in a new directory for a partition."""
