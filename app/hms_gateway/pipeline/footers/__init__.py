"""Footers of Parquet and ORC files: columns in Hive's types, rows, and what is known about the values of each column.

Nothing of Spark is needed, and no data is read.
"""
