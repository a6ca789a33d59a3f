#!/usr/bin/env python3
"""sessions.py SBX [ROUNDS [PEERS.PY]]: what a session costs, beside bubblewrap and cp; as a table.

    exec        `session exec NAME -- true`, the whole command, beside a cold `bwrap … true` with the arguments of PEERS.PY
                (default: ../shared/bench/peers.py), `sbx run -- true`, `sbx --version` and `true` alone; one by one, taking
                turns, and four at once
    cells       `session eval` of 1+1, the whole command, where Python has IPython and where not: ms over an empty `sbx --version`, and
                beside a kernel of Jupyter (python3-ipykernel, driven by its blocking client) in the same run; the first cell of a
                context, which starts an interpreter, beside the start of a kernel and its first result
    start       `session start`, until it takes calls, beside the same
    put, get    a file of SBX_BENCH_MIB (1024) beside cp; the file, the sandbox's disk and the result are on tmpfs (/dev/shm)
    memory      PSS of an idle session, which is its process and the sandbox's PID 1

Root measures as root and then as an ordinary user. Peers that are missing are left out. Exits with 1 if an aim of
PERFORMANCE.md is missed. Needs a quiet machine: the load is printed."""

import importlib.util
import json
import os
import pathlib
import shutil
import statistics
import subprocess
import sys
import tempfile
import time

HERE = pathlib.Path(__file__).resolve()
TRUE = "/usr/bin/true"
AT_ONCE = 4
BATCH = 40  # runs of one kind between those of another, four at once
MIB = 1 << 20
PROMISED = {"exec": 0.6, "eval": 2.0, "first": 60.0, "memory": 3.0}


def p95(values):
    return sorted(values)[int(0.95 * (len(values) - 1))]


