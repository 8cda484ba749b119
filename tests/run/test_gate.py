from __future__ import annotations

import asyncio

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sonogauge.run.loop import Gate

pytestmark = pytest.mark.part("run")


def test_a_rate_limit_halves_once_for_all_under_way() -> None:
    async def scene() -> list[int]:
        gate = Gate(16)
        limits = []
        for _ in range(16):
            gate.throttle(0.0)
        limits.append(gate.limit)
        for _ in range(8):
            gate.succeeded()
        limits.append(gate.limit)
        for _ in range(1000):
            gate.succeeded()
        limits.append(gate.limit)
        return limits

    assert asyncio.run(scene()) == [8, 9, 16]


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 6), st.lists(st.sampled_from(["ok", "limited"]), min_size=1, max_size=60))
def test_the_limit_holds_and_nobody_waits_for_ever(most: int, outcomes: list[str]) -> None:
    async def scene() -> None:
        gate = Gate(most)
        under_way = 0

        async def one(outcome: str) -> None:
            nonlocal under_way
            async with gate:
                under_way += 1
                assert under_way <= most
                await asyncio.sleep(0)
                under_way -= 1
            if outcome == "ok":
                gate.succeeded()
            else:
                gate._halved = 0.0
                gate.throttle(0.0)

        await asyncio.wait_for(asyncio.gather(*(one(outcome) for outcome in outcomes)), 20)
        assert 1 <= gate.limit <= most
        # What is free in the end is what the limit says, less what is still owed.
        for _ in range(10 * most):
            gate.succeeded()
        assert gate.limit == most
        assert gate._free._value - gate._owed == most

    asyncio.run(scene())
