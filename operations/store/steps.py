"""What a change consists of: steps that know what they take away, so that it can be kept before any of them is taken.

A step speaks of files whose locks the caller holds. `describe` says, from what stands there now, what the step will do;
`apply` does it, as one atomic step of the disk or file by file.

Source: safety-and-automation.md §1.
"""

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Final, Generic, TypeVar

from operations.errors import VaultError
from operations.store.journal_images import INLINE_BYTES
from operations.store.journal_records import FileRecord, Image
from operations.store.paths import FolderPath, ResolvedPath, VaultPath
from operations.store.trash import delete_permanently, move_to_trash, take_from_trash
from operations.store.tree import Entry, EntryKind, StoredFile, Tree, version_of
from operations.store.walk import walk
from operations.store.writes import ChangedMeanwhile, Upload, make_folders, remove_empty_folder, rename

T_co = TypeVar("T_co", covariant=True)

_PIECE_BYTES: Final = 256 * 1024

Over = Callable[[Sequence[Entry]], Iterable[Entry]]


@dataclass(frozen=True)
class Bytes:
    """Bytes in memory."""

    data: bytes = field(repr=False)

    @cached_property
    def version(self) -> str:
        """The version token."""
        return version_of(self.data)

    def image(self) -> Image | None:
        """The bytes for the journal, where they are few."""
        return Image(self.version, lambda: (self.data,), len(self.data)) if len(self.data) <= INLINE_BYTES else None

    @contextmanager
    def upload(self, tree: Tree, path: VaultPath) -> Generator[Upload]:
        """The bytes as a temporary file."""
        with Upload(tree, path) as upload:
            upload.write(self.data)
            yield upload


@dataclass(frozen=True)
class Received:
    """Bytes that stand in a temporary file already; whoever began the upload ends it."""

    received: Upload

    @property
    def version(self) -> str:
        """The version token."""
        return self.received.version

    def image(self) -> Image | None:
        """Nothing: an uploaded file is kept when it is taken away."""
        return None

    @contextmanager
    def upload(self, tree: Tree, path: VaultPath) -> Generator[Upload]:
        """The upload itself."""
        yield self.received


@dataclass(frozen=True)
class Kept:
    """Bytes that the journal holds."""

    version: str
    chunks: Callable[[], Iterator[bytes] | None]
    """`None` when they are held no longer."""

    def image(self) -> Image | None:
        """Nothing: it is there."""
        return None

    @contextmanager
    def upload(self, tree: Tree, path: VaultPath) -> Generator[Upload]:
        """The bytes as a temporary file."""
        chunks = self.chunks()
        if chunks is None:
            raise ChangedMeanwhile(path)
        with Upload(tree, path) as upload:
            for chunk in chunks:
                upload.write(chunk)
            yield upload


Content = Bytes | Received | Kept
"""Bytes that a file gets."""


class Plan:
    """What the steps of a change will have done, taken together."""

    def __init__(self, tree: Tree) -> None:
        self.tree = tree
        self.files: dict[str, FileRecord] = {}
        """By the path where a file stands afterwards."""
        self.folders_made: list[str] = []
        self.folders_removed: list[str] = []
        self.images: list[Image] = []

    @property
    def does_anything(self) -> bool:
        """Whether there is something to record."""
        return bool(self.files or self.folders_made or self.folders_removed)

    def makes_missing(self, folder: ResolvedPath) -> None:
        """Note the folders on the way to `folder` that are not there yet."""
        home, missing = self.tree.deepest_folder(folder)
        home.close()
        path = str(home.path)
        for segment in missing:
            path = f"{path}/{segment}" if path else segment
            if path not in self.folders_made:
                self.folders_made.append(path)

    def takes(self, entry: Entry, *, keeps_large: bool = True) -> str:
        """Note that a file goes, and keep its bytes; its version.

        Args:
            keeps_large: Off where a large file stays somewhere else.
        """
        version = version_at(self.tree, entry.path)
        if keeps_large or entry.state.size <= INLINE_BYTES:
            self.images.append(image_of(self.tree, entry, version))
        self.files[entry.path] = FileRecord(entry.path, version, None)
        return version


class Step(ABC, Generic[T_co]):
    """One part of a change."""

    @abstractmethod
    def describe(self, plan: Plan) -> None:
        """Add what this step will do to the plan."""

    @abstractmethod
    def apply(self, tree: Tree) -> T_co:
        """Do it.

        Raises:
            ChangedMeanwhile: What stands there is not what the step was made for.
            VaultError: as the functions of `store.writes` and `store.trash`.
        """


@dataclass(frozen=True)
class Put(Step[Entry]):
    """A new file, or other bytes for one that is there."""

    path: VaultPath
    content: Content
    before: StoredFile | Entry | None = None
    before_version: str = ""
    """Where `before` is an `Entry`."""

    def describe(self, plan: Plan) -> None:
        """Keep what is there, and what comes."""
        version: str | None = None
        match self.before:
            case StoredFile() as stored:
                version = stored.version
                plan.images.append(Image(version, lambda: (stored.data,), len(stored.data)))
            case Entry() as entry:
                version = self.before_version
                plan.images.append(image_of(plan.tree, entry, version))
            case None:
                plan.makes_missing(self.path.parent)
        after = self.content.image()
        if after is not None:
            plan.images.append(after)
        plan.files[self.path] = FileRecord(self.path, version, self.content.version)

    def apply(self, tree: Tree) -> Entry:
        """Write the file."""
        with self.content.upload(tree, self.path) as upload:
            entry: Entry = upload.create() if self.before is None else upload.replace(self.before)
            return entry


