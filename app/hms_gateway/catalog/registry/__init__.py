"""Small aggregates: functions, types, schemas, resource plans, scheduled queries, tokens, notifications."""
