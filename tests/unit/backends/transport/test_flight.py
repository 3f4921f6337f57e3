from __future__ import annotations

import asyncio

from overread.backends.transport.flight import Flight


def test_a_round_that_meets_the_same_jam_halves_the_width_once() -> None:
    async def fly() -> list[float]:
        flight = Flight(16)
        widths = []
        took_off = []
        for _ in range(16):
            async with flight.slot() as when:
                took_off.append(when)
        for when in took_off:
            flight.congested(when)
        widths.append(flight.width)
        async with flight.slot() as later:
            flight.congested(later)
        widths.append(flight.width)
        return widths

    assert asyncio.run(fly()) == [8.0, 4.0]


def test_the_width_stays_between_one_and_the_most() -> None:
    async def fly() -> tuple[float, float]:
        flight = Flight(4)
        for _ in range(10):
            async with flight.slot() as when:
                flight.congested(when)
        least = flight.width
        for _ in range(1000):
            flight.landed()
        return least, flight.width

    assert asyncio.run(fly()) == (1.0, 4.0)


def test_a_whole_round_of_answers_widens_by_about_one() -> None:
    flight = Flight(100)
    flight.width = 10.0
    for _ in range(10):
        flight.landed()
    # 10 + sum of 1/width over ten steps: between 10/11 and 10/10
    assert 10 + 10 / 11 < flight.width < 11


def test_no_more_fly_than_the_width_allows_and_nobody_is_forgotten() -> None:
    async def fly() -> tuple[int, int]:
        flight = Flight(5)
        most = landed = 0

        async def one(number: int) -> None:
            nonlocal most, landed
            async with flight.slot() as when:
                most = max(most, flight.flying)
                await asyncio.sleep(0.001 * (number % 3))
                if number == 20:
                    flight.congested(when)
                elif number > 20:
                    assert flight.flying <= 5
            landed += 1

        await asyncio.gather(*(one(number) for number in range(60)))
        return most, landed

    assert asyncio.run(fly()) == (5, 60)


def test_while_the_server_wants_a_pause_nobody_takes_off() -> None:
    async def fly() -> float:
        flight = Flight(2)
        async with flight.slot() as when:
            flight.congested(when, pause=0.2)
        asked = asyncio.get_running_loop().time()
        async with flight.slot() as later:
            return later - asked

    assert asyncio.run(fly()) >= 0.19
