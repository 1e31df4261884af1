"""`python -m benchmarks [NAME …] [--option …]` runs benchmarks, long ones and those with Spark only when named.

Options are those of the benchmark: `python -m benchmarks pipeline --size 1000000`.
"""

import sys
from importlib import import_module

NAMES = ("tjson", "edge", "http", "storage", "locks", "writes", "server", "neighbours", "reader-lists", "rights")
# Those that take minutes or want Java and PySpark run only when they are named.
WHEN_NAMED = (
    "backup",
    "soak",
    "commits",
    "console",
    "iceberg",
    "iceberg-rest",
    "planning",
    "thrift-tls",
    "pipeline",
    "pipeline-crawl",
    "pipeline-migrate",
    "pipeline-stats",
)


def main() -> None:
    words = sys.argv[1:]
    first_option = next((place for place, word in enumerate(words) if word.startswith("-")), len(words))
    wanted, options = words[:first_option] or NAMES, words[first_option:]
    known = NAMES + WHEN_NAMED
    if words in (["-h"], ["--help"]):
        print(f"{__doc__}\nBenchmarks: {', '.join(NAMES)}\nWhen named: {', '.join(WHEN_NAMED)}")
        return
    unknown = [name for name in wanted if name not in known]
    if unknown:
        sys.exit(f"no benchmark {', '.join(unknown)}; there are {', '.join(known)}")
    sys.argv[1:] = options
    for name in wanted:
        import_module(f"benchmarks.{name.replace('-', '_')}").main()


if __name__ == "__main__":  # worker processes import this module again
    main()
