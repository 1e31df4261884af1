"""Filter texts and expressions: grammars, binding to a table, one tree for all consumers."""
