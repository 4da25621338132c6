# SPDX-License-Identifier: Apache-2.0
"""The `lens-instrument` command: it prepares a run, starts the user's command and stays as its parent to the end.

Called by the console script alone; nothing imports it. It may import every part but `ray` and `bridge`, and up to the
start of the command only what is cheap: no yaml, argparse, subprocess, json, typing, re or dataclasses.
"""
