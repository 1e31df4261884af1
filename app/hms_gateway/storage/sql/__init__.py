"""SQL that many repositories share: filters, fragments, counters, errors."""
