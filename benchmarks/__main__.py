"""`python -m benchmarks [NAME …]` runs the named benchmarks, all of them when none is named."""

import sys
from importlib import import_module

NAMES = ("tjson", "edge", "http", "storage", "locks", "writes", "server", "neighbours")


def main() -> None:
    wanted = sys.argv[1:] or NAMES
    unknown = [name for name in wanted if name not in NAMES]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES)}")
    sys.argv[1:] = []
    for name in wanted:
        import_module(f"benchmarks.{name}").main()


if __name__ == "__main__":  # worker processes import this module again
    main()
