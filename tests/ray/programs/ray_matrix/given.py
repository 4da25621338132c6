# SPDX-License-Identifier: Apache-2.0
"""What bodies are given and say they saw."""

import os
import time

GIVEN = '1 key=2'  # what every body sees when it is called with `(1, key=2)`, and nothing else
PATIENCE = 60


def seen(args: tuple, kwargs: dict) -> str:
    """Everything a call brought, as text."""
    return ' '.join([repr(value) for value in args] + [f'{name}={value!r}' for name, value in kwargs.items()])


def first_time(path: str) -> bool:
    """Whether nobody has asked with this path before, in whatever process."""
    try:
        os.close(os.open(path, os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return False
    return True


def appears(path: str) -> str:
    """The text of a file somebody else writes, once it is there."""
    for _ in range(PATIENCE * 50):
        if os.path.exists(path):
            with open(path) as file:
                return file.read()
        time.sleep(0.02)
    raise TimeoutError(path)


def write(path: str, text: str) -> None:
    """Write a file for `appears`: there at once, or not."""
    with open(path + '.part', 'w') as file:
        file.write(text)
    os.rename(path + '.part', path)
