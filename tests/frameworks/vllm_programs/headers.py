# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""Makes an engine inside a span of the OpenTelemetry API; its processes note what is put into their environments."""

from __future__ import annotations

import os
import sys


def note(event: str, args: tuple[object, ...]) -> None:
    if event == 'os.putenv':
        name = os.fsdecode(args[0]).lower()  # pyright: ignore[reportArgumentType]
        if name in ('traceparent', 'tracestate'):
            with open(os.environ['NOTED'], 'a') as file:
                file.write(f'{os.getpid()} {name}\n')


sys.addaudithook(note)  # in the children as well: they import this file


def main() -> None:
    from opentelemetry import trace
    from vllm import LLM, SamplingParams

    with trace.get_tracer('my.trainer').start_as_current_span('my start'):
        engine = LLM(model=sys.argv[1], max_model_len=256, dtype='float32', enforce_eager=True, max_num_seqs=8, seed=0)
    greedy = SamplingParams(max_tokens=4, temperature=0.0)
    [said] = engine.generate(['the question is'], greedy, use_tqdm=False)
    print(list(said.outputs[0].token_ids))


if __name__ == '__main__':
    main()
