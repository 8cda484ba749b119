"""Weights on this machine through transformers, asked in real batches; extra `[local]`.

`local/DIR_OR_NAME`: any model that `AutoModelForImageTextToText` opens, with an adapter of peft on top if wished.
Requests that wait together are answered together, so `max_connections` should be at least the batch size.
"""

from __future__ import annotations

import asyncio
import hashlib
import io
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Final

from sonogauge._errors import BadInput
from sonogauge.models.base import Outcome, Request

DEFAULT_NEW_TOKENS: Final = 1024
# Names of the OpenAI protocol to those of transformers; any other name is passed on.
_NAMES: Final = {"max_tokens": "max_new_tokens", "max_completion_tokens": "max_new_tokens", "stop": "stop_strings"}
_NAME_ONE: Final = "name a folder or a model of the hub"
_GATHER: Final = 0.02  # seconds to wait for a batch to fill


class LocalModel:
    """A vision-language model in this process.

    Args:
        name: `local/DIR_OR_NAME`.
        device: "cpu", "cuda", "cuda:1", "mps"; "auto" = the best one there.
        dtype: "auto" (as stored), "float32", "bfloat16", "float16".
        adapter: folder or name of a peft adapter.
        batch_size: questions answered in one pass.
        revision: of the weights on the hub; for a folder, made from its files.

    Raises:
        BadInput: the extra is not installed, or the weights do not open.
    """

    endpoint = ""

    def __init__(
        self,
        name: str,
        *,
        device: str = "auto",
        dtype: str = "auto",
        adapter: str | None = None,
        batch_size: int = 8,
        revision: str | None = None,
    ) -> None:
        if batch_size < 1:
            raise BadInput(f"a batch of {batch_size} answers nothing", fix="give a batch size of at least 1")
        try:
            import torch
            from transformers import AutoModelForImageTextToText, AutoProcessor
        except ImportError as error:
            raise BadInput(
                f"{name} needs torch and transformers ({error})", fix="pip install 'sonogauge[local]'"
            ) from error
        where = name.partition("/")[2]
        _check_there(where, revision)
        if device == "auto":
            device = "cuda" if torch.cuda.is_available() else "cpu"
        try:
            self._processor = AutoProcessor.from_pretrained(where, revision=revision, padding_side="left")
            model = AutoModelForImageTextToText.from_pretrained(where, revision=revision, dtype=dtype)
            if adapter is not None:
                from peft import PeftModel

                model = PeftModel.from_pretrained(model, adapter)
            self._network = model.to(device).eval()
        except (OSError, ValueError, KeyError, RuntimeError, ImportError) as error:
            detail = " ".join(str(error).split())[:300]
            raise BadInput(f"cannot open {name} ({detail})", fix=_NAME_ONE) from error
        self._torch, self._device, self._batch_size = torch, device, batch_size
        self.name = name
        self.revision = revision or fingerprint(Path(where))
        # Batch size and device stay out: they may change between the parts of a run.
        self.options: Mapping[str, Any] = {"dtype": dtype} | (
            {"adapter": adapter, "adapter_revision": fingerprint(Path(adapter))} if adapter else {}
        )
        self._thread = ThreadPoolExecutor(1, thread_name_prefix="model")
        self._waiting: list[tuple[Request, asyncio.Future[Outcome]]] = []
        self._worker: asyncio.Task[None] | None = None

    async def answer(self, request: Request) -> Outcome:
        """Answer a request together with those that wait."""
        future: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()
        self._waiting.append((request, future))
        if self._worker is None or self._worker.done():
            self._worker = asyncio.create_task(self._work())
        return await future

    async def close(self) -> None:
        """Stop the worker thread."""
        if self._worker is not None:
            self._worker.cancel()
            await asyncio.gather(self._worker, return_exceptions=True)
            self._worker = None
        self._thread.shutdown(wait=True)

    async def _work(self) -> None:
        loop = asyncio.get_running_loop()
        while self._waiting:
            if len(self._waiting) < self._batch_size:
                await asyncio.sleep(_GATHER)
            # One pass holds requests of one kind: the same options, and all with or all without images.
            kind = _kind(self._waiting[0][0])
            batch = [pair for pair in self._waiting if _kind(pair[0]) == kind][: self._batch_size]
            self._waiting = [pair for pair in self._waiting if not any(pair is one for one in batch)]
            outcomes = await loop.run_in_executor(self._thread, self._answer_batch, [request for request, _ in batch])
            for (_, future), outcome in zip(batch, outcomes, strict=True):
                if not future.done():
                    future.set_result(outcome)

    def _answer_batch(self, requests: Sequence[Request]) -> list[Outcome]:
        try:
            return self._generate(requests)
        except self._torch.OutOfMemoryError as error:
            if len(requests) > 1:
                half = len(requests) // 2
                return self._answer_batch(requests[:half]) + self._answer_batch(requests[half:])
            return [Outcome("error", error=f"memory: {_line(error)}")]
        except (RuntimeError, ValueError, TypeError, IndexError, OSError) as error:
            if len(requests) > 1:
                # One bad question must not take the others with it.
                return [outcome for request in requests for outcome in self._answer_batch([request])]
            return [Outcome("error", error=f"model: {_line(error)}")]

    def _generate(self, requests: Sequence[Request]) -> list[Outcome]:
        texts = [self._render(request) for request in requests]
        images = [[_decode(image.data) for image in request.images] for request in requests]
        inputs = self._processor(
            text=texts, images=images if any(images) else None, padding=True, return_tensors="pt"
        ).to(self._device)
        floating = next(self._network.parameters()).dtype
        if "pixel_values" in inputs:
            inputs["pixel_values"] = inputs["pixel_values"].to(floating)
        options = {_NAMES.get(key, key): value for key, value in requests[0].generation.items()}
        seed = options.pop("seed", None)
        if seed is not None:
            self._torch.manual_seed(seed)
        temperature = options.pop("temperature", None)
        if temperature:
            options |= {"do_sample": True, "temperature": temperature}
        else:
            options |= {"do_sample": False, "temperature": None, "top_p": None, "top_k": None}
        options.setdefault("max_new_tokens", DEFAULT_NEW_TOKENS)
        if "stop_strings" in options:
            options["tokenizer"] = self._processor.tokenizer
        with self._torch.inference_mode():
            produced = self._network.generate(**inputs, **options)
        start = inputs["input_ids"].shape[1]
        tokenizer = self._processor.tokenizer
        ends = self._network.generation_config.eos_token_id
        # Padding alone is no end: a model may say it in the middle, and after an end nothing counts anyway.
        stops = {*(ends if isinstance(ends, list) else [ends]), tokenizer.eos_token_id}
        outcomes = []
        for number, row in enumerate(produced[:, start:].tolist()):
            length = next((at for at, token in enumerate(row) if token in stops), len(row))
            cut = length == len(row) >= options["max_new_tokens"]
            outcomes.append(
                Outcome(
                    "truncated" if cut else "ok",
                    text=tokenizer.decode(row[:length], skip_special_tokens=True).strip(),
                    finish_reason="length" if cut else "stop",
                    input_tokens=int(inputs["attention_mask"][number].sum()),
                    output_tokens=length,
                )
            )
        return outcomes

    def _render(self, request: Request) -> str:
        content = [*({"type": "image"} for _ in request.images), {"type": "text", "text": request.prompt}]
        messages = [{"role": "user", "content": content}]
        return str(self._processor.apply_chat_template(messages, add_generation_prompt=True, tokenize=False))


