"""Without namespaces: ordinary programs work in a container of Docker's filter, for root and for an ordinary user."""

import gzip
import json
import os
import pathlib
import shutil
import stat

import containers
from containers import FilteredTest
from sbxtest import SOURCE, main

CALLERS = ((0, "own-uid"), (1000, "same-uid"))
# A name and a shell command each.
WORK = {
    "a commit in a new repository": "git init -q r && cd r && git config user.email u@example.org && git config user.name u && date > f && git add f && git commit -qm first && git log --oneline | grep -q first",
    "an archive keeps modes and times": "mkdir from && echo text > from/f && chmod 750 from && touch -d @86400 from/f && tar cf from.tar from && mkdir to && tar xpf from.tar -C to && test \"$(stat -c %a to/from) $(stat -c %Y to/from/f)\" = '750 86400'",
    "a copy of a tree": "mkdir tree && date > tree/f && cp -a tree copied && cmp tree/f copied/f",
    "a file moved to another directory": "python3 -c 'import os; os.mkdir(\"moved\"); open(\"f\", \"w\"); os.rename(\"f\", \"moved/f\"); os.link(\"moved/f\", \"f\")'",
    "a compiled program": "printf 'int main(void) { return 7; }' > seven.c && gcc -o seven seven.c && { ./seven; test $? = 7; }",
    "make with four jobs": "printf 'all: a b c d\\na b c d:\\n\\ttouch $@\\n' > Makefile && make -s -j4 && test -e d",
    "python": "python3 -c 'print(6 * 7)' | grep -qx 42",
    "pandas": "python3 -c 'import pandas; print(pandas.Series([1, 2, 3]).sum())' | grep -qx 6",
    "a chart": "python3 -c 'import matplotlib; matplotlib.use(\"Agg\"); import matplotlib.pyplot as plot; plot.plot([1, 3]); plot.savefig(\"chart.png\")' && test -s chart.png",
    "a pool of processes": "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\": print(m.Pool(2).map(abs, [-4]))' | grep -q 4",
    "a manager in a fork server": "python3 -c 'import multiprocessing as m\nif __name__ == \"__main__\": print(list(m.get_context(\"forkserver\").Manager().list([5])))' | grep -q 5",
    "an executor of processes": "python3 -c 'import concurrent.futures as c\nif __name__ == \"__main__\": print(list(c.ProcessPoolExecutor(2).map(abs, [-8])))' | grep -q 8",
    "a child of asyncio": "python3 -c 'import asyncio\nasync def f(): return await (await asyncio.create_subprocess_exec(\"true\")).wait()\nprint(asyncio.run(f()))' | grep -qx 0",
    "an environment of python": "python3 -m venv --without-pip place && place/bin/python -c 'import sys; print(sys.prefix)' | grep -q place",
    "temporary files": "python3 -c 'import shutil, tempfile; f = tempfile.NamedTemporaryFile(); f.write(b\"x\"); f.flush(); shutil.copy2(f.name, \"kept\")' && test -s kept",
    "node": "node -e 'console.log(require(\"os\").cpus().length > 0)' | grep -qx true",
    "threads and children of node": "node -e 'const { Worker } = require(\"worker_threads\"); new Worker(\"\", { eval: true }).on(\"exit\", (n) => console.log(n, require(\"child_process\").execSync(\"echo hi\").toString()))' | grep -q hi",
    "a server of node on a path": "node -e 'const net = require(\"net\"); const s = net.createServer((c) => c.end(\"hello\")).listen(\"./node.socket\", () => net.connect(\"./node.socket\").on(\"data\", (d) => { console.log(String(d)); process.exit(0) }))' | grep -q hello",
    "a package of npm": "mkdir package && cd package && npm init -y > /dev/null && npm pack 2> /dev/null | grep -q tgz",
    "process substitution": "bash -c 'cat <(echo through) | grep -q through'",
    "a here document": "bash -c 'cat <<< here | grep -q here'",
    "a signal to a child": "sh -c 'sleep 1000 & kill $!; wait $!; test $? = 143'",
    "sqlite": "python3 -c 'import sqlite3; c = sqlite3.connect(\"db\"); c.execute(\"create table t (x)\"); c.execute(\"insert into t values (3)\"); c.commit(); print(c.execute(\"select x from t\").fetchone())' | grep -q 3",
    "a file that is followed": "date > log && { timeout 3 tail -f log > seen; test -s seen; }",
    "standard streams by their names": "echo named | cat /dev/stdin > /dev/stdout",
    "a sort with files": "seq 300000 | sort -S 1M -n | tail -n 1 | grep -qx 300000",
    "perl": "perl -e 'print 9' | grep -qx 9",
    "pip": "python3 -m pip --version",
    "openssl": "openssl rand -hex 8",
    "who it is": "id -u",
    "xargs with four processes": "seq 20 | xargs -P 4 -n 1 true",
    "a list of processes": "ps",
    "a file in /tmp": "date > /tmp/hard-coded.$$",
}
MISSES = {"a list of processes", "a file in /tmp"}
# Which command each needs, where it is not there on every machine.
NEEDS = {"gcc": "compiled", "make": "make", "node": "node", "npm": "npm", "git": "commit", "openssl": "openssl"}
CHART = "import pandas, matplotlib\nmatplotlib.use('Agg')\nframe = pandas.DataFrame({'x': range(5)})\nframe.plot().figure.savefig('chart.png')\nprint(frame.x.sum())\n"
PROBLEMS = r"""
import json, subprocess, sys
failed = []
for name in json.load(open("/home/u/problems/names")):
    done = subprocess.run(["sbx", "run", "--isolation", "landlock", "-q", "-p", "python", "--json", "/home/u/problems/" + name], stdout=subprocess.PIPE)
    record = json.loads(done.stdout)
    if done.returncode != 0 or record["denials"] or record["limits_met"]:
        failed.append([name, record["outcome"], record["denials"], record["stderr"]["text"][-300:]])
print(json.dumps(failed))
"""
HUMANEVAL = pathlib.Path(os.environ.get("SBX_HUMANEVAL") or SOURCE.parent / "shared" / "data" / "HumanEval.jsonl.gz")


