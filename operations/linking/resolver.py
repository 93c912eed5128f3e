"""Which file a link reaches: the one resolver of indexing, link tools, moves, templates and embeds.

Source: links-and-moves.md §2.
"""

from bisect import bisect_left
from collections.abc import Iterable, Mapping
from typing import Final

from operations.linking.names import MAX_PATH_LENGTH, folded, folder_of, joined, name_of, spellings

RELATIVE: Final = ("./", "../")
"""How a path begins that is joined to the note's folder and looked for nowhere else."""


class LinkResolver:
    """The files of a vault by the names that links give them.

    Built over the files of some keys (`names.link_key`) only, it answers links of those keys as if it knew all files.
    Immutable; what it has looked up once it remembers.
    """

    __slots__ = ("_anywhere", "_by_name", "_by_path", "_ends", "_groups")

    def __init__(self, paths: Iterable[str]) -> None:
        """Take every file that links may reach; hidden ones (a segment begins with a dot) are left out.

        Source: links-and-moves.md §2.2.
        """
        self._by_path: dict[str, list[str]] = {}
        """Files by folded path: several when they differ in letter case or Unicode form only, by code points then."""
        self._by_name: dict[str, list[str]] = {}
        """Folded paths by folded name, suffix included."""
        self._add(paths)
        self._forget()

    @property
    def paths(self) -> list[str]:
        """Every file, in no order."""
        return [path for twins in self._by_path.values() for path in twins]

    @property
    def known(self) -> Mapping[str, str | None]:
        """What link paths mean that were resolved before and mean the same from every folder."""
        return self._anywhere

    def resolve(self, source: str, target: str) -> str | None:
        """The file that a link's path reaches from a note or canvas; `None` when it reaches none.

        Args:
            source: Path of the file that holds the link.
            target: Path part of the link, decoded, without white space around it; empty for the note itself.

        Source: links-and-moves.md §2.3.
        """
        if not target:
            return source
        if target in self._anywhere:
            return self._anywhere[target]
        if target.startswith(RELATIVE):
            return self._relative(source, target)
        if len(target) > MAX_PATH_LENGTH:
            return None
        for spelling in spellings(target):
            found = self.exact(spelling.removeprefix("/"))
            if found is None and not target.startswith("/"):
                key = folded(spelling)
                found = self._only_one_named(key)
                group = None if found is not None else self._group(key)
                if group is not None and group.is_shared:
                    return self._of_twins(group.nearest_to(folder_of(source)), spelling, folder_of(source))
                found = found if group is None else self._of_twins(group.best, spelling, "")
            if found is not None:
                self._anywhere[target] = found
                return found
        self._anywhere[target] = None
        return None

    def exact(self, path: str) -> str | None:
        """The file of exactly this path from the vault root, as names are compared; how canvas cards name files.

        Source: links-and-moves.md §2.1, §4.6.
        """
        twins = self._by_path.get(folded(path))
        if twins is None:
            return None
        return path if len(twins) > 1 and path in twins else twins[0]

    def names_relatively(self, source: str, target: str, file: str) -> bool:
        """Whether a link's path, joined to the folder of its source, is that file.

        Source: links-and-moves.md §4.2 (b).
        """
        if not target or target.startswith("/") or len(target) > MAX_PATH_LENGTH:
            return False
        paths = (joined(folder_of(source), spelling) for spelling in spellings(target))
        return any(path is not None and self.exact(path) == file for path in paths)

    def renamed(self, renames: Mapping[str, str]) -> "LinkResolver":
        """The resolver of the vault as it is after its files got the paths they are mapped to."""
        after = LinkResolver(())
        after._by_path = dict(self._by_path)
        after._by_name = dict(self._by_name)
        gone: dict[str, set[str]] = {}
        for path in renames:
            key = folded(path)
            left = [twin for twin in after._by_path.get(key, ()) if twin not in renames]
            if left:
                after._by_path[key] = left
            elif after._by_path.pop(key, None) is not None:
                gone.setdefault(name_of(key), set()).add(key)
        for name, keys in gone.items():
            after._by_name[name] = [key for key in after._by_name[name] if key not in keys]
        for name in {name_of(folded(path)) for path in renames.values()}:
            # The lists are shared with this resolver until here.
            after._by_name[name] = list(after._by_name.get(name, ()))
        for key in map(folded, renames.values()):
            if key in after._by_path:
                after._by_path[key] = list(after._by_path[key])
        after._add(renames.values())
        return after

    def _add(self, paths: Iterable[str]) -> None:
        shared: set[str] = set()
        for path in paths:
            if path.startswith(".") or "/." in path:
                continue
            key = folded(path)
            twins = self._by_path.setdefault(key, [])
            if not twins:
                self._by_name.setdefault(name_of(key), []).append(key)
            elif path in twins:
                continue
            else:
                shared.add(key)
            twins.append(path)
        for key in shared:
            self._by_path[key].sort()

    def _forget(self) -> None:
        self._anywhere: dict[str, str | None] = {}
        """Targets that mean the same from every folder."""
        self._groups: dict[str, _Group | None] = {}
        self._ends: dict[str, list[str]] = {}
        """For each name that was looked up by a longer ending: its folded paths reversed, sorted."""

    def _relative(self, source: str, target: str) -> str | None:
        if len(target) > MAX_PATH_LENGTH:
            return None
        for spelling in spellings(target):
            path = joined(folder_of(source), spelling)
            found = None if path is None else self.exact(path)
            if found is not None:
                return found
        return None

    def _only_one_named(self, name: str) -> str | None:
        """The file of a bare name that no other file has: what most links are, and nothing needs to be made for it."""
        named = self._by_name.get(name)
        if named is None or len(named) != 1:
            return None
        twins = self._by_path[named[0]]
        return twins[0] if len(twins) == 1 else None

    def _group(self, ending: str) -> "_Group | None":
        """The files whose folded path ends in `ending` on a segment boundary."""
        if ending not in self._groups:
            keys = self._keys_with(ending)
            files = [(len(key), path) for key in keys for path in self._by_path[key]]
            self._groups[ending] = _Group([path for _, path in sorted(files)]) if files else None
        return self._groups[ending]

    def _keys_with(self, ending: str) -> list[str]:
        name = name_of(ending)
        named = self._by_name.get(name, [])
        if name == ending or not named:
            return named
        ends = self._ends.get(name)
        if ends is None:
            ends = self._ends[name] = sorted(key[::-1] for key in named)
        # "0" is the character behind "/".
        first, behind = bisect_left(ends, ending[::-1] + "/"), bisect_left(ends, ending[::-1] + "0")
        return [end[::-1] for end in ends[first:behind]]

    def _of_twins(self, path: str, spelling: str, folder: str) -> str:
        """Of files that differ from `path` in letter case or Unicode form only, the one that is meant.

        Source: links-and-moves.md §2.1.
        """
        twins = self._by_path[folded(path)]
        if len(twins) == 1:
            return path
        below = f"{folder}/" if folder else ""
        return min(twins, key=lambda twin: (not twin.startswith(below), not f"/{twin}".endswith(f"/{spelling}"), twin))


class _Group:
    """Files that share an ending, and for each folder the first of those below it."""

    __slots__ = ("_files", "_nearest")

    def __init__(self, files: list[str]) -> None:
        self._files = files
        """Shortest first, then by code points."""
        self._nearest: dict[str, str] | None = None

    @property
    def best(self) -> str:
        return self._files[0]

    @property
    def is_shared(self) -> bool:
        return len(self._files) > 1

    def nearest_to(self, folder: str) -> str:
        if self._nearest is None:
            self._nearest = {}
            for file in self._files:
                above = folder_of(file)
                # Where a folder is known already, a shorter path has come by it and all above.
                while above and above not in self._nearest:
                    self._nearest[above] = file
                    above = folder_of(above)
        return self._nearest.get(folder, self.best)
