"""Records the goldens, and checks them. Run by make (oracle.mk), in the oracle's own environment.

    python tests/oracle record [TRUTH ...]         measure everything and write tests/golden/oracle/TRUTH.json
    python tests/oracle check [--full] [TRUTH ...] measure a sample (or all) again; print every difference, exit 1 on one

Cases are measured in child processes, since a process that has pretended a GPU cannot end in order: it leaves by os._exit.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import gc
import importlib
import importlib.metadata
import itertools
import json
import os
import pathlib
import subprocess
import sys
import tempfile
import time
from typing import Any

HERE = pathlib.Path(__file__).parent
GOLDEN = HERE.parent / "golden" / "oracle"
FRAMEWORKS = pathlib.Path(sys.prefix) / "frameworks"
CHUNK = 40
"""Cases per child process: starting one costs some five seconds."""
VERSIONS = (
    "torch",
    "transformers",
    "peft",
    "accelerate",
    "bitsandbytes",
    "torchao",
    "liger-kernel",
    "trl",
    "lomo-optim",
    "galore-torch",
    "apollo-torch",
    "schedulefree",
    "grokadamw",
    "came-pytorch",
    "pytorch_optimizer",
)


def encode(value: Any) -> str:
    """The one spelling of a value in a golden."""
    return json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"))


def versions() -> dict[str, str]:
    """Packages that the numbers come from; "transformers-4.44" is the release that stands for that line."""
    older = {
        file.stem.removeprefix("requirements-"): file.read_text(encoding="utf-8").split()[0].partition("==")[2]
        for file in HERE.glob("requirements-[0-9]*.txt")
    }
    return {name: importlib.metadata.version(name) for name in VERSIONS} | {
        f"transformers-{name}": older[name] for name in sorted(older)
    }


def child(module: str, source: str, target: str) -> None:
    """Measure the cases of a file, one answer a line; a library's refusal is an answer too."""
    measure = importlib.import_module(module).measure
    gc.collect()
    gc.freeze()  # what was imported stays: collecting after each case then costs little
    with open(source, encoding="utf-8") as cases, open(target, "w", encoding="utf-8") as answers:
        for line in cases:
            try:
                answer = {"measured": measure(json.loads(line))}
            except Exception as error:
                answer = {"refused": type(error).__name__, "why": str(error)[:300]}
            print(encode(answer), file=answers, flush=True)


def measure_chunk(module: str, cases: list[dict[str, Any]]) -> list[dict[str, Any]]:
    with tempfile.TemporaryDirectory() as folder:
        source, target = f"{folder}/cases", f"{folder}/answers"
        pathlib.Path(source).write_text("".join(encode(case) + "\n" for case in cases), encoding="utf-8")
        done = subprocess.run(
            [sys.executable, str(HERE), "child", module, source, target],
            capture_output=True,
            text=True,
            env=os.environ | {"OMP_NUM_THREADS": "1"} | other_framework(cases[0]),
        )
        answers = (
            [json.loads(line) for line in pathlib.Path(target).read_text(encoding="utf-8").splitlines()]
            if os.path.exists(target)
            else []
        )
    if len(answers) != len(cases):
        raise SystemExit(f"{module}: measured {len(answers)} of {len(cases)} cases, then\n{done.stderr[-3000:]}")
    return [{"case": case} | answer for case, answer in zip(cases, answers, strict=True)]


def other_framework(case: dict[str, Any]) -> dict[str, str]:
    """Where a child finds another transformers than the environment's: "transformers-4.44" lies in frameworks/4.44."""
    framework = case.get("plan", {}).get("framework")
    return {} if framework is None else {"PYTHONPATH": str(FRAMEWORKS / framework.removeprefix("transformers-"))}


def measure(truth: Any, cases: list[dict[str, Any]], jobs: int) -> list[dict[str, Any]]:
    # kernels are patched for a whole process: cases that patch differently go to different ones
    alike = itertools.groupby(sorted(cases, key=patches), key=patches)
    chunks = [
        part[start : start + CHUNK]
        for part in (list(group) for _, group in alike)
        for start in range(0, len(part), CHUNK)
    ]
    with concurrent.futures.ThreadPoolExecutor(jobs) as pool:
        parts = list(pool.map(lambda part: measure_chunk(truth.module, part), chunks))
    measured = {encode(answer["case"]): answer for part in parts for answer in part}
    return [measured[encode(case)] for case in cases]


