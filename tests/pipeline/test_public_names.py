"""What programs import of the pipeline."""

import pytest


def test_every_name_is_there_and_jobs_are_functions() -> None:
    pytest.importorskip("pyspark", reason="no PySpark (requirements/spark.txt)")
    from hms_gateway import pipeline

    for name in pipeline.__all__:
        assert callable(getattr(pipeline, name)), name
    assert pipeline.run_crawl.__name__ == "crawl"
