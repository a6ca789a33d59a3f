"""The tables of sbx-security(7), "WHAT EACH WAY KEEPS": what programs try in each way to wall them off, on this kernel, and what becomes of it.

The same must hold for each caller of a way; a row that ends in ", as root" says where it does not. A cell is "enforced" (nothing of what the row says succeeds), "works" (all of it does),
"refused" (sbx ends with an error that says so), the way that is taken instead, or weaker and named by the record: the name, or "degraded" where the row has that name.
"LOST" stands in no manual: the record was silent. The test prints what it sees, in the form that the manual has."""

import json
import os
import re

import containers
import outside
from harness import SOURCE
from sbxtest import SbxTest, main, tmpfs_takes_user_attributes

LANDLOCK = ["--isolation", "landlock", "-q"]
# Of each way the callers (uid, and capabilities of their container), and the options.
WAYS = {"shielded": (((0, "docker"), (1000, "docker")), ["-q"]), "own-uid": (((0, "docker"),), LANDLOCK),
        "same-uid": (((0, "none"), (1000, "docker")), LANDLOCK)}
# Which ABI came with which kernel.
KERNELS = {"6.12": 6}
# With namespaces these reach only what the program has of its own, its init included.
OWN = {"kill the keeper", "take the server's port", "listen on any port", "ask netlink", "list shared memory"}
READ_HIDDEN = ("sh", "-c", "cat /host/a.txt && ! cat /host/.env")
ASKED = {
    "filesystem.read": (["--read", "/host"], ("cat", "/host/a.txt")),
    "filesystem.write": (["--write", "/host/plain"], ("touch", "/host/plain/a")),
    "a grant with hidden names": (["--write", "/host"], ("touch", "/host/a.txt")),
    "filesystem.deny": (["--workspace", "/host:read-only"], READ_HIDDEN),
    "filesystem.sockets": (["--set", 'filesystem.sockets=["/host/stream"]'],
                           ("python3", "-c", "import socket; socket.socket(socket.AF_UNIX).connect('/host/stream')")),
    "workspace, empty": (["--set", 'filesystem.workspace.mode="empty"'], ("touch", "a")),
    "workspace, read-only": (["--workspace", "/host:read-only"], ("cat", "a.txt")),
    "filesystem.workspace.mode": (["--workspace", "/host:overlay"], ("touch", "a.txt")),
    "workspace, read-write": (["--workspace", "/host/plain:read-write"], ("touch", "a")),
    "network, host": (["--net", "host"], ("true",)),
    "network, allow-list": (["--allow-host", "example.org:443"], ("true",)),
    "--explain": (["--explain"], ("true",)),
    "--require proc": (["--require", "proc"], ("true",)),
    "--require namespaces": (["--require", "namespaces"], ("true",)),
    "--require own-uid": (["--require", "own-uid"], ("true",)),
}
FORKS = "import os, signal\nn = 1\ntry:\n    while os.fork(): n += 1\n    signal.pause()\nexcept OSError: print(n)"
SPENT = {
    "limits.processes": (["--processes", "20"], FORKS),
    "limits.memory": (["--memory", "100M"], "x = []\nwhile True: x.append(bytearray(2**20))"),
    "limits.disk": (["--disk", "20M"], "f = open('big', 'wb')\nwhile True: f.write(bytes(2**20)); f.flush()"),
    "limits.wall_time": (["--timeout", "1s"], "import time\ntime.sleep(3600)"),
    "limits.cpu_time": (["--cpu-time", "1s"], "while True: pass"),
}
# The means for these depend on the machine, not on the way.
MEANS_VARY = {"limits.memory", "limits.cpu_time"}
# Runs sbx with each list of words, and prints the status and the record of each.
RUNS = """
import json, os, socket, subprocess, sys
kept = socket.socket(socket.AF_UNIX)
os.umask(0)
kept.bind("/host/stream")
os.umask(0o022)
kept.listen(8)
os.mkdir("/host/plain")
for name in ("a.txt", ".env"):
    open("/host/" + name, "w").write("text")
answers = {}
for name, words in json.loads(sys.argv[1]).items():
    done = subprocess.run(["sbx", "run", "--json", *words], stdout=subprocess.PIPE, stdin=subprocess.DEVNULL)
    answers[name] = done.returncode, json.loads(done.stdout)
print(json.dumps(answers))
"""


def table(name):
    """{row: {way: cell}} of the manual, as it is for this kernel."""
    text = (SOURCE / "man/sbx-security.7").read_text()
    part, = re.findall(rf'^\.\\" Table: {name}\n.*?\n(.*?)^\.Ed', text, re.MULTILINE | re.DOTALL)
    _, *lines = [re.split("  +", line) for line in part.splitlines()]
    found = {}
    for label, *cells in lines:  # those of older kernels come last
        row, _, kernel = label.partition(" before Linux ")
        if not kernel or containers.landlock_abi() < KERNELS[kernel]:
            found[row] = dict(zip(WAYS, cells, strict=True))
    return found


def weaker(row, record, names=()):
    """How a cell says that the record names one of them; None if it names none."""
    told = {each["what"] for each in record["degraded"]}
    return "degraded" if row in told else next((name for name in names if name in told), None)


def judged(rows, answers, record, kept, word):
    """{row: cell} of a program that printed an answer for each attempt."""
    return {row: word if all(answers[each] == kept for each in attempts) else weaker(row, record, names) or "LOST"
            for row, (names, attempts) in rows.items()}


