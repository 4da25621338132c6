# SPDX-License-Identifier: Apache-2.0
"""`lens-report`: a run, seen. Reads a run folder, finished, live or dead, or any OTLP JSON lines file, and answers.

`folder.py` finds and loads a run, `otlp.py` and `journals.py` read it into the columns of `store.py`; `tree.py` says
who encloses whom. Each table is a function of those, one file each; `verdicts.py` judges the tables. `cli.py` is the
command, `show.py` draws for a terminal, `page.py` writes HTML, `perfetto.py` and `spreadsheet.py` export.
Needs the extra `report` (rich, numpy); nothing else of the package may import this one, so no traced process does.
"""
