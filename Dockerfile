# tablesafe in a container, as a user without rights:
#   docker build -t tablesafe .
#   docker run --rm -v "$PWD:/data" -u "$(id -u):$(id -g)" tablesafe run job.toml
#   docker run --rm -v "$PWD:/data" -p 127.0.0.1:8080:8080 tablesafe serve /data --no-browser --host 0.0.0.0 --allow-remote --port 8080 --known-as localhost:8080
FROM python:3.13-slim AS build
WORKDIR /build
COPY pyproject.toml constraints.txt README.md LICENSE ./
COPY src src
RUN python -m venv /opt/tablesafe \
    && /opt/tablesafe/bin/pip install --no-cache-dir --disable-pip-version-check --constraint constraints.txt '.[excel,plots,web]'

FROM python:3.13-slim
RUN useradd --create-home --uid 1000 office && mkdir /data /cache && chmod 1777 /cache && chown office /data
COPY --from=build /opt/tablesafe /opt/tablesafe
ENV PATH=/opt/tablesafe/bin:$PATH NUMBA_CACHE_DIR=/cache MPLCONFIGDIR=/cache PYTHONDONTWRITEBYTECODE=1
USER office
WORKDIR /data
EXPOSE 8080
ENTRYPOINT ["tablesafe"]
CMD ["--help"]