def cell_of_run(row, status, record, way=None):
    if status == 125:
        return "refused" if record["outcome"]["code"] in ("needs-namespaces", "requirement-not-met", "no-landlock-tier") else record["outcome"]["code"]
    form = (record.get("isolation") or {}).get("form")
    if status == 0 and way and form not in (None, way):
        return form
    return (weaker(row, record) or "works") if status == 0 else "LOST"


def cell_of_limit(row, record):
    limit = row.removeprefix("limits.")
    is_met = record["outcome"]["reason"] == limit or limit in [each["limit"] for each in record["limits_met"]]
    is_kept = is_met and (limit != "processes" or record["stdout"]["text"] == "20\n")
    return (row not in MEANS_VARY and weaker(row, record) or "enforced") if is_kept else "LOST"


class Kept(SbxTest):
    NEEDS_NAMESPACES = False

    def setUp(self):
        super().setUp()
        if why := containers.why_not():
            self.skipTest(why)

    def run_in(self, uid, capabilities, *words):
        self.count = getattr(self, "count", 0) + 1
        container = containers.Container(self.tmp / f"container{self.count}", uid, None, capabilities, True)
        host = container.directory / "rootfs/host"
        host.mkdir()
        os.chown(host, uid, uid)
        done = container.run(*words)
        self.assertNotEqual(done.stdout, "", done)
        return done.stdout

    def answers(self, uid, capabilities, runs):
        return json.loads(self.run_in(uid, capabilities, "python3", "-c", RUNS, json.dumps(runs)))

    def is_in_the_manual(self, name, tried, ways):
        """`tried` gives {row: cell} for a way, a caller and the options."""
        seen = {}
        for way in ways:
            callers, options = WAYS[way]
            columns = [tried(way, *caller, options) for caller in callers]
            for row, cell in columns[-1].items():
                seen.setdefault(row, {})[way] = cell
                seen.setdefault(f"{row}, as root", {})[way] = columns[0][row]
        for row in [row for row in seen if f"{row}, as root" in seen and seen[row] == seen[f"{row}, as root"]]:
            del seen[f"{row}, as root"]
        print(f"{name}, Landlock ABI {containers.landlock_abi()}", *(f"{row:<28}{'  '.join(f'{cell:<10}' for cell in cells.values())}" for row, cells in seen.items()), sep="\n")
        told = {row: {way: cells[way] for way in ways} for row, cells in table(name).items()}
        # The ways of this kernel may not be those where root differs.
        self.assertEqual(seen, {row: cells for row, cells in told.items() if told.get(row.removesuffix(", as root")) != cells or not row.endswith(", as root")})

    def ways_here(self):
        return [way for way in WAYS if containers.why_not(way) is None]

    def test_what_there_is(self):
        self.is_in_the_manual("where each is", lambda way, uid, capabilities, options: {"a run": cell_of_run(
            "", *self.answers(uid, capabilities, {"a run": [*options, "--", "true"]})["a run"])}, WAYS)

    def test_what_leads_out(self):
        def tried(way, uid, capabilities, options):
            without, _, record = self.run_in(uid, capabilities, "python3", "-c", outside.AROUND, outside.ATTEMPTS, "--json", *options).partition("\n")
            # The twin: without a sandbox each of them is there to be reached.
            without = json.loads(without)
            self.assertEqual(set(without) - outside.opened(without) - outside.NOT_EVERYWHERE, set())
            record = json.loads(record)
            inside = json.loads(record["stdout"]["text"])
            if way == "shielded":
                inside |= dict.fromkeys(OWN, "refused")
            print(f"{way}, uid {uid}: {len(inside)} attempts, {len(inside) - len(outside.opened(inside))} refused")
            return judged(outside.rows(outside.ATTEMPTS), inside, record, "refused", "enforced")

        self.is_in_the_manual("what leads out", tried, self.ways_here())

    def test_what_a_program_has(self):
        allowed = 'syscalls.allow=["semget", "msgget", "@debug"]'

        def tried(way, uid, capabilities, options):
            _, record = self.answers(uid, capabilities, {"uses": [*options, "--set", allowed, "--", "python3", "-c", outside.USES, "container"]})["uses"]
            answers = json.loads(record["stdout"]["text"])
            if way == "shielded" and not tmpfs_takes_user_attributes():
                answers["set an attribute"] = "open"  # the manual says that the kernel lacks it
            return judged(outside.rows(outside.USES), answers, record, "open", "works")

        self.is_in_the_manual("what a program has", tried, self.ways_here())

    def test_what_can_be_asked_for(self):
        def tried(way, uid, capabilities, options):
            runs = {row: [*options, *asked, "--", *words] for row, (asked, words) in ASKED.items()}
            return {row: cell_of_run(row, *answer, way) for row, answer in self.answers(uid, capabilities, runs).items()}

        self.is_in_the_manual("what can be asked for", tried, self.ways_here())

    def test_what_is_limited(self):
        def tried(way, uid, capabilities, options):
            runs = {row: [*options, *asked, "--", "python3", "-c", program] for row, (asked, program) in SPENT.items()}
            return {row: cell_of_limit(row, record) for row, (_, record) in self.answers(uid, capabilities, runs).items()}

        self.is_in_the_manual("what is limited", tried, self.ways_here())


if __name__ == "__main__":
    main()
