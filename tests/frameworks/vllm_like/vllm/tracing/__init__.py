# SPDX-License-Identifier: Apache-2.0

import os


def is_tracing_available() -> bool:
    return os.environ.get('FAKE_OTEL', '1') == '1'
