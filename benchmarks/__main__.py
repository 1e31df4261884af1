"""`python -m benchmarks [NAME …]` runs the named benchmarks, all of them when none is named."""

import sys
from importlib import import_module

NAMES = ("tjson", "edge", "http", "storage", "locks", "writes", "server", "neighbours")
# Those that want Java and PySpark run only when they are named.
WITH_SPARK = ("pipeline-crawl",)


def main() -> None:
    wanted = sys.argv[1:] or NAMES
    unknown = [name for name in wanted if name not in NAMES + WITH_SPARK]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(NAMES + WITH_SPARK)}")
    sys.argv[1:] = []
    for name in wanted:
        import_module(f"benchmarks.{name.replace('-', '_')}").main()


if __name__ == "__main__":  # worker processes import this module again
    main()
