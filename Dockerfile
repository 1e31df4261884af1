# hms-gateway in a container:
#   docker build -t hms-gateway . && docker run --stop-timeout 40 -p 30443:30443 -v hms-data:/data hms-gateway
# Docker kills after 10 seconds what stops; calls in flight have 30 (HMS_GATEWAY_LIMITS__DRAIN_SECONDS_MAX).
# deploy/helm has it for Kubernetes.

FROM python:3.13-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1 PIP_ROOT_USER_ACTION=ignore
WORKDIR /source

# The build backend stays in an environment of its own; the image gets run time packages only.
COPY requirements requirements
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --require-hashes -r requirements/build.txt \
    && python -m venv /opt/hms-gateway \
    && /opt/hms-gateway/bin/pip install --require-hashes -r requirements/runtime.txt

COPY pyproject.toml README.md LICENSE ./
COPY schema schema
COPY app app
# Of pyproject.toml, such as --build-arg EXTRAS=mysql,s3. Their packages are not locked; ldap and kerberos need a compiler
# here and libraries of the system in the image.
ARG EXTRAS=
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/hms-gateway/bin/pip install --no-deps /wheels/*.whl \
    && if [ -n "$EXTRAS" ]; then /opt/hms-gateway/bin/pip install "$(echo /wheels/*.whl)[$EXTRAS]"; fi


FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin hms \
    && install -d -o hms -g hms -m 0750 /data /warehouse
COPY --from=build /opt/hms-gateway /opt/hms-gateway
ENV PATH=/opt/hms-gateway/bin:$PATH PYTHONUNBUFFERED=1
# Variables, so that every command in the container and the health check know them too.
ENV HMS_GATEWAY_HOST=0.0.0.0 HMS_GATEWAY_PORT=30443 HMS_GATEWAY_DATA_DIR=/data

# A number, as Kubernetes wants it for runAsNonRoot.
USER 10001
WORKDIR /data
# Embedded database, certificate and password file. With PostgreSQL only the last two. /warehouse is for a volume that other
# containers share (HMS_GATEWAY_WAREHOUSE_DIR=file:/warehouse).
VOLUME /data
# HTTPS, and Thrift over TCP where HMS_GATEWAY_THRIFT_PORT is set.
EXPOSE 30443 9083

# Alive means answering; whether the database is reachable is /readyz, which must not get a container restarted.
# The certificate may be self-signed and this never leaves the container, so it is not verified.
HEALTHCHECK --interval=10s --timeout=5s --start-period=10s --retries=3 CMD ["python", "-c", "\
import os, pathlib, ssl, urllib.request as r; \
from hms_gateway.runtime.settings_reading import load_settings; \
config = os.environ.get('HMS_GATEWAY_CONFIG'); \
s = load_settings(config and pathlib.Path(config)); \
r.urlopen('http%s://127.0.0.1:%d/healthz' % ('s' * s.tls, s.port), timeout=2, context=ssl._create_unverified_context())"]

ENTRYPOINT ["hms-gateway"]
CMD ["serve"]
