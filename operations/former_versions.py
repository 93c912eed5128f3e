"""Former versions of files, as far as the journal still holds them.

Source: safety-and-automation.md §1.
"""

from operations.access import require_visible
from operations.caller import Caller
from operations.errors import ErrorCode, VaultError
from operations.store.paths import VaultPath
from operations.store.tree import FileState, StoredFile
from operations.vault import Vault


def former_version(vault: Vault, caller: Caller, path: VaultPath, version: str) -> StoredFile:
    """The bytes that the file at `path`, which may be gone by now, had at a version.

    Raises:
        VaultError: `not_found` for a version that was never there, that the caller may not see or that is not kept any
            more.
    """
    require_visible(vault, caller, path)
    present = vault.tree.find(path)
    chunks = None
    if vault.journal.had_version(present.path if present is not None else path, version):
        chunks = vault.journal.chunks_of(version)
    if chunks is None:
        raise VaultError(ErrorCode.NOT_FOUND, f"no version {version} of '{path}' is kept")
    data = b"".join(chunks)
    state = present.state if present is not None else _stateless(len(data))
    return StoredFile(present.path if present is not None else path, data, state)


def _stateless(size: int) -> FileState:
    """The state of a file that is not there."""
    return FileState(device=0, inode=0, size=size, mtime_ns=0, ctime_ns=0, birth_ns=None, mode=0)
