"""`python -m benchmarks [NAME …] [--option …]` runs the named benchmarks, those with Spark only when they are named.

Options are those of the benchmark: `python -m benchmarks pipeline --size 1000000`.
"""

import sys
from importlib import import_module

NAMES = ("tjson", "edge", "http", "storage", "locks", "writes", "server", "neighbours", "reader-lists")
# Those that want Java and PySpark run only when they are named.
WITH_SPARK = ("pipeline", "pipeline-crawl", "pipeline-migrate", "pipeline-stats")


def main() -> None:
    words = sys.argv[1:]
    first_option = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    wanted, options = words[:first_option] or NAMES, words[first_option:]
    known = NAMES + WITH_SPARK
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    sys.argv[1:] = options
    for name in wanted:
        import_module(f"benchmarks.{name.replace('-', '_')}").main()


if __name__ == "__main__":  # worker processes import this module again
    main()
