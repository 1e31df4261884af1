"""Every deliberate difference between Apache Hive Metastore 2.3 and this one, in one table that the comparison reads.

`docs/differences.md` is written from it (`python -m tests.comparison.document`). The first entry that explains two
answers counts.
"""

from tests.comparison.answers import Difference
from tests.comparison.bad_input_differences import BAD_INPUT
from tests.comparison.catalog_differences import CATALOG
from tests.comparison.objects_differences import OBJECTS
from tests.comparison.transactions_differences import TRANSACTIONS

# What the answers to calls about transactions, locks and tables that were dropped depend on.
REMEMBERED = frozenset(
    ("lock", "check_lock", "unlock", "commit_txn", "abort_txn", "abort_txns", "drop_table", "drop_partition")
)

DIFFERENCES: tuple[Difference, ...] = (*BAD_INPUT, *CATALOG, *OBJECTS, *TRANSACTIONS)
