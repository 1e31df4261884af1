"""What is wrong with some tables, partitions, directories and footers: values in, findings out."""
