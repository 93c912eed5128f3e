"""How clients are connected: entries to copy, with a reference in place of the secret."""

from html import escape

from app.client_configurations import TOKEN_VARIABLE, ClientConfiguration, client_configurations, endpoint, entry_name


def connecting(origin: str | None, vault_name: str) -> str:
    """Markup of the entries.

    Args:
        origin: Public origin of the server.
    """
    if origin is None:
        return (
            "<p>The address under which clients reach this server is not known. Set <code>PUBLIC_URL</code> to see "
            "ready entries here.</p>"
        )
    shown = client_configurations(endpoint(origin), entry_name(vault_name))
    entries = "\n".join(map(_entry, shown))
    return (
        f"<p>Entries refer to <code>{TOKEN_VARIABLE}</code>: a named token, which "
        f"<code>vault-mcp token create LABEL</code> prints once.</p>\n{entries}"
    )


def _entry(configuration: ClientConfiguration) -> str:
    name = f"client-{escape(configuration.client)}"
    return (
        f'<details class="entry"><summary id="{name}">{escape(configuration.title)}</summary>'
        f'<pre tabindex="0" aria-labelledby="{name}">{escape(configuration.text)}</pre></details>'
    )
