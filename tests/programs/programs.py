"""Real programs that must not notice the sandbox: what runs, under which policy, and its requirements.

Each runs outside and inside; status and output must be equal, and nothing may be denied. The output contains no
paths, times or ids. The table of docs/programs.md is generated from these rows (test_programs.py --readme)."""

import dataclasses


@dataclasses.dataclass
class Program:
    name: str  # a row of the table
    policy: str
    does: str  # what runs, in the table's words
    command: list  # argv; a relative name is a file of `files`
    files: dict = dataclasses.field(default_factory=dict)
    needs: tuple = ()  # commands on PATH
    modules: tuple = ()  # of the system's python
    environment: dict = dataclasses.field(default_factory=dict)  # outside: the variables that the policy sets inside
    options: tuple = ()  # of sbx run
    home: dict = dataclasses.field(default_factory=dict)  # files of the caller's home
    slow: bool = False


def python(name, policy, does, code, *, modules=(), environment=None, **rest):
    """A row that is one Python script, `job.py`."""
    return Program(name, policy, does, ["job.py"], {"job.py": code}, ("python3",), modules, {"MPLBACKEND": "Agg", **(environment or {})}, **rest)


PYTHON_SCIENCE = [
    python("numpy, scipy", "data-analysis", "linear algebra on OpenBLAS threads, FFT, sparse solve, optimisation", """
import numpy, scipy.fft, scipy.linalg, scipy.optimize, scipy.sparse, scipy.sparse.linalg
rng = numpy.random.default_rng(1)
a = rng.random((600, 600)); b = a @ a.T
print(numpy.allclose(scipy.linalg.cholesky(b + 600 * numpy.eye(600), lower=True) @ numpy.ones(600),
                     numpy.linalg.cholesky(b + 600 * numpy.eye(600)) @ numpy.ones(600)))
print(numpy.round(numpy.linalg.svd(a, compute_uv=False)[:3], 6))
print(round(float(abs(scipy.fft.fft(rng.random(4096), workers=2)).sum()), 6))
m = scipy.sparse.diags([-1, 2.5, -1], [-1, 0, 1], shape=(500, 500), format="csc")
print(numpy.round(scipy.sparse.linalg.spsolve(m, numpy.ones(500))[:3], 9))
print(numpy.round(scipy.optimize.minimize(scipy.optimize.rosen, [2, 2, 2], method="BFGS").x, 4))
numpy.save("x.npy", a); print(numpy.load("x.npy", mmap_mode="r").shape)
""", modules=("numpy", "scipy")),
    python("pandas", "data-analysis", "CSV in and out, groupby, merge, resample, pivot", """
import numpy, pandas
rng = numpy.random.default_rng(2)
frame = pandas.DataFrame({"key": rng.integers(0, 9, 20000), "value": rng.random(20000), "day": pandas.date_range("2024-01-01", periods=20000, freq="min")})
frame.to_csv("t.csv", index=False)
again = pandas.read_csv("t.csv", parse_dates=["day"])
print(again.groupby("key").value.agg(["count", "mean", "std"]).round(6))
print(again.set_index("day").value.resample("D").sum().round(6).head(3))
print(again.merge(pandas.DataFrame({"key": range(9), "name": list("abcdefghi")})).pivot_table("value", "name", aggfunc="median").round(6))
again.to_pickle("t.pkl"); print(pandas.read_pickle("t.pkl").equals(again), again.dtypes.astype(str).tolist())
""", modules=("pandas",)),
    python("matplotlib", "data-analysis", "a PNG, an SVG and a PDF, byte for byte", """
import hashlib, os
os.environ["SOURCE_DATE_EPOCH"] = "0"
import matplotlib, matplotlib.pyplot as plot
matplotlib.rcParams["svg.hashsalt"] = "x"
figure, axes = plot.subplots(1, 2)
axes[0].plot(range(9), [x * x for x in range(9)], label="grün"); axes[0].legend(); axes[1].hist([1, 2, 2, 3, 3, 3]); figure.suptitle("$\\\\alpha_1$")
for kind in ("png", "svg", "pdf"):
    figure.savefig("p." + kind, metadata={"Date": None} if kind == "svg" else None)
    print(kind, hashlib.sha256(open("p." + kind, "rb").read()).hexdigest())
""", modules=("matplotlib",)),
    Program("pytest", "ci-untrusted", "a test suite of a project, with its report and fixtures",
            ["--", "sh", "-c", "python3 -m pytest -q -p no:cacheprovider --junit-xml=junit.xml >log; tail -1 log | sed 's/ in .*//'; grep -o 'tests=.[0-9]*' junit.xml"],
            {"test_it.py": "import pytest\n@pytest.mark.parametrize('n', range(5))\ndef test_square(n, tmp_path, monkeypatch, capsys):\n"
                           "    monkeypatch.setenv('X', '1'); (tmp_path / 'f').write_text(str(n)); print(n)\n    assert n * n >= n and capsys.readouterr().out\n"},
            ("python3",), ("pytest",)),
]

