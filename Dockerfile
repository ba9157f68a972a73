# One image for every role: the coordinator is `rejoin serve`, consumers are `rejoin consume`.
FROM python:3.11-slim AS build

WORKDIR /source
COPY constraints.txt pyproject.toml README.md LICENSE ./
# src/rejoin has links to these folders.
COPY src ./src
COPY protocol ./protocol
COPY journal ./journal
COPY pages ./pages
COPY transcript ./transcript
COPY coordinator ./coordinator
COPY client ./client
COPY simulation ./simulation
COPY pipeline ./pipeline
COPY demo ./demo
COPY conform ./conform
COPY proxy ./proxy
RUN python -m venv /opt/rejoin \
 && /opt/rejoin/bin/pip install --no-cache-dir --constraint constraints.txt setuptools \
 && /opt/rejoin/bin/pip install --no-cache-dir --no-build-isolation --constraint constraints.txt ".[fast,postgres,security]" \
 && /opt/rejoin/bin/pip uninstall --yes setuptools pip

FROM python:3.11-slim

ENV PATH=/opt/rejoin/bin:$PATH PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1
COPY --from=build /opt/rejoin /opt/rejoin
RUN useradd --uid 10001 --create-home rejoin && mkdir /journal && chown rejoin /journal
USER 10001
WORKDIR /home/rejoin

EXPOSE 9092 9095
HEALTHCHECK --interval=2s --timeout=3s --start-period=5s --retries=15 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:9095/readyz', timeout=2)"]
# Inside a container every address is needed. Who reaches it is up to the ports that are published.
CMD ["rejoin", "serve", "--host", "0.0.0.0", "--insecure"]