class Bench:
    def __init__(self, sbx, rounds, peers):
        self.sbx, self.rounds = os.path.abspath(sbx), rounds
        self.directory = pathlib.Path(tempfile.mkdtemp(prefix="sbx-bench-", dir="/dev/shm"))
        self.home = self.directory / "home"
        self.home.mkdir()
        self.environment = {"PATH": "/usr/local/bin:/usr/bin:/bin", "LANG": "C", "HOME": str(self.home)}
        self.null = os.open("/dev/null", os.O_RDWR)
        self.bwrap, self.filter = self.find_bwrap(peers)
        self.missed = False

    def find_bwrap(self, peers):
        """(its command for `true`, the file that it reads as descriptor 9)"""
        if not shutil.which("bwrap") or not os.path.isfile(peers):
            print(f"no bubblewrap: {'bwrap' if os.path.isfile(peers) else peers} is missing", flush=True)
            return None, None
        os.environ["SBX_BENCH_DIR"] = str(self.directory)
        spec = importlib.util.spec_from_file_location("peers", peers)
        module = importlib.util.module_from_spec(spec)
        sys.dont_write_bytecode = True
        spec.loader.exec_module(module)
        filter_file = self.directory / "deny.bpf"
        filter_file.write_bytes(module.bpf_deny())
        command = module.Peer("bwrap", *module.PEERS["bwrap"]).argv([TRUE])
        return [shutil.which("bwrap"), *command[1:]], filter_file

    def begin(self, command):
        actions = [(os.POSIX_SPAWN_DUP2, self.null, fd) for fd in range(3)]
        if command is self.bwrap:
            actions.append((os.POSIX_SPAWN_OPEN, 9, str(self.filter), os.O_RDONLY, 0))
        return os.posix_spawn(command[0], command, self.environment, file_actions=actions)

    def once(self, command):
        """Milliseconds, and those of CPU time that its own processes are known to have used."""
        began = time.perf_counter_ns()
        _, status, used = os.wait4(self.begin(command), 0)
        spent = (time.perf_counter_ns() - began) / 1e6
        if status != 0:
            raise SystemExit(f"sessions.py: status {status}: {command}")
        return spent, (used.ru_utime + used.ru_stime) * 1000

    def session(self, *words, check=True):
        return subprocess.run([self.sbx, "session", *map(str, words)], env=self.environment, cwd=self.directory, check=check, capture_output=True,
                              stdin=subprocess.DEVNULL)

    def start(self, name, *options):
        return json.loads(self.session("start", "--json", *options, name).stdout)

    def kinds(self):
        kinds = {"true": [TRUE], "sbx --version": [self.sbx, "--version"], "session exec": [self.sbx, "session", "exec", "bench", "--", TRUE],
                 "sbx run": [self.sbx, "run", "-q", "--", TRUE]}
        if self.bwrap:
            kinds["bwrap"] = self.bwrap
        return kinds

    def row(self, name, values, base, unit="ms", aim=None):
        middle = statistics.median(values)
        ratio = f"{middle / base:.2f}" if base else ""
        missed = aim is not None and base and middle / base > aim
        self.missed |= bool(missed)
        most = f" of at most {aim:g}" if aim and base else ""
        print(f"| {name} | {len(values)} | {middle:.2f} {unit} | {p95(values):.2f} | {min(values):.2f} | {ratio}{most}{' NOT MET' if missed else ''} |", flush=True)

    def one_by_one(self):
        times = {name: [] for name in self.kinds()}
        spent = {name: [] for name in times}
        kinds = list(self.kinds().items())
        for turn in range(-3, self.rounds):
            for name, command in kinds[turn % len(kinds):] + kinds[:turn % len(kinds)]:
                wall, cpu = self.once(command)
                if turn >= 0:  # the first ones fill caches
                    times[name].append(wall)
                    spent[name].append(cpu)
        print("\n| one by one | n | median | p95 | least | × bwrap |\n|---|---|---|---|---|---|")
        base = statistics.median(times["bwrap"]) if self.bwrap else None
        for name, values in times.items():
            self.row(name, values, base, aim=PROMISED["exec"] if name == "session exec" else None)
        print(f"CPU time of `session exec` itself, without what the session does for it: {statistics.mean(spent['session exec']):.2f} ms")

    def plain_python(self):
        """Starts a session whose Python has no IPython: a virtual environment. Cells there run in sbx's own shell."""
        directory = self.directory / "venv"
        subprocess.run(["/usr/bin/python3", "-m", "venv", "--without-pip", directory], check=True)
        before = self.environment
        self.environment = {**before, "PATH": f"{directory}/bin:{before['PATH']}"}
        self.start("plain")
        self.environment = before

    def cells(self):
        """In turns: a cell of a context that stays, one of a new context, with and without IPython, and the same with a kernel."""
        self.plain_python()
        cell, first = {}, {}
        for name, shell in (("plain", "no IPython"), ("bench", "IPython")):
            cell[f"1+1, {shell}"] = [self.sbx, "session", "eval", name, "-c", "1+1"]
            first[f"first cell, {shell}"] = [self.sbx, "session", "eval", name, "--context", "first", "-c", "1+1"]
        for command in cell.values():
            self.once(command)
        Kernel = self.kernel_class()
        kept = Kernel and Kernel()
        times = {name: [] for name in ["sbx --version", *cell, "1+1, kernel", *first, "start and first 1+1, kernel"]}
        for turn in range(-3, self.rounds):
            took = {name: self.once(command)[0] for name, command in {"sbx --version": [self.sbx, "--version"], **cell}.items()}
            if kept:
                took["1+1, kernel"] = kept.cell()
            if turn % 10 == 0:  # these take a hundred times as long
                for name, command in first.items():
                    took[name] = self.once(command)[0]
                    self.session("restart", command[3], "first")
                if Kernel:
                    kernel = Kernel()
                    took["start and first 1+1, kernel"] = kernel.first
                    kernel.stop()
            if turn >= 0:
                for name, spent in took.items():
                    times[name].append(spent)
        if kept:
            kept.stop()
        self.session("stop", "plain")
        self.cell_rows(times)

    def cell_rows(self, times):
        middle = {name: statistics.median(values) for name, values in times.items() if values}
        print("\n| cells | n | median | p95 | least | × kernel |\n|---|---|---|---|---|---|")
        for name, values in times.items():
            kernel = "1+1, kernel" if name.startswith("1+1") else "start and first 1+1, kernel"
            if values:
                self.row(name, values, middle.get(kernel) if name != "sbx --version" else None)
        over = {name: middle[name] - middle["sbx --version"] for name in middle if name.startswith("1+1,") and "kernel" not in name}
        for name, most in over.items():
            self.promise(f"{name}: over an empty `sbx --version`", most, PROMISED["eval"])
        for name in ("first cell, no IPython", "first cell, IPython"):
            self.promise(name, middle[name], PROMISED["first"])

    def promise(self, what, took, most):
        self.missed |= took > most
        print(f"{what}: {took:.2f} ms of at most {most:g}{' NOT MET' if took > most else ''}", flush=True)

    def kernel_class(self):
        """Jupyter's kernel, or None."""
        os.environ.update(JUPYTER_RUNTIME_DIR=str(self.directory / "jupyter"), JUPYTER_DATA_DIR=str(self.directory / "jupyter"), IPYTHONDIR=str(self.directory / "ipython"),
                          PYDEVD_DISABLE_FILE_VALIDATION="1")  # else it warns of frozen modules
        try:
            import ipykernel  # noqa: F401
            from jupyter_client.manager import KernelManager
        except ImportError as error:
            print(f"no kernel beside the cells: {error}", flush=True)
            return None
        environment = {**self.environment, "JUPYTER_RUNTIME_DIR": os.environ["JUPYTER_RUNTIME_DIR"], "IPYTHONDIR": os.environ["IPYTHONDIR"]}

        class Kernel:
            """A kernel that has given one result; first: the milliseconds that it took."""

            def __init__(self):
                began = time.perf_counter_ns()
                self.manager = KernelManager(kernel_name="python3")
                self.manager.start_kernel(env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
                self.client = self.manager.client()
                self.client.start_channels()
                self.client.wait_for_ready(timeout=60)
                self.cell()
                self.first = (time.perf_counter_ns() - began) / 1e6

            def cell(self):
                """Milliseconds."""
                shown = []
                began = time.perf_counter_ns()
                self.client.execute_interactive("1+1", output_hook=shown.append, timeout=60)
                spent = (time.perf_counter_ns() - began) / 1e6
                if not any(message["msg_type"] == "execute_result" and message["content"]["data"]["text/plain"] == "2" for message in shown):
                    raise SystemExit("sessions.py: the kernel gave no result")
                return spent

            def stop(self):
                self.client.stop_channels()
                self.manager.shutdown_kernel(now=True)
        return Kernel

    def batch(self, command):
        """Runs per second."""
        began, left, live = time.perf_counter(), BATCH, set()
        while left or live:
            while left and len(live) < AT_ONCE:
                live.add(self.begin(command))
                left -= 1
            pid, status = os.wait()
            live.discard(pid)
            if status != 0:
                raise SystemExit(f"sessions.py: status {status}, {AT_ONCE} at once: {command}")
        return BATCH / (time.perf_counter() - began)

    def four_at_once(self):
        kinds = {name: command for name, command in self.kinds().items() if name not in ("true", "sbx --version")}
        rates = {name: [] for name in kinds}
        for turn in range(max(self.rounds // 10, 5)):
            for name, command in list(kinds.items())[turn % len(kinds):] + list(kinds.items())[:turn % len(kinds)]:
                rates[name].append(1000 * AT_ONCE / self.batch(command))
        print(f"\n| {AT_ONCE} at once, ms each of {BATCH} took | n | median | p95 | least | × bwrap |\n|---|---|---|---|---|---|")
        base = statistics.median(rates["bwrap"]) if self.bwrap else None
        for name, values in rates.items():
            self.row(name, values, base, aim=PROMISED["exec"] if name == "session exec" else None)

    def starts(self):
        starts, stops, peers = [], [], []
        for turn in range(max(self.rounds // 3, 20)):
            starts.append(self.once([self.sbx, "session", "start", f"t{turn}"])[0])
            if self.bwrap:
                peers.append(self.once(self.bwrap)[0])
            stops.append(self.once([self.sbx, "session", "stop", f"t{turn}"])[0])
        print("\n| start of a session | n | median | p95 | least | × bwrap |\n|---|---|---|---|---|---|")
        base = statistics.median(peers) if peers else None
        self.row("session start", starts, base)
        self.row("session stop", stops, base)

    def files(self):
        size = int(os.environ.get("SBX_BENCH_MIB", "1024"))
        available = next(int(line.split()[1]) for line in open("/proc/meminfo") if line.startswith("MemAvailable")) >> 10
        if available < 4 * size:
            return print(f"\nno put and get: {available} MiB of memory for three files of {size}")
        source = self.directory / "large"
        with open(source, "wb") as file:
            block = os.urandom(MIB)
            for _ in range(size):
                file.write(block)
        bytes_max = f"{2 * size}M"
        self.start("files", "--memory", f"{4 * size}M", "--disk", bytes_max, "--set", f'limits.file_size="{bytes_max}"', "--set",
                   f'filesystem.outputs.max_bytes="{bytes_max}"', "--timeout", "10m")
        times = {"cp": [], "put": [], "get": []}
        copy, out = self.directory / "copy", self.directory / "out"
        for _ in range(6):
            times["cp"].append(self.once([shutil.which("cp"), str(source), str(copy)])[0])
            copy.unlink()
            os.chdir(self.directory)
            times["put"].append(self.once([self.sbx, "session", "put", "files", str(source)])[0])
            times["get"].append(self.once([self.sbx, "session", "get", "--out", str(out), "files", "large"])[0])
            same = subprocess.run(["cmp", source, out / "large"]).returncode == 0
            if not same:
                raise SystemExit("sessions.py: what came back is something else")
            shutil.rmtree(out)
            self.session("exec", "files", "--", "rm", "large")
        self.session("stop", "files")
        source.unlink()
        print(f"\n| {size} MiB | n | median | p95 | least | × cp |\n|---|---|---|---|---|---|")
        # The first round touches memory that a virtual machine's host may not have given yet.
        for name, values in times.items():
            self.row(name, values[1:], statistics.median(times["cp"][1:]))

    def memory(self):
        """KiB of PSS of each, 200 ms after the start and after ten calls."""
        def pss(pid):
            return next(int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith("Pss:"))

        def parts(pid):
            fields = {line.split(":")[0]: int(line.split()[1]) for line in open(f"/proc/{pid}/smaps_rollup") if line.startswith(("Pss_", "Rss"))}
            return f"RSS {fields['Rss']}, of its PSS {fields['Pss_Anon']} anonymous, {fields['Pss_File']} of files"
        pid = self.start("idle")["pid"]
        init = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])
        try:
            pss(pid)
        except PermissionError:  # it is not dumpable
            return print("\nno memory: the session's process lets only root look into it")
        print("\n| own memory of an idle session, PSS in KiB | its process | PID 1 | together |\n|---|---|---|---|")
        for when in ("after its start", "after ten calls"):
            time.sleep(0.2)  # PID 1 gives pages back when it is at rest
            both = pss(pid), pss(init)
            missed = sum(both) > PROMISED["memory"] * 1024
            self.missed |= missed
            most = f"of at most {PROMISED['memory'] * 1024:.0f}{' NOT MET' if missed else ''}"
            print(f"| {when} | {both[0]} | {both[1]} | {sum(both)} {most} |", flush=True)
            for _ in range(10):
                self.session("exec", "idle", "--", TRUE)
        print(f"its process: {parts(pid)}; PID 1: {parts(init)}")
        self.session("stop", "idle")


def main():
    callers = ["root", "user"] if os.geteuid() == 0 and "SBX_BENCH_CALLER" not in os.environ else []
    ends = [subprocess.run([HERE.parents[1] / "run-as", who, "/usr/bin/python3", __file__, *sys.argv[1:]],
                           env={**os.environ, "SBX_BENCH_CALLER": who}).returncode for who in callers]
    if ends:
        return max(ends)
    who = "root" if os.geteuid() == 0 else "an ordinary user"
    print(f"\n# as {who}; Linux {os.uname().release}, {os.cpu_count()} CPUs, load {os.getloadavg()[0]:.2f}", flush=True)
    bench = Bench(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 100,
                  sys.argv[3] if len(sys.argv) > 3 else HERE.parents[3] / "shared/bench/peers.py")
    try:
        bench.start("bench")
        bench.one_by_one()
        bench.cells()
        bench.four_at_once()
        bench.starts()
        bench.memory()
        bench.files()
    finally:
        bench.session("stop", "--all", check=False)
        shutil.rmtree(bench.directory, ignore_errors=True)
    print(f"load at the end {os.getloadavg()[0]:.2f}")
    return int(bench.missed)


if __name__ == "__main__":
    sys.exit(main())
