"""The job `snapshot`: the whole catalog as Parquet as of one event, and what differs between two of them."""