PYTHON_STANDARD = [
    python("sqlite3", "python", "a database file with WAL, an attached one, full-text search, backup", """
import sqlite3
db = sqlite3.connect("a.db"); print(db.execute("pragma journal_mode=wal").fetchone())
db.execute("create table t (k integer primary key, v text)")
with db: db.executemany("insert into t (v) values (?)", [(str(n),) for n in range(5000)])
db.execute("attach 'b.db' as b"); db.execute("create table b.u as select * from t where k % 2"); db.commit()
print(db.execute("select count(*), sum(k), max(v) from b.u").fetchone())
db.execute("create virtual table f using fts5(x)"); db.execute("insert into f values ('one two')"); db.commit(); print(db.execute("select * from f('two')").fetchall())
other = sqlite3.connect(":memory:"); db.backup(other); print(other.execute("select count(*) from t").fetchone())
"""),
    python("multiprocessing", "python", "fork, spawn and forkserver pools, queues, locks, shared memory, managers", """
import multiprocessing as mp, multiprocessing.shared_memory as shm
def square(n): return n * n
def add(counter, lock, name):
    block = shm.SharedMemory(name)
    for _ in range(100):
        with lock: counter.value += 1
    block.buf[0] += 1; block.close()
def put(queue, pipe): queue.put([1, 2, 3]); pipe.send("sent"); pipe.close()
if __name__ == "__main__":
    for method in ("fork", "spawn", "forkserver"):
        context = mp.get_context(method)
        with context.Pool(2) as pool: print(method, pool.map(square, range(8)), pool.apply_async(square, (9,)).get(30))
    context = mp.get_context("fork")
    block = shm.SharedMemory(create=True, size=1 << 20); counter = context.Value("i", 0); lock = context.Lock()
    workers = [context.Process(target=add, args=(counter, lock, block.name)) for _ in range(3)]
    [w.start() for w in workers]; [w.join() for w in workers]
    print(counter.value, [w.exitcode for w in workers]); block.close(); block.unlink()
    queue = context.Queue(); ours, theirs = context.Pipe(); child = context.Process(target=put, args=(queue, theirs)); child.start()
    print(queue.get(timeout=30), ours.recv()); child.join()
    with context.Manager() as manager: d = manager.dict(a=1); d["b"] = 2; print(dict(d))
    semaphore = context.BoundedSemaphore(2); print(semaphore.acquire(timeout=1), semaphore.get_value())
"""),
    python("asyncio", "python", "TCP and unix servers on loopback, subprocesses, threads, signals", """
import asyncio, signal, os, socket
async def serve(reader, writer):
    writer.write((await reader.readline()).upper()); await writer.drain(); writer.close()
async def main():
    server = await asyncio.start_server(serve, "127.0.0.1", 0)
    reader, writer = await asyncio.open_connection(*server.sockets[0].getsockname()); writer.write(b"tcp\\n"); print(await reader.readline()); writer.close()
    unix = await asyncio.start_unix_server(serve, "s.sock")
    reader, writer = await asyncio.open_unix_connection("s.sock"); writer.write(b"unix\\n"); print(await reader.readline()); writer.close()
    six = await asyncio.start_server(serve, "::1", 0)
    reader, writer = await asyncio.open_connection(*six.sockets[0].getsockname()[:2]); writer.write(b"six\\n"); print(await reader.readline()); writer.close()
    child = await asyncio.create_subprocess_exec("cat", stdin=-1, stdout=-1); print((await child.communicate(b"child"))[0], child.returncode)
    print(await asyncio.to_thread(sum, range(10)), await asyncio.gather(*(asyncio.sleep(0.001, n) for n in range(3))))
    got = asyncio.Event(); asyncio.get_running_loop().add_signal_handler(signal.SIGUSR1, got.set); os.kill(os.getpid(), signal.SIGUSR1); await asyncio.wait_for(got.wait(), 5)
    print((await asyncio.get_running_loop().getaddrinfo("localhost", 80, family=socket.AF_INET, type=socket.SOCK_STREAM))[0][4])
    try: await asyncio.wait_for(asyncio.sleep(60), 0.01)
    except TimeoutError: print("timeout")
asyncio.run(main())
"""),
    python("subprocess", "python", "pipes, sessions, process groups, timeouts, pass_fds, pty, exit by signal", """
import subprocess, os, signal, pty, shutil
print(subprocess.run(["sh", "-c", "cat; echo err >&2; exit 3"], input=b"in", capture_output=True))
print(subprocess.check_output("seq 5 | tac | paste -sd+ | bc || echo no bc", shell=True, stderr=subprocess.DEVNULL))
r, w = os.pipe(); p = subprocess.Popen(["sh", "-c", f"echo passed >&{w}"], pass_fds=[w], start_new_session=True); os.close(w); print(os.read(r, 99), p.wait())
try: subprocess.run(["sleep", "60"], timeout=0.05)
except subprocess.TimeoutExpired: print("timeout")
p = subprocess.Popen(["sleep", "60"], process_group=0); os.killpg(p.pid, signal.SIGTERM); print(p.wait())
out = []
def read(fd): data = os.read(fd, 1024); out.append(data); return data
print(pty.spawn(["sh", "-c", "tty >/dev/null && echo terminal"], read), b"".join(out).strip()[-8:])
print(subprocess.Popen(["true"], env={}, cwd="/", umask=0o77, close_fds=True).wait(), shutil.which("nothing-of-this-name"))
print(os.posix_spawn("/bin/true", ["true"], {}) > 0, os.waitstatus_to_exitcode(os.wait()[1]), os.waitstatus_to_exitcode(os.system("exit 5")))
"""),
    python("tempfile, files", "python", "temporary files, locks, mmap, sparse files, links, FIFOs, archives, sendfile", """
import tempfile, os, fcntl, mmap, shutil, tarfile, zipfile, pathlib, select, stat
with tempfile.TemporaryDirectory() as d, tempfile.NamedTemporaryFile(dir=d) as f, tempfile.TemporaryFile() as g:
    f.write(b"x" * 9000); f.flush(); fcntl.flock(f, fcntl.LOCK_EX); fcntl.lockf(g, fcntl.LOCK_EX)
    m = mmap.mmap(f.fileno(), 0); m[0:1] = b"y"; m.flush(); print(m[:2], os.fstat(f.fileno()).st_size)
    g.truncate(1 << 24); print(os.fstat(g.fileno()).st_blocks, os.sendfile(g.fileno(), f.fileno(), 0, 100), os.copy_file_range(f.fileno(), g.fileno(), 10))
    os.posix_fallocate(g.fileno(), 0, 4096); os.link(f.name, d + "/hard"); os.symlink("hard", d + "/soft"); print(os.stat(d + "/soft").st_nlink)
    os.mkfifo(d + "/fifo"); os.utime(f.name, (1, 2)); os.chmod(f.name, 0o640); print(stat.filemode(os.stat(f.name).st_mode), os.stat(f.name).st_mtime)
    os.rename(d + "/hard", d + "/moved"); print(sorted(os.listdir(d))[-3:] != [], shutil.disk_usage(d).total > 0)
pathlib.Path("tree/a").mkdir(parents=True); pathlib.Path("tree/a/b").write_text("b"); shutil.copytree("tree", "copy"); shutil.make_archive("t", "gztar", "tree")
print(sorted(n for n in tarfile.open("t.tar.gz").getnames()), zipfile.ZipFile(shutil.make_archive("z", "zip", "tree")).namelist())
pathlib.Path("tree").rename("moved"); shutil.rmtree("moved"); os.sync(); p = select.epoll(); p.close(); print(sorted(os.listdir(".")))
"""),
    python("CPython under strict", "strict", "threads, decimals, regular expressions, json, zlib, hashlib: computing only", """
import threading, decimal, re, json, zlib, hashlib, fractions, statistics, itertools, datetime, queue, concurrent.futures, sys
with concurrent.futures.ThreadPoolExecutor(4) as pool: print(list(pool.map(lambda n: n * n, range(8))))
print(decimal.Decimal(2).sqrt(), fractions.Fraction(1, 3) + 1, statistics.stdev(range(9)), hashlib.sha256(zlib.compress(b"x" * 9999)).hexdigest())
print(json.dumps(sorted(re.findall(r"\\w+", "b a c"))), sum(1 for _ in itertools.permutations(range(7))), datetime.date(2024, 2, 29).isoformat(), sys.stdin.read())
"""),
    python("CPython for the network", "web-fetch", "a web server and its client on loopback, TLS settings, a refused port", """
import http.server, threading, urllib.request, ssl, json, socket
class Handler(http.server.BaseHTTPRequestHandler):
    def do_GET(self): self.send_response(200); self.end_headers(); self.wfile.write(json.dumps({"path": self.path}).encode())
    def log_message(self, *_): pass
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler); threading.Thread(target=server.serve_forever, daemon=True).start()
print(urllib.request.urlopen(f"http://localhost:{server.server_port}/x").read()); server.shutdown()
context = ssl.create_default_context(); print(context.verify_mode.name, len(context.get_ca_certs()) > 0)
try: socket.create_connection(("127.0.0.1", 9))
except ConnectionRefusedError as error: print(error)
"""),
]

