"""The libraries that live in this process."""

from typing import Final

from tests.real_clients.aio_kafka import AioKafka
from tests.real_clients.client import Client
from tests.real_clients.confluent import Confluent
from tests.real_clients.kafka_python import KafkaPython

LIBRARIES: Final[tuple[type[Client], ...]] = (AioKafka, Confluent, KafkaPython)
