"""Cost of asking image questions of a local server: ours, the bare OpenAI client, a full Inspect eval.

A server in a process of its own answers after 50 ms; each contender runs in a fresh process and counts the CPU seconds
of its asking, imports left out. Then the peak memory of a run of 10,000 questions with the default connections, and
what a kill -9 asks twice. The memory is that of the core install: pyarrow imports pandas where an extra brings it, and
that adds about 35 MB; the figure with it is printed beside.

usage: python perf/running.py [--questions 1000] [--inspect-questions 200] [--memory-questions 10000]
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import hashlib
import io
import json
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from typing import Any

from _memory import peak_memory

CPU_GOAL, INSPECT_GOAL, MEMORY_GOAL = 1.3, 5.0, 200.0
CONNECTIONS, CASES, LATENCY = 100, 500, 0.05
DEFAULT = 16  # connections of `sonogauge run` unless told otherwise


def make_images(count: int) -> list[bytes]:
    """Return JPEGs of 512 x 512 pixels and about 57 KB, as speckled as ultrasound."""
    import numpy as np
    from PIL import Image

    rng = np.random.default_rng(0)
    images = []
    for _ in range(count):
        coarse = rng.rayleigh(60, (256, 256)).clip(0, 255).astype(np.uint8)
        stream = io.BytesIO()
        Image.fromarray(coarse).resize((512, 512), Image.Resampling.BICUBIC).save(stream, "JPEG", quality=80)
        images.append(stream.getvalue())
    return images


def make_bench(folder: Path, questions: int) -> None:
    """Write a benchmark of that many questions over CASES images."""
    from sonogauge.answers import AnswerSpec
    from sonogauge.folders import Manifest, new_folder
    from sonogauge.items import Item, ItemImage

    with new_folder(folder) as out:
        cases = out.table("cases", 64)
        for number, data in enumerate(make_images(min(CASES, questions))):
            cases.write(
                [
                    {
                        "case_id": f"case-{number:05d}",
                        "image": {"bytes": data, "path": None},
                        "media_type": "image/jpeg",
                        "sha256": hashlib.sha256(data).hexdigest(),
                        "width": 512,
                        "height": 512,
                        "source": "made",
                        "licence": "Apache-2.0",
                        "private": False,
                    }
                ]
            )
        items = out.table("items")
        for number in range(questions):
            one = Item(
                item_id=f"DD/01/{number:06d}",
                task="DD",
                dataset="01",
                source="made",
                group=f"made:{number % 100}",
                split="test",
                images=(ItemImage(f"case-{number % min(CASES, questions):05d}"),),
                question=f"Question {number}: is the lesion benign or malignant? " + "Weigh shape and margin. " * 20,
                prompt_id="made/one@1",
                answer=AnswerSpec("choice", ("benign", "malignant")),
                reference={"choices": ("benign",)},
                reference_state="ok",
            )
            items.write([one.to_row()])
        out.finish(Manifest(kind="benchmark", maker="perf", name="made", version="1"))


def read_bench(folder: Path) -> list[tuple[str, bytes]]:
    """Return the questions and image bytes, for the peers."""
    from sonogauge.folders import Folder

    bench = Folder(folder)
    images = {row["case_id"]: row["image"]["bytes"] for row in bench.rows("cases", ["case_id", "image"])}
    return [
        (row["question"], images[row["images"][0]["case_id"]]) for row in bench.rows("items", ["question", "images"])
    ]


def serve() -> None:
    """Answer chat completions after LATENCY; GET /counts tells how often each question came."""
    from aiohttp import web

    counts: Counter[str] = Counter()

    async def chat(request: web.Request) -> web.Response:
        body = await request.read()
        at = body.find(b"Question ")
        counts[body[at : body.find(b":", at)].decode()] += 1
        await asyncio.sleep(LATENCY)
        return web.json_response(
            {
                "id": "x",
                "object": "chat.completion",
                "created": 0,
                "model": "m",
                "choices": [
                    {"index": 0, "message": {"role": "assistant", "content": "benign"}, "finish_reason": "stop"}
                ],
                "usage": {"prompt_tokens": 300, "completion_tokens": 2, "total_tokens": 302},
            }
        )

    async def tell(request: web.Request) -> web.Response:
        return web.json_response(counts)

    async def main() -> None:
        app = web.Application(client_max_size=1 << 26)
        app.router.add_post("/v1/chat/completions", chat)
        app.router.add_get("/counts", tell)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        print(runner.addresses[0][1], flush=True)
        await asyncio.Event().wait()

    asyncio.run(main())


def cpu() -> float:
    used = resource.getrusage(resource.RUSAGE_SELF)
    return used.ru_utime + used.ru_stime


def ask_bare(url: str, bench: Path, out: Path) -> float:
    """Ask through the OpenAI client with the same transport and nothing else."""
    import openai

    questions = read_bench(bench)
    limits = type(openai.DEFAULT_CONNECTION_LIMITS)(max_connections=CONNECTIONS, max_keepalive_connections=CONNECTIONS)

    async def main() -> None:
        client = openai.AsyncOpenAI(
            api_key="none", base_url=url, http_client=openai.DefaultAioHttpClient(limits=limits), max_retries=0
        )
        todo = iter(questions)

        async def work() -> None:
            for text, image in todo:
                address = f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"
                content: Any = [{"type": "image_url", "image_url": {"url": address}}, {"type": "text", "text": text}]
                reply = await client.chat.completions.create(
                    model="m", messages=[{"role": "user", "content": content}], temperature=0.0
                )
                assert reply.choices[0].message.content == "benign"

        await asyncio.gather(*(work() for _ in range(CONNECTIONS)))
        await client.close()

    start = cpu()
    asyncio.run(main())
    return cpu() - start


def ask_ours(url: str, bench: Path, out: Path, connections: int = CONNECTIONS) -> float:
    """Ask as `sonogauge run` does: read the benchmark, ask, log, write the table."""
    import aiohttp
    import openai

    from sonogauge.run import run

    # Loaded before the clock starts, as for the others.
    assert aiohttp and openai.AsyncOpenAI and openai.DefaultAioHttpClient and openai.resources.chat
    start = cpu()
    result = run(bench, "openai/m", out, model_options={"base_url": url}, max_connections=connections)
    assert result.statuses["error"] == 0
    return cpu() - start


def ask_inspect(url: str, bench: Path, out: Path) -> float:
    """Ask as a full Inspect eval, its log included."""
    import inspect_ai
    from inspect_ai.dataset import MemoryDataset, Sample
    from inspect_ai.model import ChatMessageUser, ContentImage, ContentText, get_model
    from inspect_ai.scorer import exact
    from inspect_ai.solver import generate

    samples = [
        Sample(
            input=[
                ChatMessageUser(
                    content=[
                        ContentImage(image=f"data:image/jpeg;base64,{base64.b64encode(image).decode()}"),
                        ContentText(text=text),
                    ]
                )
            ],
            target="benign",
        )
        for text, image in read_bench(bench)
    ]
    model = get_model("openai-api/made/m", base_url=url, api_key="none")
    task = inspect_ai.Task(dataset=MemoryDataset(samples), solver=generate(), scorer=exact())
    start = cpu()
    logs = inspect_ai.eval(
        task,
        model=model,
        max_connections=CONNECTIONS,
        max_samples=CONNECTIONS,
        log_dir=str(out),
        log_images=False,
        display="none",
    )
    assert logs[0].status == "success"
    return cpu() - start


CONTENDERS = {"bare": ask_bare, "ours": ask_ours, "inspect": ask_inspect}


class WithoutPandas:
    """An import finder as if pandas were not installed: the core does not need it."""

    def find_spec(self, name: str, path: object = None, target: object = None) -> None:
        """Refuse pandas, leave the rest to the others."""
        if name == "pandas":
            raise ModuleNotFoundError("No module named 'pandas'", name=name)


def contender(name: str, url: str, bench: Path, out: Path) -> dict[str, float]:
    """Run one contender in a fresh process; return its CPU seconds and peak memory in MB."""
    command = [sys.executable, __file__, "--as", name, url, str(bench), str(out)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(f"{name} failed: {done.stderr[-2000:]}")
    return dict(json.loads(done.stdout.splitlines()[-1]))


def resent_after_kill(url: str, bench: Path, out: Path, questions: int) -> int:
    """Kill a run in the middle, run it again; return how many questions the server saw more than once."""
    import urllib.request

    def counts() -> dict[str, int]:
        with urllib.request.urlopen(url.replace("/v1", "/counts")) as answer:
            return dict(json.load(answer))

    before = counts()
    command = [sys.executable, __file__, "--as", "default", url, str(bench), str(out)]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL) as process:
        while sum(counts().values()) - sum(before.values()) < questions // 2 and process.poll() is None:
            time.sleep(0.02)
        process.send_signal(signal.SIGKILL)
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return sum(counts().values()) - sum(before.values()) - questions


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--questions", type=int, default=1000)
    parser.add_argument("--inspect-questions", type=int, default=200)
    parser.add_argument("--memory-questions", type=int, default=10_000)
    parser.add_argument("--as", dest="role", nargs="+", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.role:
        name, *rest = options.role
        if name == "server":
            serve()
            return 0
        if name == "core":
            sys.meta_path.insert(0, WithoutPandas())
        url, bench, out = rest[0], Path(rest[1]), Path(rest[2])
        used = ask_ours(url, bench, out, DEFAULT) if name in ("default", "core") else CONTENDERS[name](url, bench, out)
        peak = peak_memory()
        print(json.dumps({"cpu": used, "peak": peak}))
        return 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        sizes = {"some": options.questions, "few": options.inspect_questions, "many": options.memory_questions}
        for label, count in sizes.items():
            make_bench(folder / label, count)
        command = [sys.executable, __file__, "--as", "server"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
            assert server.stdout is not None
            url = f"http://127.0.0.1:{server.stdout.readline().strip()}/v1"
            try:
                # The better of two, because a busy machine only ever adds.
                each = {
                    one: min(contender(one, url, folder / "some", folder / f"{one}{n}")["cpu"] for n in range(2))
                    / options.questions
                    for one in ("bare", "ours")
                }
                each["inspect"] = contender("inspect", url, folder / "few", folder / "inspect")["cpu"]
                each["inspect"] /= options.inspect_questions
                peak = contender("core", url, folder / "many", folder / "memory")["peak"]
                with_pandas = contender("default", url, folder / "many", folder / "memory2")["peak"]
                resent = resent_after_kill(url, folder / "some", folder / "killed", options.questions)
            finally:
                server.terminate()
    milliseconds = {one: 1000 * seconds for one, seconds in each.items()}
    cost = each["ours"] / each["bare"]
    gain = each["inspect"] / each["ours"]
    print(
        f"CPU a question: bare {milliseconds['bare']:.2f} ms, ours {milliseconds['ours']:.2f} ms, "
        f"Inspect eval {milliseconds['inspect']:.2f} ms"
    )
    print(f"ours / bare client: {cost:.2f} (goal at most {CPU_GOAL})")
    print(f"Inspect eval / ours: {gain:.1f} (goal at least {INSPECT_GOAL:.0f})")
    print(f"peak memory of {options.memory_questions} questions: {peak:.0f} MB (goal under {MEMORY_GOAL:.0f})")
    print(f"the same with the extras installed: {with_pandas:.0f} MB")
    print(f"asked twice after kill -9: {resent} (goal at most {DEFAULT})")
    worst = min(CPU_GOAL / cost, gain / INSPECT_GOAL, MEMORY_GOAL / peak, (DEFAULT + 1) / (resent + 1))
    print(f"ratio running: {worst:.2f}")
    return 0 if worst >= 1 else 1


if __name__ == "__main__":
    sys.exit(main())
