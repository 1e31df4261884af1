"""Values that steer a call without being an argument: its key, its lease, its locks.

Each is a context variable, and no other package defines one. A value set here changes what a unit of work further down
does, so the modules that may import these are listed by name in `tests/runtime/test_users.py`:

call_keys        set by `rpc.repeatable`, obeyed by the store's writers; preparations and repairs take themselves out
presented        set by `handlers.steps`, obeyed in `metastore.changes`
"""
