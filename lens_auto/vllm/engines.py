# SPDX-License-Identifier: Apache-2.0
"""What is known of the engines of this process, by their output processors: what both kinds of engine share."""

from __future__ import annotations

from lens_auto.wrap.site import Site

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROVIDER = 'vllm'
_MOST = 64
_models: dict[int, str] = {}


def model_of(processor: Any) -> str | None:
    """The name of the model behind an output processor, as its metrics have it.

    Args:
        processor: vLLM's `OutputProcessor`.
    """
    return _models.get(id(processor))


class EngineSite(Site):
    """`LLMEngine.__init__`, `AsyncLLM.__init__`: an engine is made."""

    __slots__ = ()

    def returned(self, args: tuple[Any, ...], result: Any) -> None:
        """It is.

        Args:
            args: The engine, and the rest.
            result: None.
        """
        engine = args[0]
        served: Any = engine.model_config.served_model_name
        name = served[0] if isinstance(served, list) and served else served or engine.model_config.model  # pyright: ignore[reportUnknownVariableType]
        while len(_models) >= _MOST:
            del _models[next(iter(_models))]
        _models[id(engine.output_processor)] = str(name)[:256]  # pyright: ignore[reportUnknownArgumentType]
