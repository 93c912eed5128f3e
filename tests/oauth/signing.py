"""Keys of other parties, and tokens signed with them."""

import json
from collections.abc import Mapping
from typing import Any

from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat, PublicFormat
from jose import jwk, jwt


class Signer:
    """A key pair and its id."""

    def __init__(self, kid: str = "k1", algorithm: str = "ES256") -> None:
        self.kid = kid
        self.algorithm = algorithm
        key = (
            ec.generate_private_key(ec.SECP256R1())
            if algorithm == "ES256"
            else rsa.generate_private_key(public_exponent=65537, key_size=2048)
        )
        self._pem = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()).decode("ascii")
        self.public_pem = key.public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)

    @property
    def public(self) -> dict[str, Any]:
        """The public key as JWK."""
        found = jwk.construct(self.public_pem.decode("ascii"), self.algorithm).to_dict()
        named = {name: value.decode() if isinstance(value, bytes) else value for name, value in found.items()}
        return {**named, "kid": self.kid, "use": "sig"}

    def key_set(self) -> dict[str, Any]:
        """The set of its one key."""
        return {"keys": [self.public]}

    def sign(self, claims: Mapping[str, Any], **header: Any) -> str:
        """A signed token; the header holds `kid` and what is given."""
        return jwt.encode(
            json.loads(json.dumps(claims)), self._pem, algorithm=self.algorithm, headers={"kid": self.kid, **header}
        )
