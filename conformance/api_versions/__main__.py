"""``python -m conformance.api_versions [--record]``: writes docs/api-versions.md, from a new recording if wanted."""

from __future__ import annotations

import argparse

from conformance.api_versions.page import PAGE, ROOT, page, table
from conformance.api_versions.record import GOLDEN, record


def main() -> None:
    """Record if wanted, write the page, and print its count."""
    parser = argparse.ArgumentParser(prog="python -m conformance.api_versions", description=__doc__)
    parser.add_argument("--record", action="store_true", help="ask real brokers anew; wants Maven and a JDK")
    if parser.parse_args().record:
        record()
        print(f"written: {GOLDEN.relative_to(ROOT)}")
    PAGE.write_text(page(), encoding="utf-8")
    print(f"written: {PAGE.relative_to(ROOT)}\n{table().splitlines()[0]}")


if __name__ == "__main__":
    main()
