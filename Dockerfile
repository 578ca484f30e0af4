# The job service. Its own job types, SQLite in /data:
#   docker build -t jobpipe .
#   docker run -p 127.0.0.1:8080:8080 -e JOBPIPE_TOKEN=… -v jobs:/data jobpipe
# With a program of yours:
#   FROM jobpipe
#   COPY app.py ./
#   CMD ["serve", "app:pipe"]
FROM python:3.13-slim AS build
WORKDIR /src
COPY pyproject.toml README.md LICENSE ./
COPY src ./src
RUN python -m venv /opt/jobpipe && /opt/jobpipe/bin/pip install --no-cache-dir '.[service,postgres,redis]'

FROM python:3.13-slim
RUN useradd --uid 10001 --user-group --no-create-home jobpipe && install -d -o jobpipe -g jobpipe /data
COPY --from=build /opt/jobpipe /opt/jobpipe
ENV PATH=/opt/jobpipe/bin:$PATH PYTHONDONTWRITEBYTECODE=1 PYTHONUNBUFFERED=1 \
    JOBPIPE_HOST=0.0.0.0 JOBPIPE_PORT=8080 JOBPIPE_STORE=sqlite:////data/jobpipe.db
WORKDIR /app
VOLUME ["/data"]
EXPOSE 8080
# Why a number: Kubernetes cannot tell of a name whether it is root.
USER 10001:10001
# Why /livez: what is alive and has lost its store is not helped by a restart. A worker has no port: it is told --no-healthcheck.
HEALTHCHECK --interval=30s --timeout=5s --start-period=20s \
    CMD ["python", "-c", "import os, urllib.request; urllib.request.urlopen('http://127.0.0.1:%s/livez' % os.environ['JOBPIPE_PORT'], timeout=4)"]
# Why no shell in between: it would not pass SIGTERM on. The supervisor takes care of orphans as process 1.
ENTRYPOINT ["jobpipe"]
CMD ["serve"]