NODE = [
    Program("node: child_process, worker_threads", "node", "children by spawn, exec and fork, workers with shared memory, streams, crypto, zlib", ["job.js"], {"job.js": """
const { execFileSync, spawn, fork } = require('child_process'), { Worker, isMainThread, parentPort, workerData } = require('worker_threads')
if (process.argv[2] === 'child') { process.on('message', m => { process.send(m * 2); process.disconnect() }) }
else if (!isMainThread) { Atomics.add(new Int32Array(workerData), 0, 5); parentPort.postMessage('done') }
else (async () => {
  console.log(execFileSync('sh', ['-c', 'echo $((6 * 7))']).toString().trim())
  const cat = spawn('cat'); cat.stdin.end('through'); for await (const part of cat.stdout) console.log(part.toString())
  const child = fork(__filename, ['child']); child.send(21); console.log(await new Promise(r => child.on('message', r)))
  const shared = new SharedArrayBuffer(4); await Promise.all([1, 2, 3].map(() => new Promise(r => new Worker(__filename, { workerData: shared }).on('exit', r))))
  console.log(new Int32Array(shared)[0], require('crypto').createHash('sha256').update('x').digest('hex').slice(0, 8), require('zlib').gunzipSync(require('zlib').gzipSync('zip')).toString())
  const fs = require('fs'); fs.mkdirSync('d/e', { recursive: true }); fs.writeFileSync('d/f', 'x'); console.log(fs.readdirSync('d').join(), (await fs.promises.stat('d/f')).size); fs.rmSync('d', { recursive: true })
  const server = require('http').createServer((q, s) => s.end(q.url)).listen(0, '127.0.0.1', async () => { console.log(await (await fetch(`http://127.0.0.1:${server.address().port}/y`)).text()); server.close() })
})()
"""}, ("node",)),
    Program("npm run", "node", "a package script with its own scripts before and after it", ["--", "npm", "run", "build"],
            {"package.json": '{"name": "p", "version": "1.0.0", "scripts": {"prebuild": "echo before", "build": "node build.js && ls", "postbuild": "echo after"}}',
             "build.js": "require('fs').writeFileSync('out.txt', require('dep')); console.log(process.env.npm_lifecycle_event, require('dep'))\n",
             "node_modules/dep/index.js": "module.exports = 'of the dependency'\n", "node_modules/dep/package.json": '{"name": "dep", "version": "1.0.0"}'},
            ("node", "npm"), environment={"NO_UPDATE_NOTIFIER": "1", "npm_config_update_notifier": "false"}),
]

