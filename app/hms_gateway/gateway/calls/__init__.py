"""Running calls: on the event loop, in worker threads, waiting; the chunks of long replies."""
