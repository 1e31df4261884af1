"""What lasts: the catalog in a relational database by SQLAlchemy Core (design D6), and directories of files."""
