"""Users and tokens: what is read, who is let in, and that no error shows a secret."""

from __future__ import annotations

import io
import json
import sys
import time
from pathlib import Path
from typing import Any

import jwt
import pytest
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from jwt.algorithms import ECAlgorithm, RSAAlgorithm
from pydantic import SecretStr

from rejoin.__main__ import main
from rejoin.coordinator.config import Settings, WrongSetting, settings_from
from rejoin.coordinator.service.security.logins import Logins
from rejoin.coordinator.service.security.tokens import Tokens
from rejoin.coordinator.service.security.users import Users, users_from
from rejoin.protocol.sasl.scram import ScramCredential

SECRET = "tr0ub4dor"
RSA = rsa.generate_private_key(65_537, 2_048)
EC = ec.generate_private_key(ec.SECP256R1())
FOREIGN = ec.generate_private_key(ec.SECP256R1())


def users(text: str) -> Users:
    return users_from(Settings(emulator_users=SecretStr(text)))


def test_a_password_serves_every_mechanism() -> None:
    found = users(f"alice: {SECRET}")
    assert found.verify("alice", SECRET)
    assert not found.verify("alice", "other")
    assert not found.verify("bob", "")
    keys = found.credential("SCRAM-SHA-512", "alice")
    assert keys is not None
    assert keys.is_of("SCRAM-SHA-512", SECRET)
    assert found.credential("SCRAM-SHA-512", "alice") is keys
    assert found.credential("SCRAM-SHA-512", "bob") is None


def test_keys_serve_their_own_mechanism_and_passwords(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{SECRET}\n"))
    with pytest.raises(SystemExit) as ended:
        main(["credentials", "alice"])
    assert ended.value.code == 0
    file = tmp_path / "users.yaml"
    file.write_text(capsys.readouterr().out)
    assert SECRET not in file.read_text()
    found = users_from(Settings(emulator_users_file=str(file)))
    for _ in range(2):
        assert found.verify("alice", SECRET)
        assert not found.verify("alice", "other")
    for mechanism in ("SCRAM-SHA-256", "SCRAM-SHA-512"):
        keys = found.credential(mechanism, "alice")
        assert keys is not None
        assert keys.is_of(mechanism, SECRET)
        assert SECRET not in str(keys)
        assert ScramCredential.parse(str(keys)) == keys


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        (f"- {SECRET}", "expected lines with NAME: and a password"),
        (f"alice: [{SECRET}", ", line 1: not YAML"),
        (f"1: {SECRET}", "user 1: expected a name"),
        ("alice: 12345", "user alice: expected a password, or keys"),
        ("alice:", "user alice: expected a password, or keys"),
        (f"alice: {{password: {SECRET}}}", "user alice: expected a password, or keys"),
        (f"alice: {{SCRAM-SHA-256: {SECRET}}}", "SCRAM-SHA-256: expected salt=BASE64"),
        ("alice: {SCRAM-SHA-256: 'salt=YQ==,stored_key=YQ==,server_key=YQ==,iterations=1'}", "expected 4096 to 16384"),
    ],
)
def test_a_mistake_is_said_without_showing_a_secret(text: str, problem: str) -> None:
    with pytest.raises(ValueError, match=r"REJOIN_EMULATOR_USERS in the environment") as raised:
        users(text)
    assert problem in str(raised.value)
    assert SECRET not in str(raised.value)


def test_secrets_come_from_the_environment_only() -> None:
    with pytest.raises(WrongSetting, match=r"expected in the environment, as REJOIN_EMULATOR_USERS") as raised:
        settings_from([f"emulator.users=alice: {SECRET}"], {})
    assert SECRET not in str(raised.value)
    settings = settings_from([], {"REJOIN_EMULATOR_USERS": f"alice: {SECRET}", "REJOIN_SSL_KEY_PASSWORD": SECRET})
    assert users_from(settings).verify("alice", SECRET)
    assert SECRET not in repr(settings)
    assert SECRET not in settings.model_dump_json()


