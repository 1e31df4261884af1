#!/bin/sh
# Starts the peer metastore: hms-start.sh derby|postgres|JDBC_URL PORT [HTTP_PORT]
# Prints its pid once PORT answers. HTTP_PORT is the same server behind HTTP POST with TJSONProtocol.
# What it is made of lies under $PEER_DIR (default: hms-peer in the temporary folder); the instance, with its
# pid, log and database, in $HMS_RUN (default: $PEER_DIR/run/BACKEND-PORT), made afresh unless HMS_KEEP=1.
#   HMS_HEAP      heap, default 2g             HMS_LOG    log level, default WARN
#   HMS_NOTIFY=1  keep a notification log      HMS_TLS=1  HTTPS on HTTP_PORT, self-signed
#   HMS_PG_PORT   PostgreSQL's port, default a free one
#   HMS_PG_DRIVER its JDBC driver, default that of Debian's libpostgresql-jdbc-java
#   HMS_CONF      more settings, one 'name=value' a line
# A database at a JDBC_URL is there already, with its tables, and stays as it is:
#   HMS_DB_USER   its user, whose password is hive      HMS_DB_DRIVER  class and jar of its driver, as 'class=jar'
#   PYTHON        any Python, default python3
set -eu
here=$(cd "$(dirname "$0")" && pwd)
backend=$1
port=$2
http=${3:-}
PEER_DIR=${PEER_DIR:-${TMPDIR:-/tmp}/hms-peer}
sh "$here/hms-setup.sh" "$PEER_DIR"
PEER_DIR=$(cd "$PEER_DIR" && pwd)
run=${HMS_RUN:-$PEER_DIR/run/${backend%%:*}-$port}
python=${PYTHON:-python3}

answers() { # whether somebody listens on a port, now or within so many seconds
    "$python" -IS -c '
import socket, sys, time
port, end = int(sys.argv[1]), time.monotonic() + int(sys.argv[2])
while socket.socket().connect_ex(("127.0.0.1", port)):
    if time.monotonic() >= end:
        sys.exit(1)
    time.sleep(0.1)
' "$1" "$2" 2>/dev/null
}
alone() { # runs a command as the account that PostgreSQL wants
    if [ "$(id -u)" = 0 ]; then (cd / && runuser -u postgres -- "$@"); else "$@"; fi
}
property() {
    printf '<property><name>%s</name><value>%s</value></property>\n' "$1" "$(printf %s "$2" | sed 's/&/\&amp;/g;s/</\&lt;/g')"
}

if answers "$port" 0; then echo "port $port is taken" >&2; exit 1; fi
if [ "${HMS_KEEP:-0}" != 1 ] && [ -e "$run/pid" ]; then rm -rf "$run"; fi
mkdir -p "$run/conf" "$run/warehouse"
: >"$run/pid"

creates=true
case $backend in
jdbc:*)
    url=$backend
    driver=${HMS_DB_DRIVER%%=*}
    user=$HMS_DB_USER
    creates=false
    extra=:${HMS_DB_DRIVER#*=} ;;
derby)
    url="jdbc:derby:;databaseName=$run/db;create=true"
    driver=org.apache.derby.jdbc.EmbeddedDriver
    user=APP
    extra= ;;