COMPILED = [
    Program("java", "offline-build", "javac, jar, and a program with threads, files and reflection",
            ["--", "sh", "-c", "mkdir o && javac -d o Main.java && jar cfe m.jar Main -C o . && java -jar m.jar a b"],
            {"Main.java": """
import java.nio.file.*; import java.util.*; import java.util.concurrent.*; import java.util.stream.*;
public class Main { record P(int x, String y) {}
  public static void main(String[] a) throws Exception { ExecutorService e = Executors.newFixedThreadPool(3); List<Future<Integer>> f = new ArrayList<>();
    for (int i = 0; i < 6; i++) { int n = i; f.add(e.submit(() -> n * n)); } int s = 0; for (var x : f) s += x.get(); e.shutdown();
    Path p = Files.createTempFile("a", "b"); Files.writeString(p, "text"); System.out.println(s + Files.readString(p) + new P(1, "q") + Arrays.toString(a));
    System.out.println(IntStream.range(0, 100000).parallel().mapToLong(i -> i).sum()); var c = new ProcessBuilder("echo", "child").inheritIO().start(); System.exit(c.waitFor()); } }
"""}, ("javac", "jar"), slow=True),
    Program("go", "offline-build", "go test and build of a module, goroutines, a server on loopback",
            ["--", "sh", "-c", "go test -vet=off ./... 2>&1 | sed 's/[0-9.]*s$//; s/(cached)//' && go build -o p . && ./p"],
            {"go.mod": "module example.org/m\n\ngo 1.19\n", "main.go": """package main
import ("fmt"; "io"; "net/http"; "net/http/httptest"; "os"; "os/exec"; "sync")
func Twice(n int) int { return 2 * n }
func main() { var g sync.WaitGroup; var m sync.Mutex; t := 0
	for i := 0; i < 100; i++ { g.Add(1); go func(n int) { defer g.Done(); m.Lock(); t += Twice(n); m.Unlock() }(i) }; g.Wait(); fmt.Println(t)
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { fmt.Fprint(w, r.URL.Path) })); r, e := http.Get(s.URL + "/z"); if e != nil { panic(e) }
	b, _ := io.ReadAll(r.Body); fmt.Println(string(b)); o, _ := exec.Command("echo", "child").Output(); fmt.Print(string(o)); os.WriteFile("f", b, 0644) }
""", "main_test.go": "package main\nimport \"testing\"\nfunc TestTwice(t *testing.T) { if Twice(2) != 4 { t.Fail() } }\n"}, ("go",), environment={"GOFLAGS": "-mod=readonly", "GOPROXY": "off"}, slow=True),
    Program("gcc, make", "ci-untrusted", "a static library, a shared one and a program, make -j, debug symbols",
            ["--", "sh", "-c", "make -s -j4 && LD_LIBRARY_PATH=. ./p && nm -D libs.so | grep -c ' T ' && ar t liba.a"],
            {"Makefile": "all: p\nCFLAGS = -g -O1 -fPIC\nliba.a: a.o\n\tar rc $@ $^\nlibs.so: s.o\n\tcc -shared -o $@ $^\np: p.o liba.a libs.so\n\tcc -o $@ p.o -L. -la -ls -pthread\n",
             "a.c": "int a(void) { return 1; }\n", "s.c": "int s(void) { return 2; }\n",
             "p.c": "#include <pthread.h>\n#include <stdio.h>\nint a(void), s(void);\nstatic void *t(void *x) { *(int *)x = a() + s(); return x; }\n"
                    "int main(void) { pthread_t h; int n = 0; pthread_create(&h, 0, t, &n); pthread_join(h, 0); printf(\"%d\\n\", n); }\n"}, ("gcc", "make", "ar")),
    Program("cmake, g++", "offline-build", "configure, build and ctest of a C++ project",
            ["--", "sh", "-c", "cmake -S . -B build >log 2>&1 && cmake --build build -j2 >>log 2>&1 && cd build && ctest 2>&1 | grep 'tests passed' && ./p || { cat log; exit 1; }"],
            {"CMakeLists.txt": "cmake_minimum_required(VERSION 3.16)\nproject(p CXX)\nenable_testing()\nfind_package(Threads REQUIRED)\nadd_executable(p p.cpp)\n"
                               "target_link_libraries(p Threads::Threads)\nadd_test(NAME p COMMAND p)\n",
             "p.cpp": "#include <iostream>\n#include <filesystem>\n#include <thread>\nint main() { int n = 0; std::thread t([&] { n = 42; }); t.join(); std::cout << n << std::filesystem::exists(\"p\") << std::endl; }\n"},
            ("cmake", "g++", "make"), slow=True),
]

