"""The data source `hms` of Spark: reading, following and registering what a metastore holds."""
