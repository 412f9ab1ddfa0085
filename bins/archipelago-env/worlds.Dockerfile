# The environment with what the MCP servers of worlds need: Python with uv, Node, office tools, a C compiler.
#
# Build arguments choose, each `yes` or `no`; the first image has to be there:
#   docker build -f bins/archipelago-env/Dockerfile -t archipelago-env .
#   docker build -f bins/archipelago-env/worlds.Dockerfile -t archipelago-env-worlds --build-arg OFFICE=no .
#
# Servers come in by a third image, or by a read-only mount, at /app/mcp_servers (see docs/docker.md).

ARG ENVIRONMENT_IMAGE=archipelago-env
FROM ${ENVIRONMENT_IMAGE}
ARG PYTHON=yes
ARG NODE=yes
ARG OFFICE=yes
ARG COMPILER=no
LABEL org.opencontainers.image.title="archipelago-env-worlds" \
    org.opencontainers.image.description="The environment with Python, Node and office tools for the servers of worlds" \
    archipelago.image="worlds"
USER root
RUN packages="ca-certificates curl git procps util-linux" \
    && if [ "$PYTHON" = yes ]; then packages="$packages python3 python3-venv python3-pip"; fi \
    && if [ "$NODE" = yes ]; then packages="$packages nodejs npm"; fi \
    && if [ "$OFFICE" = yes ]; then packages="$packages libreoffice-calc-nogui libreoffice-writer-nogui \
        libreoffice-impress-nogui poppler-utils fonts-dejavu-core fonts-liberation"; fi \
    && if [ "$COMPILER" = yes ]; then packages="$packages gcc libc6-dev"; fi \
    && apt-get update \
    && apt-get install --yes --no-install-recommends $packages \
    && rm -rf /var/lib/apt/lists/*
# uv in an environment of its own; its cache and the Pythons that it fetches lie where every user may read them.
ENV UV_CACHE_DIR=/tmp/uv-cache UV_PYTHON_INSTALL_DIR=/opt/uv/python UV_LINK_MODE=copy
RUN if [ "$PYTHON" = yes ]; then \
        python3 -m venv /opt/uv \
        && /opt/uv/bin/pip install --no-cache-dir --disable-pip-version-check uv \
        && ln -s /opt/uv/bin/uv /opt/uv/bin/uvx /usr/local/bin/ \
        && ln -sf /usr/bin/python3 /usr/local/bin/python \
        && mkdir -p /etc/uv && echo 'cache-dir = "/tmp/uv-cache"' >/etc/uv/uv.toml; \
    fi
USER 10001:10001
