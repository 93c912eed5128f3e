"""Forgetting what nobody can use any more: at start, every hour, before a client registers (auth §5.10)."""

import logging

from app.auth.database import AuthDatabase
from app.auth.oauth.clients import sweep_clients
from app.auth.oauth.config import OAuthConfig
from app.auth.oauth.grants import sweep_grants
from app.auth.oauth.requests import sweep_requests

logger = logging.getLogger(__name__)


def sweep(database: AuthDatabase, config: OAuthConfig, now: float) -> int:
    """Delete rows past their time and clients that nobody uses; answers how many clients those were."""
    with database.write() as connection:
        sweep_requests(connection, now)
        sweep_grants(connection, now)
        swept = sweep_clients(connection, now, unused_seconds=config.unused_client_seconds, at_most=config.max_clients)
    if swept:
        logger.info("oauth_clients_swept", extra={"clients": swept})
    return swept