@pytest.mark.parametrize(
    ("settings", "problem"),
    [
        ({}, "no client could log in"),
        ({"emulator_users_file": "none.yaml"}, "--users-file none.yaml: No such file"),
        ({"sasl_enabled_mechanisms": "PLAIN"}, "PLAIN: expected users"),
        ({"sasl_enabled_mechanisms": "GSSAPI"}, "GSSAPI: expected some of PLAIN"),
        ({"emulator_users": "a: b", "sasl_enabled_mechanisms": "OAUTHBEARER"}, "expected sasl.oauthbearer.jwks"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "https://example.org/keys"}, "expected the URL of a file"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "file:///none.json"}, "No such file"),
        ({"sasl_oauthbearer_jwks_endpoint_url": "file:/dev/null"}, "expected a JWK set"),
    ],
)
def test_logins_that_cannot_be_used_are_refused(settings: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=r".") as raised:
        Logins(Settings.model_validate(settings))
    assert problem in str(raised.value)


@pytest.fixture(scope="module")
def jwks(tmp_path_factory: pytest.TempPathFactory) -> str:
    keys = [
        {**RSAAlgorithm.to_jwk(RSA.public_key(), as_dict=True), "kid": "one", "alg": "RS256"},
        {**ECAlgorithm.to_jwk(EC.public_key(), as_dict=True), "kid": "two", "alg": "ES256"},
    ]
    file = tmp_path_factory.mktemp("keys") / "jwks.json"
    file.write_text(json.dumps({"keys": keys}))
    return file.as_uri()


def claims(**more: Any) -> dict[str, Any]:
    return {"sub": "alice", "iat": time.time() - 10, "exp": time.time() + 600, **more}


def signed(key: Any, algorithm: str, key_id: str | None = None, **more: Any) -> str:
    return jwt.encode(claims(**more), key, algorithm, headers={"kid": key_id} if key_id else None)


def test_tokens_are_valid_with_a_signature_of_a_known_key(jwks: str) -> None:
    tokens = Tokens(Settings(sasl_oauthbearer_jwks_endpoint_url=jwks))
    for good in (signed(RSA, "RS256", "one"), signed(EC, "ES256", "two"), signed(EC, "ES256")):
        found = tokens.validate(good)
        assert found is not None
        assert found.name == "alice"
        assert found.expires_at > time.time() * 1_000
    for bad in (
        signed(FOREIGN, "ES256", "two"),
        signed(EC, "ES256", "one"),
        signed(EC, "ES256", "two", exp=time.time() - 60),
        signed(EC, "ES256", "two", iat=time.time() + 60),
        signed(EC, "ES256", "two", sub=""),
        signed(EC, "ES256", "two", sub=7),
        jwt.encode(claims(), "", "none"),
        jwt.encode(claims(), "x" * 32, "HS256", headers={"kid": "one"}),
        "a.b.c",
        "",
        "ü",
        signed(EC, "ES256", "two").partition(".")[0] + ".\udcff.x",
    ):
        assert tokens.validate(bad) is None, bad


def test_audience_issuer_and_name_are_as_the_settings_want(jwks: str) -> None:
    settings = Settings(
        sasl_oauthbearer_jwks_endpoint_url=jwks,
        sasl_oauthbearer_expected_audience="orders, shop",
        sasl_oauthbearer_expected_issuer="https://login.example",
        sasl_oauthbearer_sub_claim_name="user",
    )
    good: dict[str, Any] = {"aud": ["shop"], "iss": "https://login.example", "user": "bob"}
    found = Tokens(settings).validate(signed(EC, "ES256", **good))
    assert found is not None
    assert found.name == "bob"
    changes: tuple[dict[str, Any], ...] = ({"aud": "other"}, {"iss": "https://other.example"}, {"user": None})
    for change in changes:
        assert Tokens(settings).validate(signed(EC, "ES256", **{**good, **change})) is None


def test_unsecured_tokens_are_accepted_only_by_name() -> None:
    token = jwt.encode(claims(), "", "none")
    assert Tokens(Settings()).validate(token) is None
    found = Tokens(Settings(emulator_oauthbearer_unsecured=True)).validate(token)
    assert found is not None
    assert found.name == "alice"
    assert Tokens(Settings(emulator_oauthbearer_unsecured=True)).validate(f"{token}c2ln") is None