postgres)
    bin=$(ls -d /usr/lib/postgresql/*/bin | sort -V | tail -n 1)
    pgport=${HMS_PG_PORT:-$("$python" -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])')}
    new=0
    if [ ! -e "$run/pg/data/PG_VERSION" ]; then
        new=1
        mkdir -p "$run/pg"
        [ "$(id -u)" != 0 ] || chown postgres "$run/pg"
        alone "$bin/initdb" -D "$run/pg/data" -U hive -A trust -E UTF8 --locale=C >"$run/initdb.log" 2>&1
    fi
    alone "$bin/pg_ctl" -D "$run/pg/data" -l "$run/pg/log" -w \
        -o "-p $pgport -c listen_addresses=127.0.0.1 -c unix_socket_directories=$run/pg -c max_connections=200" start >"$run/pg_ctl.log" 2>&1
    [ $new = 0 ] || alone "$bin/createdb" -h 127.0.0.1 -p "$pgport" -U hive metastore
    url="jdbc:postgresql://127.0.0.1:$pgport/metastore"
    driver=org.postgresql.Driver
    user=hive
    extra=:${HMS_PG_DRIVER:-/usr/share/java/postgresql.jar} ;;
*)
    echo "derby, postgres or a JDBC URL, not $backend" >&2; exit 2 ;;
esac

{
    echo '<?xml version="1.0"?>'
    echo '<configuration>'
    property javax.jdo.option.ConnectionURL "$url"
    property javax.jdo.option.ConnectionDriverName "$driver"
    property javax.jdo.option.ConnectionUserName "$user"
    property javax.jdo.option.ConnectionPassword hive
    property datanucleus.schema.autoCreateAll $creates
    property datanucleus.connectionPoolingType HikariCP
    property hive.metastore.schema.verification false
    property hive.metastore.warehouse.dir "file://$run/warehouse"
    property fs.defaultFS file:///
    property fs.file.impl PlainLocal
    property hive.warehouse.subdir.inherit.perms false
    property hive.async.log.enabled false
    property hive.support.concurrency true
    property hive.hmshandler.retry.interval 0ms
    property hive.txn.manager org.apache.hadoop.hive.ql.lockmgr.DbTxnManager
    if [ "${HMS_NOTIFY:-0}" = 1 ]; then property hive.metastore.transactional.event.listeners NotificationLog; fi
    printf '%s\n' "${HMS_CONF:-}" | while IFS='=' read -r name value; do
        [ -z "$name" ] || property "$name" "$value"
    done
    echo '</configuration>'
} >"$run/conf/hive-site.xml"
cat >"$run/conf/hive-log4j2.properties" <<EOF
status = error
appender.out.type = Console
appender.out.name = out
appender.out.layout.type = PatternLayout
appender.out.layout.pattern = %d %p [%t] %c: %m%n
rootLogger.level = ${HMS_LOG:-WARN}
rootLogger.appenderRef.out.ref = out
EOF

store=
if [ -n "$http" ] && [ "${HMS_TLS:-0}" = 1 ]; then
    store="$run/key.p12 peerpass"
    [ -e "$run/key.p12" ] || keytool -genkeypair -alias peer -keyalg RSA -keysize 2048 -validity 3650 -dname CN=localhost \
        -ext san=dns:localhost,ip:127.0.0.1 -storetype PKCS12 -keystore "$run/key.p12" -storepass peerpass >/dev/null 2>&1
fi

cd "$run"
opens=
for package in lang lang.invoke lang.reflect io net nio util util.concurrent util.concurrent.atomic; do
    opens="$opens --add-opens=java.base/java.$package=ALL-UNNAMED"
done
# shellcheck disable=SC2086
nohup java "-Xmx${HMS_HEAP:-2g}" $opens -Dsun.net.httpserver.nodelay=true -Dderby.stream.error.file="$run/derby.log" \
    ${HMS_JAVA_OPTS:-} -cp "$PEER_DIR/classes:$run/conf:$PEER_DIR/jars/*$extra" HmsPeer "$port" $http $store \
    </dev/null >"$run/log" 2>&1 &
pid=$!
echo "$pid" >"$run/pid"
tries=0
until answers "$port" 2; do
    tries=$((tries + 1))
    if ! kill -0 "$pid" 2>/dev/null || [ $tries -gt 60 ]; then
        echo "the metastore did not start; see $run/log" >&2
        sh "$here/hms-stop.sh" "$run/pid"
        exit 1
    fi
done
echo "$run/pid" >&2
echo "$pid"