@dataclass(frozen=True)
class Renaming(Step[Entry]):
    """Another path for a file, or for a folder and all that is in it."""

    entry: Entry
    destination: VaultPath

    def describe(self, plan: Plan) -> None:
        """The paths of all files; their bytes stay."""
        source = self.entry.path
        plan.makes_missing(self.destination.parent)
        if self.entry.kind is EntryKind.FOLDER:
            plan.folders_made.append(self.destination)
            plan.folders_removed.append(source)
        for entry in below(plan.tree, self.entry):
            path = self.destination + entry.path[len(source) :]
            if entry.kind is EntryKind.FOLDER:
                plan.folders_made.append(path)
                plan.folders_removed.append(entry.path)
                continue
            known = plan.files.pop(entry.path, None)
            if known is None:
                version = version_at(plan.tree, entry.path)
                known = FileRecord(entry.path, version, version)
            plan.files[path] = replace(known, path=path, was=entry.path)

    def apply(self, tree: Tree) -> Entry:
        """Rename, which is one step however much the folder holds."""
        return rename(tree, self.entry.path, self.destination)


@dataclass(frozen=True)
class Deletion(Step[None]):
    """A file that goes for good, or a folder with all that is in it."""

    entry: Entry
    over: Over = iter
    _seen: dict[VaultPath, Entry] = field(default_factory=dict[VaultPath, Entry], init=False, repr=False, compare=False)
    """The files as they were kept: what changes after that is not deleted."""

    def describe(self, plan: Plan) -> None:
        """Keep every file."""
        if self.entry.kind is EntryKind.FOLDER:
            plan.folders_removed.append(self.entry.path)
        for entry in below(plan.tree, self.entry):
            if entry.kind is EntryKind.FOLDER:
                plan.folders_removed.append(entry.path)
            else:
                plan.takes(entry)
                self._seen[entry.path] = entry

    def apply(self, tree: Tree) -> None:
        """Remove it."""
        delete_permanently(tree, self.entry, self.over, expected=self._seen or None)


@dataclass(frozen=True)
class Trashing(Step[str]):
    """A file or folder that goes into the trash."""

    entry: Entry
    keeps_large: bool = False
    """Keep large files too, which stand in the trash anyway: for a step that others follow."""

    def describe(self, plan: Plan) -> None:
        """Keep the files that are small: people empty their trash."""
        if self.entry.kind is EntryKind.FOLDER:
            plan.folders_removed.append(self.entry.path)
        for entry in below(plan.tree, self.entry):
            if entry.kind is EntryKind.FOLDER:
                plan.folders_removed.append(entry.path)
            else:
                plan.takes(entry, keeps_large=self.keeps_large)

    def apply(self, tree: Tree) -> str:
        """Move it; the path in the trash."""
        return move_to_trash(tree, self.entry)


@dataclass(frozen=True)
class Returning(Step[Entry]):
    """A file that comes back from the trash."""

    trash_path: str
    path: VaultPath
    version: str

    def describe(self, plan: Plan) -> None:
        """A file appears."""
        plan.makes_missing(self.path.parent)
        plan.files[self.path] = FileRecord(self.path, None, self.version)

    def apply(self, tree: Tree) -> Entry:
        """Move it."""
        return take_from_trash(tree, self.trash_path, self.path)


@dataclass(frozen=True)
class FolderMaking(Step[list[FolderPath]]):
    """A folder, and those above it that are missing."""

    path: FolderPath

    def describe(self, plan: Plan) -> None:
        """Folders appear."""
        plan.makes_missing(self.path)

    def apply(self, tree: Tree) -> list[FolderPath]:
        """Make them; those that were made."""
        return make_folders(tree, self.path)


@dataclass(frozen=True)
class FolderRemoval(Step[None]):
    """An empty folder that goes."""

    path: VaultPath

    def describe(self, plan: Plan) -> None:
        """A folder goes."""
        plan.folders_removed.append(self.path)

    def apply(self, tree: Tree) -> None:
        """Remove it."""
        remove_empty_folder(tree, self.path)


@dataclass(frozen=True)
class EmptyFolders(Step[list[str]]):
    """Folders that go as far as they are empty by then; the others stay."""

    paths: tuple[VaultPath, ...]

    def describe(self, plan: Plan) -> None:
        """Folders may go."""
        plan.folders_removed += self.paths

    def apply(self, tree: Tree) -> list[str]:
        """Remove them, the deepest first; which were."""
        removed: list[str] = []
        for path in sorted(self.paths, key=lambda each: each.count("/"), reverse=True):
            with suppress(VaultError, OSError):
                remove_empty_folder(tree, path)
                removed.append(path)
        return removed


def below(tree: Tree, entry: Entry) -> Iterator[Entry]:
    """A file itself; of a folder all that is in it."""
    return iter((entry,)) if entry.kind is EntryKind.FILE else walk(tree, entry.path)


def version_at(tree: Tree, path: VaultPath) -> str:
    """The version token of a file of any size, read in pieces.

    Raises:
        VaultError: as `Tree.require_file`.
    """
    with tree.open_file(path) as opened:
        digest = hashlib.sha256()
        while chunk := opened.file.read(_PIECE_BYTES):
            digest.update(chunk)
    return digest.hexdigest()[:32]


def image_of(tree: Tree, entry: Entry, version: str) -> Image:
    """The bytes of a file for the journal, read when they are stored; they must still be those of the version."""

    def chunks() -> Iterator[bytes]:
        digest = hashlib.sha256()
        with tree.open_file(entry.path) as opened:
            while chunk := opened.file.read(_PIECE_BYTES):
                digest.update(chunk)
                yield chunk
        if digest.hexdigest()[:32] != version:
            raise ChangedMeanwhile(entry.path)

    return Image(version, chunks, entry.state.size)
