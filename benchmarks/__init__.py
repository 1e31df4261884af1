"""What is fast and what is not: each module prints ours beside a reference measured in the same run."""
