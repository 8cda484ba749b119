"""What an export did."""

from __future__ import annotations

from pydantic import BaseModel


class Done(BaseModel):
    """files: name -> rows or images. withheld: items that left as a recipe; private: items that did not leave."""

    format: str
    items: int
    withheld: int
    private: int
    files: dict[str, int]
    notices: list[str] = []

    def lines(self) -> list[str]:
        """Return what a user is told."""
        lines = [f"{self.items} items exported as {self.format}"]
        lines += [f"{name}: {count}" for name, count in self.files.items()]
        if self.withheld:
            lines.append(f"{self.withheld} items may not be passed on: source, ids and hashes are in withheld.jsonl")
        if self.private:
            lines.append(f"{self.private} items are private and left out")
        return [*lines, *(f"note: {notice}" for notice in self.notices)]
