# The harness as an image: `docker build -t harness .`, then `docker run harness --help`.
# As a base for CI jobs that bring a shell of their own, clear the entry point: `docker run --entrypoint sh harness -c …`.
# What takes Locust's arguments and nothing else (Locust's Kubernetes operator): `docker build --target locust .`.

FROM python:3.13.1-slim-bookworm AS build
WORKDIR /src
# The build backend comes from the hashed development lock, so nothing is installed that was not pinned.
COPY requirements-dev.lock ./
RUN python -m venv /opt/build \
 && /opt/build/bin/pip install --no-cache-dir --require-hashes -r requirements-dev.lock
COPY requirements.lock ./
RUN python -m venv /opt/harness \
 && /opt/harness/bin/pip install --no-cache-dir --require-hashes -r requirements.lock
COPY pyproject.toml LICENSE CHANGELOG.md locustfile.py ./
COPY harness harness
RUN /opt/build/bin/pip wheel --no-deps --no-build-isolation --wheel-dir /tmp/wheel . \
 && /opt/harness/bin/pip install --no-deps /tmp/wheel/*.whl

FROM python:3.13.1-slim-bookworm AS runtime
# A number, so that Kubernetes can tell that it is not root.
RUN useradd --uid 10001 --create-home harness \
 && mkdir /results && chown harness:harness /results
COPY --from=build /opt/harness /opt/harness
ENV PATH=/opt/harness/bin:$PATH \
    PYTHONUNBUFFERED=1
USER 10001
WORKDIR /home/harness
VOLUME /results
# Locust's web UI, its workers, the metrics, the simulated gateway.
EXPOSE 8089 5557 9646 8000

FROM runtime AS locust
ENTRYPOINT ["harness", "run"]

FROM runtime
ENTRYPOINT ["harness"]
CMD ["--help"]
