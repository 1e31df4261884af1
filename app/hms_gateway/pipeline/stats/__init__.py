"""The job `stats`: `job.stats` is the function. Statistics of tables, partitions and columns."""
