"""Parts that all jobs of the pipeline share: options, state, plan and batches, lease, progress, result.

A job is a function `job(options, arguments, *, spark=None, progress=None) -> JobResult` with this shape:

    with Run.begin("crawl", options, arguments, spark=spark, progress=progress) as run:
        found = run.store("found", lambda: frame)           # executors write it as Parquet; once, over resumes too
        run.hold(["sales.orders"])                          # an exclusive lease, presented by every changing call
        counts = run.batches(found, step, name="register")  # step(client, batch) -> Outcome, in executors
        return run.finish(CrawlResult, findings=0)

`step` is a function of the package (it is pickled by name). What has run is not done again by a resume: `store` reads
what is there, `batches` leaves out what has a file in `done`. With `options.dry_run` the job returns before `batches`.
"""
