# SPDX-License-Identifier: Apache-2.0
import sys


def until(n):
    for _ in range(1):
        with memoryview(b''):
            try:
                return until(n + 1)
            except RecursionError:
                return n


sys.setrecursionlimit(200)
print(until(0) > 100)
