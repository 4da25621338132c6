# SPDX-License-Identifier: Apache-2.0
"""One browser for the tests of a module, which says by a fixture `url` what it shows."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from tests.web.chromium import Page


@pytest.fixture(scope='module')
def browser(url: str) -> Iterator[Page]:
    page = Page(url)
    yield page
    page.close()