IDENTITY = "[user]\n\tname = Ada Example\n\temail = ada@example.org\n[url \"https://x:secret@example.org/\"]\n\tinsteadOf = ex:\n[http]\n\textraHeader = Authorization: secret\n[commit]\n\tgpgSign = false\n"

SHELL = [
    Program("git", "shell", "commits with the caller's identity, branch, merge, rebase, stash, log, blame, gc, clone",
            ["--", "sh", "-ec", """
git init -q -b main r; cd r; export GIT_COMMITTER_DATE=2024-01-01T00:00:00Z GIT_AUTHOR_DATE=2024-01-01T00:00:00Z
echo a > f; git add f; git commit -qm one; git checkout -qb side; echo b >> f; git commit -qam two; git checkout -q main; echo c > g; git add g; git commit -qm three
git merge -q --no-edit side; git stash list; echo d >> f; git stash -q; git stash pop -q; git diff --stat; git commit -qam four; git rebase -q --root 2>/dev/null
git log --format='%an <%ae> %s %H'; git blame -s f | wc -l; git gc -q; git fsck >/dev/null 2>&1; cd ..; git clone -q r s; git -C s log --oneline | wc -l; git -C s grep -c . -- f
"""], needs=("git",), home={".gitconfig": IDENTITY}, environment={"GIT_TERMINAL_PROMPT": "0"}),
    Program("git and python", "agent", "a repository edited, tested and committed as an agent does it",
            ["--", "sh", "-ec", """
git init -q -b main r; cd r; export GIT_COMMITTER_DATE=2024-01-01T00:00:00Z GIT_AUTHOR_DATE=2024-01-01T00:00:00Z
printf 'def half(n):\n    return n / 2\n' > halves.py
printf 'import unittest, halves\nclass T(unittest.TestCase):\n    def test(self):\n        self.assertIs(type(halves.half(4)), int)\n' > test_halves.py
git add .; git commit -qm 'one that fails'; python3 -m unittest -q 2>/dev/null || echo "failed as expected"
sed -i 's|n / 2|n // 2|' halves.py; python3 -m unittest -q 2>/dev/null && git commit -qam 'one that passes'
git log --format='%an <%ae> %s %H'; git diff --stat HEAD~; git status --porcelain --untracked-files=no
"""], needs=("git", "python3"), home={".gitconfig": IDENTITY},
            environment={"GIT_TERMINAL_PROMPT": "0", "PAGER": "cat", "GIT_PAGER": "cat", "PYTHONDONTWRITEBYTECODE": "1"}),
    Program("python and sqlite", "e2b", "tables written to files and a database, and read again",
            ["--", "python3", "-c", """
import csv, json, sqlite3
with open("t.csv", "w", newline="") as file: csv.writer(file).writerows((n, n * n) for n in range(100))
with sqlite3.connect("t.db") as base, open("t.csv", newline="") as file:
    base.execute("create table t (n integer, square integer)"); base.executemany("insert into t values (?, ?)", csv.reader(file))
json.dump(base.execute("select count(*), sum(square) from t where n % 2").fetchone(), open("t.json", "w"))
print(json.load(open("t.json")))
"""], needs=("python3",), environment={"PAGER": "cat", "GIT_TERMINAL_PROMPT": "0", "MPLBACKEND": "Agg"}),
    Program("bash", "shell", "pipelines, process substitution, here documents, coprocesses, background jobs, traps, arrays",
            ["job.sh"], {"job.sh": """#!/bin/bash
set -euo pipefail
diff <(seq 3) <(seq 4) || true
paste <(printf 'b\\na\\n' | sort) <(echo 1; echo 2) | tee >(wc -l >lines) | awk '{ s += $2 } END { print s, $1 }'
while [ ! -s lines ]; do sleep 0.01; done; cat lines
while read -r n; do echo "$((n * n))"; done < <(seq 3) | xargs -n1 -P2 echo | sort | sed 's/^/> /'
coproc C { tr a-z A-Z; }; echo shout >&"${C[1]}"; exec {C[1]}>&-; cat <&"${C[0]}"
sleep 60 & until [ "$(tr -d '\\0' </proc/$!/cmdline)" = sleep60 ]; do :; done; kill $!; wait $! || echo "status $?"
declare -A m=([x]=1 [y]=2); echo "${#m[@]}" "${m[y]}"; cat <<< "here"; find . -name '*.sh' -exec basename {} \\; ; mktemp -u | wc -c >/dev/null; tar cf - job.sh | tar tf -
printf '%s\\n' {a..c}{1..2} | grep -E '^[ab]' | sort -r | head -2; timeout 0.1 sleep 5 || echo "timeout $?"; (ulimit -n 64; ulimit -n); exec 3<>/dev/null; trap 'echo bye' EXIT; echo done
"""}, ("bash", "awk")),
    Program("jq", "shell", "filters over a file and a pipe", ["--", "sh", "-c", "jq -c '.[] | select(.n > 1) | {n, m: (.n * 2)}' a.json; printf '%s' '{\"a\":[1,2]}' | jq -r '.a | add'"],
            {"a.json": '[{"n": 1}, {"n": 2}, {"n": 3}]'}, ("jq",)),
    Program("perl", "shell", "regular expressions, fork and wait, pipes, sort, File::Temp, sockets", ["job.pl"], {"job.pl": """#!/usr/bin/perl
use strict; use warnings; use File::Temp qw(tempfile); use IO::Socket::INET; use POSIX; use List::Util qw(sum); use JSON::PP;
my %c; $c{$_}++ for "a b a" =~ /\\w/g; print join(",", map { "$_$c{$_}" } sort keys %c), " ", sum(1..10), "\\n"; $| = 1;
my $p = fork; if (!$p) { exit 7 } waitpid $p, 0; print $? >> 8, "\\n"; open my $f, "-|", "echo piped" or die; print <$f>; close $f; my ($t, $n) = tempfile(UNLINK => 1); print $t "x"; close $t; print -s $n, "\\n";
my $s = IO::Socket::INET->new(Listen => 1, LocalAddr => "127.0.0.1") or die; my $k = IO::Socket::INET->new(PeerAddr => "127.0.0.1", PeerPort => $s->sockport) or die; my $a = $s->accept; print $a "line\\n"; close $a; print <$k>; print encode_json([1, "a"]), "\\n";
"""}, ("perl",)),
    Program("ruby", "default", "threads, fork, Open3, Tempfile, JSON, sockets", ["job.rb"], {"job.rb": """
require 'json'; require 'open3'; require 'tempfile'; require 'socket'; require 'digest'
puts [1, 2, 3].map { |n| Thread.new { n * n } }.map(&:value).to_json, Open3.capture2('cat', stdin_data: 'in')[0]
r, w = IO.pipe; pid = fork { w.puts 'child'; exit 4 }; Process.wait pid; puts r.gets, $?.exitstatus
Tempfile.create { |f| f.write 'x'; f.flush; puts File.size(f.path) }; s = TCPServer.new('127.0.0.1', 0); Thread.new { s.accept.tap { |c| c.puts 'hello' }.close }
puts TCPSocket.new('127.0.0.1', s.addr[1]).gets, Digest::SHA256.hexdigest('x')[0, 8]
"""}, ("ruby",)),
    Program("lua", "strict", "coroutines, patterns, tables, files", ["job.lua"], {"job.lua": """
local co = coroutine.wrap(function() for i = 1, 3 do coroutine.yield(i * i) end end)
print(co(), co(), co(), ("a1b2"):gsub("%d", "#")); local t = {3, 1, 2}; table.sort(t); print(table.concat(t, ","), #t, math.floor(7 / 2), string.format("%5.2f", math.pi))
local n = os.tmpname(); local f = assert(io.open(n, "w")); f:write("x"); f:close(); print(#io.open(n):read("a"), os.remove(n))
"""}, ("lua",)),
    Program("R", "data-analysis", "a PNG through cairo, a linear model, a data frame, parallel children",
            ["job.R"], {"job.R": """
set.seed(1); d <- data.frame(x = 1:50, y = 2 * (1:50) + rnorm(50)); m <- lm(y ~ x, d); print(round(coef(m), 4)); print(round(summary(m)$r.squared, 6))
png("p.png", 400, 300, type = "cairo"); plot(d, main = "gr\\u00fcn"); invisible(dev.off()); print(unname(tools::md5sum("p.png"))); write.csv(d, "d.csv"); print(nrow(read.csv("d.csv")))
print(unlist(parallel::mclapply(1:4, function(n) n * n, mc.cores = 2))); print(tapply(d$y, d$x %% 2 == 0, function(v) round(mean(v), 3)))
"""}, ("Rscript",)),
    Program("imagemagick", "default", "draw, scale and compare pictures", ["--", "sh", "-c", "cd ${TMPDIR:-/tmp} && convert -size 64x64 gradient:red-blue -resize 32x32 a.png && convert a.png -flip b.png && identify -format '%wx%h %m\\n' a.png && "
            "convert a.png b.png -append rgb:- | sha256sum"], needs=("convert",)),
    Program("ffmpeg", "default", "encode and decode a generated film on threads",
            ["--", "sh", "-c", "cd ${TMPDIR:-/tmp} && ffmpeg -v error -y -f lavfi -i testsrc=d=1:s=128x96:r=10 -f lavfi -i sine=d=1 -pix_fmt yuv420p -threads 2 a.mkv && "
             "ffmpeg -v error -i a.mkv -map 0:v -f framemd5 - | grep -v '^#' | wc -l && ffprobe -v error -show_entries stream=codec_type,width -of csv=p=0 a.mkv"],
            needs=("ffmpeg", "ffprobe"), slow=True),
    Program("coreutils and friends", "default", "tar, gzip, openssl, awk, sed, sort, find, xargs, split, date",
            ["--", "sh", "-ec", "cd ${TMPDIR:-/tmp}; mkdir -p k && cd k; seq 1000 > n; tar czf n.tgz n; tar xzOf n.tgz | sha1sum; gzip -c n | zcat | tail -1; sort -rn n --parallel=2 | head -1; "
             "openssl dgst -sha256 < n; awk '{ s += $1 } END { print s }' n; sed -n '$p' n; find . -name n -printf '%s\\n'; xargs -P4 -n100 echo < n | wc -l; TZ=UTC date -d @0 +%F; "
             "split -l 300 n x; ls x*; dd if=/dev/zero bs=1M count=8 2>/dev/null | wc -c; cd ..; rm -r k"], needs=("openssl", "tar", "gzip", "awk")),
]

GROUPS = {
    "python_science": PYTHON_SCIENCE, "python_standard_library": PYTHON_STANDARD, "node": NODE, "compiled": COMPILED, "shell_and_tools": SHELL,
}
PROGRAMS = [program for group in GROUPS.values() for program in group]
