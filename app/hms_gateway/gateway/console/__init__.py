"""The web console: static files of a page that calls the metastore like any other client."""