def script():
    lines = ["top=$PWD"]
    for name, command in WORK.items():
        if shutil.which("pip3") is None and name == "pip" or any(shutil.which(tool) is None for tool, word in NEEDS.items() if word in name):
            continue
        # In a shell of its own: a syntax error ends only that.
        quoted = command.replace("'", "'\\''")
        lines.append(f"cd $top; if sh -c '{quoted}' > out.log 2>&1; then echo 'works {name}'; else echo 'fails {name}'; tail -n 3 out.log >&2; fi")
    return "\n".join(lines)


class Work(FilteredTest):
    WAY = "same-uid"

    def container(self, uid):
        made = super().container(uid)
        self.user_home = self.root / "home/u"
        return made

    def write_for(self, name, text):
        path = self.user_home / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        for each in (path.parent, path):
            os.chown(each, 1000, 1000)
        return "/home/u/" + name

    def test_what_people_run_works(self):
        for uid, form in CALLERS:
            container = self.container(uid)
            place = self.write_for("work.sh", script())
            done = container.run("sbx", "run", "--isolation", "landlock", "--timeout", "110s", "--cpu-time", "110s", "--json", place)
            record = json.loads(done.stdout)
            self.assertEqual((record["isolation"]["form"], done.returncode), (form, 0), done)
            lines = record["stdout"]["text"].splitlines()
            failed = {line.removeprefix("fails ") for line in lines if line.startswith("fails ")}
            self.assertEqual(failed, MISSES, record["stderr"]["text"])
            print(f"uid {uid}, {form}: {len(lines) - len(failed)} of {len(lines)} work, but for {', '.join(sorted(failed))}")

    def test_a_chart_is_brought_out(self):
        for uid, _ in CALLERS:
            container = self.container(uid)
            place = self.write_for("work/draw.py", CHART)
            done = container.run("sh", "-c", f"cd /home/u/work && sbx run -p data-analysis --isolation landlock -q --out $HOME/out {place}; ls -A . $HOME/out")
            self.assertEqual(done.stdout.split(), ["10", ".:", "draw.py", f"{'/home/u' if uid else '/root'}/out:", "chart.png"], done)

    def test_a_commit_is_applied(self):
        """As a run in namespaces leaves it, ids and times apart."""
        commands = "git init -q . && git config user.email u@example.org && git config user.name u && echo new > new && chmod 755 new && mkdir d && ln -s ../new d/link && rm old && git add -A && git commit -qm second"
        seen = []
        for uid, way in ((0, "landlock"), (1000, "landlock"), (0, None)):
            container = self.container(uid)
            if way is None:  # without Docker's filter: in namespaces
                container = containers.Container(self.tmp / "whole", 0, None, "docker", False)
                self.user_home = container.directory / "rootfs/home/u"
            self.write_for("work/old", "old\n")
            options = f"--isolation {way or 'namespaces'}"
            done = container.run("sh", "-c", f"cd /home/u/work && sbx run -q {options} --workspace .:overlay --apply --yes -- sh -c '{commands}'; echo $?")
            self.assertEqual(done.stdout.splitlines()[-1:], ["0"], done)
            seen.append(self.tree(self.user_home / "work"))
        self.assertEqual(seen[0], seen[2])
        self.assertEqual(seen[1], seen[2])
        self.assertIn("new", seen[0])

    @staticmethod
    def tree(root):
        """Names, kinds, modes and contents, but for those of git, which hold times."""
        found = {}
        for path in sorted(root.rglob("*")):
            name = path.relative_to(root).as_posix()
            facts = path.lstat()
            content = os.readlink(path) if path.is_symlink() else path.read_bytes() if path.is_file() and not name.startswith(".git") else None
            if not name.startswith((".git/objects", ".git/logs")):
                found[name] = (stat.S_IFMT(facts.st_mode), stat.S_IMODE(facts.st_mode), content)
        return found

    def solve(self, step):
        if not HUMANEVAL.exists():
            self.skipTest("HumanEval.jsonl.gz is not here (SBX_HUMANEVAL, ../shared/data)")
        with gzip.open(HUMANEVAL, "rt", encoding="utf-8") as lines:
            problems = [json.loads(line) for line in lines][::step]
        for uid, form in CALLERS:
            container = self.container(uid)
            names = []
            for problem in problems:
                text = problem["prompt"] + problem["canonical_solution"] + "\n" + problem["test"] + f"\ncheck({problem['entry_point']})\n"
                names.append(problem["task_id"].replace("/", "-") + ".py")
                self.write_for("problems/" + names[-1], text)
            for first in range(0, len(names), 24):  # so that none takes long
                self.write_for("problems/names", json.dumps(names[first:first + 24]))
                done = container.run("python3", "-c", PROBLEMS)
                self.assertEqual(json.loads(done.stdout or "null"), [], done)
            print(f"uid {uid}, {form}: {len(problems)} of {len(problems)} problems of HumanEval pass")

    def test_problems_of_humaneval_pass(self):
        self.solve(14)

    def test_slow_every_problem_of_humaneval_passes(self):
        self.solve(1)


if __name__ == "__main__":
    main()
