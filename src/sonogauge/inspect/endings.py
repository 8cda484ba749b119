"""How an answer that came through Inspect ended, in the words of the replies table."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from inspect_ai.model import ModelOutput


def ended(output: ModelOutput, *, failed: bool, limited: bool) -> tuple[str, str | None]:
    """Return status (one of `tables.REPLY_STATUSES`) and text of a reply.

    failed: the sample ended with an error. limited: one of Inspect's limits (time, tokens, …) cut it off.
    """
    if failed:
        return "error", None
    if limited:
        return "truncated", output.completion
    if output.error or not output.choices or output.choices[0].stop_reason == "content_filter":
        return "error", None
    cut = output.choices[0].stop_reason in ("max_tokens", "model_length")
    return "truncated" if cut else "ok", output.completion
