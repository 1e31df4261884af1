#!/bin/sh
# Makes what the peer metastore needs: hms-setup.sh DIR
# DIR/jars is a link to the jars of the pyspark wheel, DIR/classes the compiled Java of this folder, DIR/hms.thrift the
# IDL read out of the jars and, where there is a Thrift compiler, DIR/gen the Python client made from it. What is there
# already is left. Nothing is downloaded: without a JDK or pyspark it says what is missing and ends with status 3.
#   PYTHON        a Python that has pyspark; default the project's environment
#   PYSPARK_JARS  the folder of jars itself
set -eu
here=$(cd "$(dirname "$0")" && pwd)
mkdir -p "$1"
dir=$(cd "$1" && pwd)

missing() {
    echo "$1" >&2
    exit 3
}

command -v java >/dev/null && command -v javac >/dev/null || missing "no JDK (commands java and javac)"
if ! ls "$dir"/jars/hive-metastore-2.3.*.jar >/dev/null 2>&1; then
    jars=${PYSPARK_JARS:-}
    for python in "${PYTHON:-}" "$here/../../.venv/bin/python" python3; do
        [ -z "$jars" ] && [ -n "$python" ] || continue
        jars=$("$python" -c 'import os, pyspark; print(os.path.join(os.path.dirname(pyspark.__file__), "jars"))' 2>/dev/null) || jars=
    done
    ls "$jars"/hive-metastore-2.3.*.jar >/dev/null 2>&1 || missing "no jars of Hive 2.3 (pip install 'hms-gateway[pipeline]', or PYSPARK_JARS)"
    ln -sfn "$jars" "$dir/jars"
fi
if [ ! -e "$dir/classes/HmsPeer.class" ] || [ -n "$(find "$here" -name '*.java' -newer "$dir/classes/HmsPeer.class")" ]; then
    mkdir -p "$dir/classes"
    javac -nowarn -d "$dir/classes" -cp "$dir/jars/*" "$here"/*.java
fi
if [ ! -s "$dir/hms.thrift" ] || [ "$here/JarIdl.java" -nt "$dir/hms.thrift" ]; then
    java -cp "$dir/classes:$dir/jars/*" JarIdl >"$dir/hms.thrift"
fi
if command -v thrift >/dev/null && [ ! "$dir/gen/hms_peer/ThriftHiveMetastore.py" -nt "$dir/hms.thrift" ]; then
    mkdir -p "$dir/gen"
    thrift --gen py -out "$dir/gen" "$dir/hms.thrift"
fi
