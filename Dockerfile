# hms-gateway in a container: docker build -t hms-gateway . && docker run -p 30443:30443 -v hms-data:/data hms-gateway

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
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /wheels . \
    && /opt/hms-gateway/bin/pip install --no-deps /wheels/*.whl


FROM python:3.13-slim
RUN useradd --system --uid 10001 --home-dir /data --shell /usr/sbin/nologin hms \
    && install -d -o hms -g hms -m 0750 /data
COPY --from=build /opt/hms-gateway /opt/hms-gateway
ENV PATH=/opt/hms-gateway/bin:$PATH PYTHONUNBUFFERED=1

USER hms
WORKDIR /data
# Embedded database, certificate and password file. With PostgreSQL only the last two.
VOLUME /data
EXPOSE 30443

# Alive means answering; whether the database is reachable is /readyz, which must not get a container restarted.
# The certificate may be self-signed and this never leaves the container, so it is not verified.
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 CMD ["python", "-c", \
    "import ssl, urllib.request as r; r.urlopen('https://127.0.0.1:30443/healthz', timeout=2, context=ssl._create_unverified_context())"]

ENTRYPOINT ["hms-gateway"]
CMD ["serve", "--host", "0.0.0.0", "--port", "30443", "--data-dir", "/data"]
