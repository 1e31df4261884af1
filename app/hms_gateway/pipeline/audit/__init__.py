"""`audit`: compares the catalog with directories and footers, and says what is not as it should be."""
