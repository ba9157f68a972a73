# One image for every role: the coordinator is `python -m coordinator`, consumers are `python -m client`.
FROM python:3.11-slim

WORKDIR /rejoin
ENV PYTHONUNBUFFERED=1 PYTHONDONTWRITEBYTECODE=1

COPY constraints.txt pyproject.toml README.md ./
COPY protocol ./protocol
COPY coordinator ./coordinator
COPY client ./client
RUN pip install --no-cache-dir --constraint constraints.txt setuptools \
 && pip install --no-cache-dir --no-build-isolation --constraint constraints.txt ".[fast,postgres]" \
 && useradd --create-home rejoin \
 && mkdir /journal && chown rejoin /journal
USER rejoin

EXPOSE 9095
CMD ["python", "-m", "coordinator", "--host", "0.0.0.0"]
