#!/usr/bin/env python3
"""Writes ship_log.txt: the log of an invented ship, as text for a character-level model. The same text each time.

python3 examples/data/ship_log.py > examples/data/ship_log.txt
"""

import random

DAYS = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
MONTHS = [("March", 31), ("April", 30), ("May", 31), ("June", 30), ("July", 31), ("August", 31), ("September", 30)]
WINDS = ["north", "north-east", "east", "south-east", "south", "south-west", "west", "north-west"]
FORCES = ["a light air", "a gentle breeze", "a fresh breeze", "a strong wind", "half a gale", "a full gale"]
SEAS = ["a smooth sea", "a slight swell", "a long swell from astern", "a short, steep sea", "a heavy sea on the beam"]
SKIES = ["clear", "hazy", "overcast", "grey and low", "bright after rain", "black to windward"]
HANDS = ["the carpenter", "the boatswain", "the cook", "the second mate", "the sailmaker", "the boy", "the whole watch"]
WORK = [
    "set the fore topsail",
    "took in a reef",
    "shook out a reef",
    "bent a new jib",
    "pumped the bilge dry",
    "painted the long boat",
    "overhauled the steering gear",
    "mended the main staysail",
    "scrubbed the decks",
    "broke out a cask of flour",
    "caught rain for the water casks",
    "sounded the well and found it dry",
]
CARGO = ["coal", "timber", "tea", "wool", "salt", "copper ore", "grain", "jute", "iron rails", "coffee"]
PORTS = ["Bristol", "Lisbon", "Madeira", "Bahia", "Cape Town", "Valparaiso", "Callao", "Hobart", "Batavia", "Bombay"]
SIGHTS = [
    "a school of dolphins kept with us",
    "two whales blew to leeward",
    "we spoke a barque bound for home",
    "a flying fish came aboard and went to the cook",
    "land was sighted from the masthead",
    "an albatross followed in our wake",
    "the moon rose red out of the sea",
    "we passed a spar with weed on it",
]
SAYINGS = [
    "A ship that is loaded by the line comes home.",
    "What is not lashed down belongs to the sea.",
    "The mate says that a dry hold is worth a good wind.",
    "Nobody thanks the line until the storm.",
    "Weigh twice, load once.",
    "A mark on the side is cheaper than a grave.",
    "The sea forgives no arithmetic.",
    "Measure before you sail, said the old man, and said no more.",
]


def weather(rng):
    wind, force, sea, sky = (rng.choice(words) for words in (WINDS, FORCES, SEAS, SKIES))
    return rng.choice(
        [
            f"Wind from the {wind}, {force}, with {sea}. The sky is {sky}.",
            f"The day began {sky}, with {force} from the {wind} and {sea}.",
            f"{force[0].upper()}{force[1:]} from the {wind} all day; {sea}.",
        ]
    )


def work(rng):
    who, done, other = rng.choice(HANDS), *rng.sample(WORK, 2)
    return rng.choice(
        [
            f"In the forenoon {who} {done}.",
            f"At eight bells {who} {done} and then {other}.",
            f"{who[0].upper()}{who[1:]} {done}.",
        ]
    )


def load_line(rng):
    inches, tons, cargo = rng.randint(1, 14), rng.randint(3, 90), rng.choice(CARGO)
    return rng.choice(
        [
            f"The load line stands {inches} inches clear of the water.",
            f"We shifted {tons} tons of {cargo} aft, and she trims better for it.",
            f"The merchant asked for {tons} tons of {cargo} more; the mark would be under by {inches} inches, and I refused.",
            f"With {tons} tons of {cargo} out of her she has risen {inches} inches.",
        ]
    )


def day(rng, number, name, month, date, port):
    lines = [f"{name}, {date} {month}. Day {number} from {port}.", weather(rng), work(rng)]
    if rng.random() < 0.6:
        lines.append(load_line(rng))
    if rng.random() < 0.5:
        sight = rng.choice(SIGHTS)
        lines.append(rng.choice([f"Toward evening {sight}.", f"{sight[0].upper()}{sight[1:]}."]))
    lines.append(f"Made good {rng.randint(40, 240)} miles by the log.")
    if rng.random() < 0.4:
        lines.append(rng.choice(SAYINGS))
    return "\n".join(lines)


def main():
    rng = random.Random(1876)  # The year of the Merchant Shipping Act, which put the mark on every ship.
    pages, weekday, left = ["THE LOG OF THE SHIP SAMUEL\n"], 0, 0
    for _ in range(2):
        for month, length in MONTHS:
            for date in range(1, length + 1):
                if left == 0:
                    port, left, number = rng.choice(PORTS), rng.randint(20, 45), 0
                    pages.append(f"Sailed from {port} with {rng.choice(CARGO)} and {rng.choice(CARGO)}.\n")
                left, number = left - 1, number + 1
                pages.append(day(rng, number, DAYS[weekday % 7], month, date, port) + "\n")
                weekday += 1
    print("\n".join(pages), end="")


if __name__ == "__main__":
    main()
