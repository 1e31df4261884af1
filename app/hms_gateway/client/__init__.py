"""What programs that call a metastore import: the client, and locks by HiveQL statement."""
