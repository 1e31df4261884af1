"""`crawl`: finds tables and partitions below a location, registers what is new, reports what is gone."""
