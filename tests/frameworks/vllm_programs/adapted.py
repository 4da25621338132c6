# SPDX-License-Identifier: Apache-2.0
# pyright: reportMissingImports=false
"""An adapter that a request brings along, one that is added by itself, beam search: prints tokens as JSON lines."""

from __future__ import annotations

import json
import sys
from pathlib import Path


def adapter(folder: Path) -> str:
    """An adapter for the tiny model of these tests, that changes what it says."""
    import torch
    from safetensors.torch import save_file

    folder.mkdir(exist_ok=True)
    tensors = {}
    for layer in range(2):
        for projection in ('q_proj', 'v_proj'):
            name = f'base_model.model.model.layers.{layer}.self_attn.{projection}'
            tensors[f'{name}.lora_A.weight'] = torch.full((8, 64), 0.1)
            tensors[f'{name}.lora_B.weight'] = torch.full((64, 8), 0.1)
    save_file(tensors, folder / 'adapter_model.safetensors')
    config = {'peft_type': 'LORA', 'task_type': 'CAUSAL_LM', 'r': 8, 'lora_alpha': 16, 'bias': 'none'}
    config |= {'target_modules': ['q_proj', 'v_proj'], 'base_model_name_or_path': 'tiny'}
    (folder / 'adapter_config.json').write_text(json.dumps(config))
    return str(folder)


def main() -> None:
    from vllm import LLM, SamplingParams
    from vllm.lora.request import LoRARequest
    from vllm.sampling_params import BeamSearchParams

    path = adapter(Path('adapter'))
    options = {'enable_lora': True, 'max_lora_rank': 8, 'max_loras': 1, 'max_model_len': 128, 'dtype': 'float32'}
    engine = LLM(model=sys.argv[1], enforce_eager=True, seed=0, **options)
    greedy = SamplingParams(max_tokens=8, temperature=0.0, ignore_eos=True)
    for adapted in (None, LoRARequest('mine', 1, path)):
        [output] = engine.generate(['one two'], greedy, lora_request=adapted, use_tqdm=False)
        print(json.dumps(list(output.outputs[0].token_ids)))
    engine.llm_engine.add_lora(LoRARequest('another', 2, path))
    [beams] = engine.beam_search([{'prompt': 'one two'}], BeamSearchParams(beam_width=2, max_tokens=4))
    print(json.dumps([beam.tokens for beam in beams.sequences]))


if __name__ == '__main__':
    main()
