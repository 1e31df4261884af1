"""The metastore's rules: databases, tables and partitions, over ports that storage and files implement."""