def _kind(request: Request) -> tuple[bool, str]:
    return bool(request.images), repr(sorted(request.generation.items()))


def _decode(data: bytes) -> Any:
    from PIL import Image

    return Image.open(io.BytesIO(data)).convert("RGB")


def _line(error: BaseException) -> str:
    return " ".join(f"{type(error).__name__} {error}".split())[:300]


def fingerprint(folder: Path) -> str:
    """Return a hash of a folder's file names and sizes and its small files; empty for a name of the hub."""
    if not folder.is_dir():
        return ""
    digest = hashlib.sha256()
    for file in sorted(folder.glob("*")):
        if file.is_file():
            size = file.stat().st_size
            digest.update(f"{file.name}\0{size}\0".encode())
            if size < 1_000_000 or file.suffix == ".safetensors":
                with file.open("rb") as stream:
                    # The header of a weights file and its first values tell two trainings apart.
                    digest.update(stream.read(1_000_000))
    return digest.hexdigest()[:16]


def _check_there(where: str, revision: str | None) -> None:
    """Raise BadInput if neither folder, cache nor hub has the model; asked once, as opening retries for minutes."""
    from huggingface_hub import model_info, try_to_load_from_cache

    if Path(where).is_dir():
        return
    try:
        if isinstance(try_to_load_from_cache(where, "config.json", revision=revision), str):
            return
        model_info(where, revision=revision, timeout=10)
    except Exception as error:
        # The hub's client changed its transport, and with it the errors, more than once; each means: not in reach.
        raise BadInput(f"no folder {where}, and no such model in reach ({_line(error)})", fix=_NAME_ONE) from error
