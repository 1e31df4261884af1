#!/bin/sh
# Stops a metastore that hms-start.sh started, and its PostgreSQL: hms-stop.sh PIDFILE
# PIDFILE is the file that hms-start.sh names on its standard error.
set -eu
run=$(cd "$(dirname "$1")" && pwd)
pid=$(cat "$1")
if [ -n "$pid" ] && kill "$pid" 2>/dev/null; then
    tries=0
    while kill -0 "$pid" 2>/dev/null; do
        tries=$((tries + 1))
        [ $tries -ne 100 ] || kill -9 "$pid" 2>/dev/null || true
        sleep 0.1
    done
fi
if [ -e "$run/pg/data/postmaster.pid" ]; then
    bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    cd /
    if [ "$(id -u)" = 0 ]; then
        runuser -u postgres -- "$bin/pg_ctl" -D "$run/pg/data" -m fast -w stop >/dev/null
    else
        "$bin/pg_ctl" -D "$run/pg/data" -m fast -w stop >/dev/null
    fi
fi
