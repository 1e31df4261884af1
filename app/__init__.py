"""A Hive Metastore called over HTTPS: the MS-HMSHTTP protocol in front of a metastore core of its own."""
