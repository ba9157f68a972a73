"""The cluster that commands of the client ask where none is named."""

from typing import Final

DEFAULT_SERVER: Final = "http://127.0.0.1:9095"
