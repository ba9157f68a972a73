# One image for every role: the coordinator is `rejoin serve`, consumers are `rejoin consume`.
FROM python:3.11-slim

WORKDIR /rejoin
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

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
RUN pip install --no-cache-dir --constraint constraints.txt setuptools \
 && pip install --no-cache-dir --no-build-isolation --constraint constraints.txt ".[fast,postgres,security]" \
 && useradd --create-home rejoin \
 && mkdir /journal && chown rejoin /journal
USER rejoin

EXPOSE 9092 9095
# Inside a container every address is needed. Who reaches it is up to the ports that are published.
CMD ["rejoin", "serve", "--host", "0.0.0.0", "--insecure"]
