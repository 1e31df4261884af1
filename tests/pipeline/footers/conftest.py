"""Footers are compared with what Arrow counts; without it there is nothing to compare with (requirements/spark.txt)."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("pyarrow") else ["test_*.py"]