def patches(case: dict[str, Any]) -> str:
    """What a case changes for the whole process that measures it."""
    plan = case.get("plan", {})
    changed = {key: plan[key] for key in ("kernels", "loss", "framework") if key in plan}
    return encode(changed | ({"model": case["model"]} if changed.keys() & {"kernels", "loss"} else {}))


def write(truth: Any, answers: list[dict[str, Any]]) -> None:
    """One row a line, so that a changed number is a changed line."""
    rows = [encode({"case": a["case"], "measured": a["measured"]}) for a in answers if "measured" in a]
    refused = [encode({"case": a["case"], "refused": a["refused"]}) for a in answers if "refused" in a]
    GOLDEN.mkdir(parents=True, exist_ok=True)
    (GOLDEN / f"{truth.name}.json").write_text(
        f'{{"about":{encode(truth.about)},\n"versions":{encode(versions())},\n"rows":[\n'
        + ",\n".join(rows)
        + '\n],\n"refused":[\n'
        + ",\n".join(refused)
        + "\n]}\n",
        encoding="utf-8",
    )


def read(truth: Any) -> dict[str, dict[str, Any]] | None:
    """The recorded rows by case; None for a truth that nobody has recorded yet."""
    if not (GOLDEN / f"{truth.name}.json").exists():
        return None
    golden = json.loads((GOLDEN / f"{truth.name}.json").read_text(encoding="utf-8"))
    return {encode(row["case"]): row for row in golden["rows"] + golden["refused"]}


def differences(expected: Any, actual: Any, where: str = "") -> list[str]:
    """Every leaf that differs: where, golden, now."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        return [
            line
            for key in sorted(expected.keys() | actual.keys())
            for line in differences(expected.get(key), actual.get(key), f"{where}.{key}" if where else key)
        ]
    return [] if expected == actual else [f"{where}: golden {encode(expected)}, measured {encode(actual)}"]


def record(truths: list[Any], jobs: int) -> int:
    for truth in truths:
        start = time.monotonic()
        answers = measure(truth, list(truth.cases), jobs)
        write(truth, answers)
        refused = [answer for answer in answers if "refused" in answer]
        print(
            f"{truth.name}: {len(answers) - len(refused)} rows, {len(refused)} refused, {time.monotonic() - start:.0f} s",
            flush=True,
        )
        for answer in refused:
            print(f"  refused {encode(answer['case'])}: {answer['refused']}: {answer['why']}", flush=True)
    return 0


def check(truths: list[Any], full: bool, jobs: int) -> int:
    wrong = checked = 0
    for truth in truths:
        golden = read(truth)
        if golden is None:
            print(f"{truth.name}: {len(truth.cases)} cases wait to be recorded (make oracle TRUTH={truth.name})")
            continue
        cases = list(truth.cases) if full else list(truth.cases)[:: max(1, len(truth.cases) // truth.sample)]
        missing = [case for case in truth.cases if encode(case) not in golden]
        gone = len(golden.keys() - {encode(case) for case in truth.cases})
        if missing or gone:
            print(
                f"{truth.name}: {len(missing)} cases are in no golden and {gone} golden rows are no case; record it again"
            )
            wrong += len(missing) + gone
        for answer in measure(truth, [case for case in cases if encode(case) in golden], jobs):
            checked += 1
            answer.pop("why", None)
            found = differences(golden[encode(answer["case"])], answer)
            wrong += bool(found)
            for line in found:
                print(f"{truth.name} {encode(answer['case'])}\n    {line}")
    print(f"oracle: {checked} cases measured again, {wrong} differ")
    return 1 if wrong else 0


def main() -> int:
    parser = argparse.ArgumentParser(prog="tests/oracle")
    parser.add_argument("action", choices=["record", "check", "list"])
    parser.add_argument("truths", nargs="*")
    parser.add_argument("--full", action="store_true")
    parser.add_argument("--jobs", type=int, default=int(os.environ.get("ORACLE_JOBS", "2")))
    given = parser.parse_args()
    from cases import TRUTHS

    known = {truth.name: truth for truth in TRUTHS}
    if unknown := [name for name in given.truths if name not in known]:
        parser.error(f"unknown truth {unknown}; known: {', '.join(known)}")
    truths = [known[name] for name in given.truths] or list(TRUTHS)
    if given.action == "list":
        for truth in truths:
            print(f"{truth.name:24} {len(truth.cases):5} cases  {truth.about}")
        return 0
    return record(truths, given.jobs) if given.action == "record" else check(truths, given.full, given.jobs)


if __name__ == "__main__":
    if sys.argv[1:2] == ["child"]:
        child(*sys.argv[2:])
        sys.stdout.flush()
        os._exit(0)
    raise SystemExit(main())
