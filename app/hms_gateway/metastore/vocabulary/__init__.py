"""Names, types, parameters and texts of the metastore, as pure functions. Imports nothing of the other rooms."""
