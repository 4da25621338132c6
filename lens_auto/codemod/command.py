# SPDX-License-Identifier: Apache-2.0
"""The console script `lens-codemod`: says what to install where libcst is missing, and hands over to `cli`."""

from __future__ import annotations

import sys


def main() -> int:
    """Run `lens-codemod`; returns its exit code."""
    try:
        import libcst  # noqa: F401  # pyright: ignore[reportUnusedImport]
    except ModuleNotFoundError as error:
        if error.name != 'libcst':
            raise
        print('lens-codemod: libcst is not installed: pip install "lens-auto[codemod]"', file=sys.stderr)
        return 2
    from lens_auto.codemod.cli import main

    return main()


if __name__ == '__main__':
    sys.exit(main())
