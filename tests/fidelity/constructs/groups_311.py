# SPDX-License-Identifier: Apache-2.0
import traceback
import sys


def group():
    for i in range(2):
        try:
            raise ExceptionGroup('g', [ValueError(i), KeyError(i)])
        except* ValueError as e:
            print(e.exceptions)
            for x in e.exceptions:
                print(x)
        except* KeyError:
            with open('/dev/null') as f:
                print(f.name)


group()
try:
    for i in range(2):
        print(
            i
            .real
            .nothing()
        )
except AttributeError:
    traceback.print_exc(file=sys.stdout)
