# hms-gateway in a container:
#   make image && docker run --stop-timeout 40 -p 30443:30443 -v hms-data:/data hms-gateway
# Docker kills after 10 seconds what stops; calls in flight have 30 (HMS_GATEWAY_LIMITS__DRAIN_SECONDS_MAX).
# deploy/helm has it for Kubernetes.

# Debian 13 with Python; with a digest (python:3.13-slim@sha256:…) the same sources make the same layers.
ARG BASE=python:3.13-slim

FROM ${BASE} AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source

# PostgreSQL is built in, and iceberg, kerberos, mysql and s3; more extras of pyproject.toml by name, such as --build-arg EXTRAS=ldap,otel.
# requirements/ pins each with hashes.
ARG EXTRAS=
# gssapi, kerberos and bonsai have no wheels. They are compiled in folders of random names, which what debuggers read would have, and with it
# the id of a library; their wheels have the time of a file.
ENV CFLAGS=-g0 SOURCE_DATE_EPOCH=946684800
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev libkrb5-dev \
    $(case ",$EXTRAS," in *,ldap,*) echo libldap2-dev libsasl2-dev;; esac)
# What builds stays in an environment of its own.
COPY requirements requirements
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements/release.txt \
    && for set in runtime iceberg kerberos mysql s3 $(echo "$EXTRAS" | tr , ' '); do set -- "$@" -r "requirements/$set.txt"; done \
    && /opt/build/bin/pip wheel --require-hashes --no-deps --no-build-isolation --wheel-dir /wheels "$@"

COPY pyproject.toml README.md LICENSE ./
COPY schema schema
COPY app app
# Libraries lose what debuggers read (45 MB; not those of *.libs, which wheels have already changed), and botocore its services
# that s3fs does not call (26 MB). Modules are compiled here, since the program cannot write beside itself; by content, so that the
# image depends on no time of the build.
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && python -m venv --without-pip /opt/hms-gateway \
    && /opt/build/bin/pip --python /opt/hms-gateway/bin/python install --no-index --no-deps --no-compile /wheels/*.whl \
    && find /opt/hms-gateway/lib -name '*.so*' -type f ! -path '*.libs/*' -exec strip --strip-unneeded {} + \
    && find /opt/hms-gateway/lib/python*/site-packages/botocore/data -mindepth 1 -maxdepth 1 -type d \
        ! -name s3 ! -name sts ! -name 'sso*' ! -name signin -exec rm -r {} + \
    && /opt/hms-gateway/bin/python -m compileall -q --invalidation-mode unchecked-hash /opt/hms-gateway/lib \
    && /opt/build/bin/cyclonedx-py environment --output-reproducible --pyproject pyproject.toml \
        --output-file /opt/hms-gateway/sbom.cdx.json /opt/hms-gateway/bin/python


FROM ${BASE}
ARG EXTRAS=
# The time is in /etc/shadow.
RUN apt-get update && apt-get install -y --no-install-recommends libgssapi-krb5-2 \
    $(case ",$EXTRAS," in *,ldap,*) echo libldap2 libsasl2-2;; esac) \
    && rm -rf /var/lib/apt/lists/* /var/cache/* /var/log/* \
    && groupadd --system --gid 10001 hms \
    && SOURCE_DATE_EPOCH=0 useradd --system --uid 10001 --gid 10001 --home-dir /data --shell /usr/sbin/nologin hms \
    && install -d -o hms -g hms -m 0750 /data /warehouse
COPY --from=build /opt/hms-gateway /opt/hms-gateway
LABEL org.opencontainers.image.title=hms-gateway org.opencontainers.image.licenses=Apache-2.0 \
    org.opencontainers.image.description="A Hive Metastore over HTTPS"
ENV PATH=/opt/hms-gateway/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
# Variables, so that every command in the container and the health check know them too.
ENV HMS_GATEWAY_HOST=0.0.0.0 HMS_GATEWAY_PORT=30443 HMS_GATEWAY_DATA_DIR=/data

# Numbers, as Kubernetes wants them for runAsNonRoot.
USER 10001:10001
WORKDIR /data
# Embedded database, certificate and password file. With PostgreSQL only the last two. /warehouse is for a volume that other
# containers share (HMS_GATEWAY_WAREHOUSE_DIR=file:/warehouse).
VOLUME /data
# HTTPS, and Thrift over TCP where HMS_GATEWAY_THRIFT_PORT is set.
EXPOSE 30443 9083

# Alive means answering; whether the database is reachable is /readyz, which must not get a container restarted. It knows
# variables and the file of HMS_GATEWAY_CONFIG; for options of another command, such as bridge, give it the same ones:
# --health-cmd 'hms-gateway healthy --port 9084 --no-tls'.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["hms-gateway", "healthy"]

STOPSIGNAL SIGTERM
ENTRYPOINT ["hms-gateway"]
CMD ["serve"]
