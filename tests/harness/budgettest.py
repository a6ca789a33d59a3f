"""Runs causes (causes.py) under sbx, judges the reports, and keeps cells for the matrix."""

import json
import os
import pathlib
import subprocess

import sbxtest
from causes import CAUSES, EXITED
from harness import HANG
from sbxtest import PROBE, SbxTest

MIB = 1 << 20
TICK_MS, LATE_MS = 10, 250
STATUS = {"memory": 137, "cpu_time": 152, "wall_time": 124, "output": 153, "file_size": 153, "disk": 153}
CELLS = pathlib.Path(os.environ.get("SBX_BUILD", ".")) / "budget-matrix"


class Ticker:
    """A process on the host that wakes up every 10 ms; `late` is its largest delay beyond that, in ms."""

    def __enter__(self):
        self.process = sbxtest.start([PROBE, "tick", str(TICK_MS)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        self.process.stdout.readline()
        return self

    def __exit__(self, *_):
        out, _ = self.process.communicate()
        self.late = int(out)


def means_of(ended):
    return ended.record["enforced"]["memory"]


def caller():
    return "root" if sbxtest.IS_ROOT else "user"


class BudgetTest(SbxTest):
    def setUp(self):
        super().setUp()
        self.live = self.tmp / "live"
        self.live.mkdir()

    def run_cause(self, cause, command, options=None, **rest):
        words = [word.replace("{live}", str(self.live)) for word in (*(options or cause.options), *command)]
        ended = self.sbx(*words, timeout=HANG, **rest)
        for path in self.live.iterdir():
            path.unlink()
        return ended

    @staticmethod
    def missing(cause, ended):
        """The entry of `degraded` that explains why it can't be enforced here, or None."""
        if not cause.without or ended.record is None:
            return None
        key, why = cause.without
        return next((entry for entry in ended.record["degraded"] if entry["what"] == key and entry["why"].startswith(why)), None)

    def expected(self, cause, ended):
        """(status, reason), limit reached, entry of `degraded` or None, output or None."""
        means = means_of(ended)
        if means in cause.unless:
            return cause.unless[means]
        if self.missing(cause, ended) and ended.verdict != cause.ends:  # slow forks use up the budget
            return EXITED, None, cause.without[0], "worked"
        met = None if cause.passing and means == "polled" else cause.met
        return cause.ends, met, None, None

    def wrong(self, cause, ended):
        """What is wrong in the report about the program beyond the budget; empty if nothing."""
        if ended.record is None:
            return "no record"
        ends, met, weaker, printed = self.expected(cause, ended)
        status, reason = ended.verdict
        found = []
        in_time = cause.finishes and (status, reason) == ("exited", None)
        if ends and (status, reason) != ends and not in_time:
            found.append(f"ended as {ended.verdict}, not {ends}")
        if reason in STATUS and ended.status != STATUS[reason]:
            found.append(f"exit status {ended.status}, not {STATUS[reason]}")
        named = met in [limit["limit"] for limit in ended.record["limits_met"]]
        said = not cause.said or cause.said in (ended.text or "")
        if met and said and not named:
            found.append(f"{met} is not in limits_met")
        if reason and status == "over-budget" and f"limits.{reason}" not in (ended.outcome["rule"] or "") and reason != "output":
            found.append("the rule does not name the key")
        if weaker and weaker not in [entry["what"] for entry in ended.record["degraded"]]:
            found.append(f"{weaker} is not in degraded")
        if printed and printed not in (ended.text or ""):
            found.append(f"the program did not say {printed!r}")
        return "; ".join(found)

    def cell(self, cause, ended, late):
        """One line of the matrix."""
        record = ended.record
        usage, met = record["usage"], {limit["limit"]: limit for limit in record["limits_met"]}
        _, _, weaker, _ = self.expected(cause, ended)
        entry = self.missing(cause, ended) or next((entry for entry in record["degraded"] if entry["what"] == weaker), None)
        status, reason = ended.verdict
        return {
            "order": CAUSES.index(cause), "means": means_of(ended), "caller": caller(), "cause": cause.name,
            "verdict": status + (f" {reason}" if reason else f" {ended.outcome['exit_code']}" if status == "exited" else ""),
            "met": ", ".join(f"{name} ({limit['evidence']})" for name, limit in met.items()),
            "over": self.overshoot(cause, record, met), "ms": usage["wall_ms"], "late": late,
            "weaker": f"{entry['why']}; {entry['instead']}" if entry else "",
        }

    @staticmethod
    def overshoot(cause, record, met):
        """By how much the budget was exceeded, in the cause's unit; empty if it was not."""
        limits, usage = record["limits"], record["usage"]
        if cause.unit == "ms CPU":
            used = usage["user_ms"] + usage["system_ms"]
            return f"{used - limits['cpu_time_ms']:+d} ms CPU" if record["outcome"]["reason"] == "cpu_time" else f"{used} ms CPU in {usage['wall_ms']} ms"
        if cause.unit == "ms":
            return f"{usage['wall_ms'] - limits['wall_time_ms']:+d} ms" if record["outcome"]["reason"] == "wall_time" else ""
        limit = met.get(cause.met)
        if limit is None or limit.get("peak") is None:
            return ""
        if cause.unit == "MiB":
            return f"{(limit['peak'] - limit['value']) / MIB:+.1f} MiB"
        return f"{limit['peak'] - limit['value']:+d} {cause.unit}"

    def keep(self, cell):
        """For the matrix: writes it to the build directory, or to the serial line of a guest."""
        print("\n@@CELL " + json.dumps(cell), flush=True)
        if not CELLS.is_dir():
            return
        name = f"{cell['means']}-{cell['caller']}-{cell['cause']}".replace("/", "-").replace(" ", "_")
        target = CELLS / f"{name}.json"
        partial = CELLS / f".{name}.{os.getpid()}"
        partial.write_text(json.dumps(cell))
        try:
            os.replace(partial, target)
        except PermissionError:  # another caller's file in a shared directory with the sticky bit
            partial.unlink()
