"""Short commands about the catalog: list, describe, export, import, compare, follow."""
