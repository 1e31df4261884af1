"""Parts of every command: declarations, output, forms of rows."""
