"""Principals from the subjects of certificates, as Kafka and Java write them."""

from __future__ import annotations

import pytest

from rejoin.coordinator.service.security.principals import SslPrincipals, subject_name

ALICE = (
    (("countryName", "DE"),),
    (("organizationName", "Example, Inc."),),
    (("organizationalUnitName", "Shop"),),
    (("commonName", "Alice"),),
)


@pytest.mark.parametrize(
    ("subject", "name"),
    [
        (ALICE, r"CN=Alice,OU=Shop,O=Example\, Inc.,C=DE"),
        (((("commonName", "a"), ("userId", "u")),), "CN=a+UID=u"),
        (((("commonName", " a#b "),),), r"CN=\ a#b\ "),
        (((("emailAddress", "a@b"),),), "1.2.840.113549.1.9.1=#1603614062"),
    ],
)
def test_a_subject_is_written_with_its_last_part_first(subject: tuple, name: str) -> None:  # type: ignore[type-arg]
    assert subject_name(subject) == name


@pytest.mark.parametrize(
    ("rules", "principal"),
    [
        ("DEFAULT", r"User:CN=Alice,OU=Shop,O=Example\, Inc.,C=DE"),
        ("RULE:^CN=(.*?),.*$/$1/", "User:Alice"),
        ("RULE:^CN=(.*?),.*$/$1/L, DEFAULT", "User:alice"),
        ("RULE:^CN=(.*?),OU=(.*?),.*$/$1@$2/U", "User:ALICE@SHOP"),
        ("RULE:^CN=(Bob),.*$/$1/,RULE:^CN=(.*?),.*$/$1-$3$12/", "User:Alice-$3Alice2"),
        ("RULE:^CN=(Bob),.*$/$1/", None),
    ],
)
def test_the_first_rule_that_fits_gives_the_name(rules: str, principal: str | None) -> None:
    assert SslPrincipals(rules).principal({"subject": ALICE}) == principal


def test_without_a_certificate_a_client_is_anonymous() -> None:
    assert SslPrincipals("DEFAULT").principal({}) == SslPrincipals("DEFAULT").principal(None) == "User:ANONYMOUS"


@pytest.mark.parametrize("rules", ["CN=alice", "RULE:^CN=(/$1/", "RULE:a"])
def test_a_rule_with_a_mistake_is_refused(rules: str) -> None:
    with pytest.raises(ValueError, match=r"ssl\.principal\.mapping\.rules"):
        SslPrincipals(rules)
