"""Which file of a folder an annotation means by a name."""

from __future__ import annotations

from pathlib import PurePosixPath

from sonogauge.sources.readers.tree import Tree


def locate(tree: Tree, name: str, beside: str, folder: str | None = None, hint: str | None = None) -> str | None:
    """Return the path of a file, None if it is absent or the name fits several files equally well.

    Looked for below `folder`, beside the annotation file and in the folders above it, then anywhere. All folders of the
    name must be there: `test/1.png` is never taken for `train/1.png`.

    Args:
        tree: the user's folder.
        name: a file name or relative path as the annotation gives it; it never leads out of the tree.
        beside: path of the annotation file.
        folder: a folder that the user names.
        hint: name of a folder that decides between several.
    """
    clean = name.replace("\\", "/").lstrip("/")
    found = tree.named(clean)
    if folder is not None:
        found = [path for path in found if f"/{folder.strip('/')}/" in f"/{path}"]
    if len(found) > 1 and hint is not None:
        found = [path for path in found if f"/{hint}/" in f"/{path}"] or found
    if len(found) <= 1:
        return found[0] if found else None
    near = PurePosixPath(beside).parent
    for parent in (near, *near.parents):
        close = [path for path in found if PurePosixPath(path).is_relative_to(parent)]
        if close:
            return close[0] if len(close) == 1 else None
    return None
