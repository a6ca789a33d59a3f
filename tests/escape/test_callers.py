"""Invariant 8: privileges of sbx itself, and odd callers."""

import fcntl
import json
import os
import pathlib
import resource
import shutil
import stat
import subprocess
import sys

import sbxtest
from sbxtest import PROBE, SBX, SbxTest


PRIVATE_NAME = len("sbx-0123456789abcdef")
PRIVATE_MODES = (0o1700, 0o1710)
MARK = "of-a-test"


class Privileges(SbxTest):
    def capabilities(self, process):
        lines = pathlib.Path(f"/proc/{process.pid}/status").read_text().splitlines()
        return {line.split()[0]: int(line.split()[1], 16) for line in lines if line.startswith("Cap")}

    def test_supervisor_has_no_more_privilege_than_its_caller(self):
        mine = {line.split()[0]: int(line.split()[1], 16)
                for line in pathlib.Path("/proc/self/status").read_text().splitlines() if line.startswith("Cap")}
        process = self.start_sbx(PROBE, "polite", 0, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        for name, value in self.capabilities(process).items():
            self.assertEqual(value & ~mine[name], 0, name)
        process.terminate()
        self.finish(process, json_record=False)

    def test_nothing_runs_as_the_hosts_root(self):
        process = self.start_sbx(PROBE, "polite", 0, json_record=False)
        self.assertEqual(process.stdout.readline(), b"ready\n")
        family = {str(process.pid), str(sbxtest.init_of(process))}
        uids = []
        for entry in pathlib.Path("/proc").iterdir():
            try:
                lines = dict(line.split(":\t", 1) for line in (entry / "status").read_text().splitlines() if ":\t" in line)
            except (OSError, ValueError):
                continue
            if lines.get("PPid", "").strip() in family:
                uids += lines["Uid"].split()
        self.assertTrue(uids)
        self.assertNotIn("0", uids)
        if sbxtest.IS_ROOT:
            self.assertGreaterEqual(min(map(int, uids)), 65536 + 1000)
        process.terminate()
        self.finish(process, json_record=False)

    def test_copy_with_the_setuid_bit_refuses(self):
        if not sbxtest.IS_ROOT:
            self.skipTest("needs root to make a set-uid file of another owner")
        copy = pathlib.Path(shutil.copy(SBX, self.tmp / "sbx"))
        self.tmp.chmod(0o755)
        for mode in (0o4755, 0o2755):
            os.chown(copy, 0, 0)
            copy.chmod(mode)
            done = subprocess.run(["setpriv", "--reuid", "65534", "--regid", "65534", "--clear-groups", copy, "run", "--", "true"],
                                  capture_output=True, timeout=120, cwd="/")
            self.assertEqual(done.returncode, 125, done)
            self.assertIn(b"set", done.stderr)

    def test_copy_without_the_setuid_bit_runs(self):
        copy = pathlib.Path(shutil.copy(SBX, self.tmp / "sbx"))
        done = subprocess.run([copy, "run", "--", "true"], capture_output=True, timeout=120, cwd=self.work, env=self.environment())
        self.assertEqual(done.returncode, 0, done)


class Descriptors(SbxTest):
    def run_with_closed(self, *closed):
        report = self.tmp / "report.json"
        script = 'exec "$0" "$@" ' + " ".join(f"{fd}{'<' if fd == 0 else '>'}&-" for fd in closed)
        process = sbxtest.start(["/bin/sh", "-c", script, SBX, "run", "--report", str(report), PROBE, "descriptors"],
                                env=self.environment(), cwd=self.work, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        ended = self.finish(process, json_record=False)
        self.assertTrue(report.exists(), ended)
        ended.record = json.loads(report.read_text())
        return ended

    def test_closed_standard_descriptors(self):
        for closed in ((0,), (1,), (2,), (0, 1), (0, 1, 2)):
            ended = self.run_with_closed(*closed)
            self.assertEqual((ended.record["outcome"]["status"], ended.status), ("exited", 125 if 1 in closed else 0), ended)
            if 1 not in closed:
                self.assertEqual([line.split()[0] for line in ended.out.decode().splitlines()], ["0", "1", "2"], ended)

    def test_open_standard_descriptors(self):
        self.exited(self.run_with_closed())

    def test_full_disk_does_not_change_the_verdict(self):
        with open("/dev/full", "wb") as full:
            process = self.start_sbx("--report", self.tmp / "r.json", PROBE, "flood-output", 100000, json_record=False, stdout=full)
            ended = self.finish(process, json_record=False)
        self.assertIn(b"sbx: ", ended.err)
        record = json.loads((self.tmp / "r.json").read_text())
        self.assertIn(record["outcome"]["status"], ("exited", "signaled"), record)

    def test_report_on_a_full_disk_is_said(self):
        ended = self.sbx("--report", "/dev/full", PROBE, "exit", 0, json_record=False)
        self.assertIn(b"sbx: ", ended.err)

    def test_report_on_a_disk_with_room_is_written(self):
        ended = self.sbx("--report", self.tmp / "r.json", PROBE, "exit", 0, json_record=False)
        self.assertEqual((ended.status, ended.err), (0, b""))
        self.assertEqual([path.name for path in self.tmp.iterdir() if path.name.startswith("r.json")], ["r.json"])

    def test_reader_that_goes_away_ends_an_endless_writer(self):
        script = '"$0" "$@" | head -c 10; echo'
        done = subprocess.run(["/bin/sh", "-c", script, SBX, "run", "--output", "1G", "--", "yes"], env=self.environment(), cwd=self.work,
                              capture_output=True, timeout=120)
        self.assertEqual(done.stdout, b"y\ny\ny\ny\ny\n\n", done)
        self.assertEqual(sbxtest.orphans_after(1), [])

    def test_reader_that_stays_gets_everything(self):
        done = subprocess.run(["/bin/sh", "-c", '"$0" "$@" | wc -c', SBX, "run", PROBE, "flood-output", "700000"], env=self.environment(),
                              cwd=self.work, capture_output=True, timeout=120)
        self.assertEqual(done.stdout.strip(), b"700000", done)

    def test_few_descriptors_are_enough(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (32, 32))
        ended = self.sbx(PROBE, "exit", 7, preexec_fn=few)
        self.exited(ended, 7)

    def few_descriptors_name_the_limit(self, *options):
        for count in range(12, 32):
            few = lambda count=count: resource.setrlimit(resource.RLIMIT_NOFILE, (count, count))
            ended = self.sbx(*options, PROBE, "exit", 7, json_record=False, preexec_fn=few)
            if ended.status != 7:
                self.could_not(ended, "Too many open files", "ulimit -n")
                self.assertNotIn(b"user namespaces", ended.err)

    def test_too_few_descriptors_name_the_limit(self):
        self.few_descriptors_name_the_limit()

    def test_too_few_descriptors_name_the_limit_without_namespaces(self):
        ended = self.sbx("--isolation", "landlock", PROBE, "exit", 7, json_record=False)
        if b"Landlock" in ended.err:
            self.skipTest(ended.err.decode())
        self.assertEqual(ended.status, 7, ended)
        lost = self.lost()
        self.few_descriptors_name_the_limit("--isolation", "landlock")
        self.assertLessEqual(self.lost(), lost)

    def lost(self):
        """Private directories that no sweep finds."""
        return {place for place in pathlib.Path("/tmp").glob("sbx-*") if len(place.name) == PRIVATE_NAME and self.is_lost(place)}

    @staticmethod
    def is_lost(place):
        try:
            facts = place.lstat()
            return (stat.S_ISDIR(facts.st_mode) and facts.st_uid == os.geteuid() and stat.S_IMODE(facts.st_mode) not in PRIVATE_MODES and
                    MARK not in os.listdir(place))
        except OSError:  # gone, or another user's
            return False

    def test_clamped_limit_is_listed(self):
        few = lambda: resource.setrlimit(resource.RLIMIT_NOFILE, (64, 64))
        ended = self.sbx(PROBE, "exit", 0, preexec_fn=few)
        self.exited(ended)
        self.assertIn("open_files", str(ended.record["degraded"]), ended)


class PrivateDirectories(SbxTest):
    """A run without namespaces removes what dead ones left in /tmp, and nothing else."""

    def left(self, mode=0o1700, more="", name=None, prepare=lambda made: None):
        """Comes and goes at once: other runs of the same user sweep meanwhile, and lost() looks."""
        made = self.tmp / ("left-" + os.urandom(8).hex())
        (made / "work").mkdir(parents=True)
        (made / MARK).touch()
        made.chmod(mode)
        prepare(made)
        directory = pathlib.Path("/tmp/sbx-" + (name or os.urandom(8).hex()) + more)
        made.rename(directory)
        self.addCleanup(lambda: directory.exists() and directory.rename(made))
        return directory

    def stays(self, directory):
        ended = self.sbx("--isolation", "landlock", PROBE, "exit", 7, json_record=False)
        if b"Landlock" in ended.err:
            self.skipTest(ended.err.decode())
        self.assertEqual(ended.status, 7, ended)
        return directory.exists()

    def goes(self, directory):
        if not self.stays(directory):
            return True
        try:  # another run may be removing it, and holds its lock as long
            held = os.open(directory, os.O_RDONLY)
        except FileNotFoundError:
            return True
        self.addCleanup(os.close, held)
        fcntl.flock(held, fcntl.LOCK_EX)
        return not directory.exists()

    def test_what_a_dead_run_left_goes(self):
        self.assertTrue(self.goes(self.left()))

    def test_what_only_looks_like_it_stays(self):
        self.assertTrue(self.stays(self.left(more="-mine")))
        self.assertTrue(self.stays(self.left(name=os.urandom(8).hex()[1:] + "g")))
        for mode in (0o700, 0o710, 0o755, 0o1755, 0o1777):
            self.assertTrue(self.stays(self.left(mode)), oct(mode))

    def test_that_of_a_live_run_stays(self):
        held = []

        def hold(made):
            held.append(os.open(made, os.O_RDONLY))
            self.addCleanup(os.close, held[0])
            fcntl.flock(held[0], fcntl.LOCK_EX)

        left = self.left(prepare=hold)
        self.assertTrue(self.stays(left))
        fcntl.flock(held[0], fcntl.LOCK_UN)
        self.assertTrue(self.goes(left))

    def test_a_program_cannot_take_the_lock_of_its_own(self):
        code = ("import fcntl, os\nfor place in (os.path.dirname(os.environ['TMPDIR']), os.environ['TMPDIR']):\n"
                "    try:\n        fcntl.flock(os.open(place, os.O_RDONLY), fcntl.LOCK_EX)\n        print('has it')\n"
                "    except OSError as error:\n        print(error.strerror)")
        ended = self.sbx("--isolation", "landlock", "--lang", "python", "-c", code, json_record=False)
        if b"Landlock" in ended.err:
            self.skipTest(ended.err.decode())
        self.assertEqual(ended.out, b"Permission denied\nhas it\n", ended)

    def test_files_in_shared_memory_go_only_after_a_program_with_a_uid_of_its_own(self):
        """Such a program has a group of the same number; the directory of another may have any group."""
        if os.geteuid() != 0:
            self.skipTest("needs root")
        apart = ["unshare", "--mount", "--propagation", "private", "sh", "-c",  # the binary may lie below /tmp
                 'exec 9<"$0" && for place in /tmp /dev/shm; do mount -t tmpfs -o mode=1777 sbx-test "$place"; done && '
                 'cp /proc/self/fd/9 /tmp/sbx && chmod +x /tmp/sbx && exec "$@"', SBX]
        for mode, stays in ((0o1700, True), (0o1710, False)):
            look = ("import os, subprocess, sys\nleft, file = '/tmp/sbx-0123456789abcdef', '/dev/shm/file'\n"
                    "os.mkdir(left)\nos.close(os.open(file, os.O_CREAT))\nos.chown(left, 0, 4321)\nos.chown(file, 4321, 4321)\n"
                    f"os.chmod(left, {mode})\nsubprocess.run(sys.argv[1:], check=True)\nprint(os.path.exists(left), os.path.exists(file))")
            done = subprocess.run([*apart, sys.executable, "-c", look, "/tmp/sbx", "run", "-q", "--isolation", "landlock", "--", "true"], cwd="/",
                                  capture_output=True, text=True, check=False)
            if "Landlock" in done.stderr:
                self.skipTest(done.stderr)
            self.assertEqual(done.stdout, f"False {stays}\n", done)

    def test_a_link_to_one_stays(self):
        aim = self.left(more="-mine")
        link = pathlib.Path("/tmp/sbx-" + os.urandom(8).hex())
        link.symlink_to(aim)
        self.addCleanup(link.unlink)
        self.assertTrue(self.stays(link))
        self.assertTrue((aim / MARK).exists())

    def test_a_directory_of_somebody_else_stays(self):
        if os.geteuid() != 0:
            self.skipTest("needs root")
        self.assertTrue(self.stays(self.left(prepare=lambda made: os.chown(made, 4321, 4321))))


class HostileEnvironment(SbxTest):
    HOSTILE = {"LD_PRELOAD": "/nonexistent.so", "LD_LIBRARY_PATH": "/nonexistent", "GCONV_PATH": "/nonexistent", "TMPDIR": "/nonexistent",
               "HOME": "relative/home", "XDG_CONFIG_HOME": "/etc", "PATH": ".:relative:/usr/bin:/bin", "PYTHONSTARTUP": "/etc/passwd",
               "LC_ALL": "../../../x", "BASH_ENV": "/etc/passwd", "COLUMNS": "-7", "NO_COLOR": "", "TZ": ":/etc/shadow", "IFS": "/"}

    def test_hostile_environment_changes_nothing(self):
        ended = self.sbx("--", "env", env=self.HOSTILE)
        self.exited(ended)
        for name in self.HOSTILE:
            if name not in ("HOME", "PATH", "TMPDIR"):
                self.assertNotIn(f"{name}=", ended.text, ended)
        self.assertIn("HOME=/home/sandbox\n", ended.text)

    def test_ordinary_environment_gives_the_same(self):
        ordinary = self.sbx("--", "env").text
        hostile = self.sbx("--", "env", env=self.HOSTILE).text
        self.assertEqual(sorted(ordinary.split("\n")), sorted(hostile.split("\n")))

    def test_empty_environment_is_enough(self):
        process = sbxtest.start([SBX, "run", "--json", "--", "/bin/true"], env={}, cwd=self.work, stdin=subprocess.DEVNULL,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.exited(self.finish(process))

    def test_huge_environment_is_borne(self):
        self.exited(self.sbx(PROBE, "exit", 0, env={f"V{number}": "x" * 1000 for number in range(1000)}))


class HostileDirectory(SbxTest):
    def test_files_of_the_current_directory_are_not_used_unasked(self):
        for name in ("sbx.toml", "default.toml", ".sbx.toml", "config.toml", "policies/default.toml"):
            self.write(name, "this is not a policy")
        for name in ("python3", "env", "sh"):
            self.write(name, "#!/bin/sh\necho hijacked\n", mode=0o755)
        ended = self.sbx("--", "env", env={"PATH": ":.:" + str(self.environment()["PATH"])})
        self.exited(ended)
        self.assertNotIn("hijacked", ended.text)
        self.assertEqual(ended.record["policy"]["source"], "built-in", ended)

    def test_file_of_the_current_directory_is_used_when_named(self):
        self.write("mine.toml", 'schema = 1\nname = "mine"\nextends = "default"\n')
        ended = self.sbx("-p", "./mine.toml", PROBE, "exit", 0)
        self.exited(ended)
        self.assertEqual(ended.record["policy"]["name"], "mine")

    def test_deleted_current_directory_is_borne(self):
        script = 'mkdir gone && cd gone && rmdir ../gone && exec "$0" "$@"'
        process = sbxtest.start(["/bin/sh", "-c", script, *self.command("--", "/bin/true")], env=self.environment(), cwd=self.work,
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        self.exited(self.finish(process))

    def test_current_directory_with_a_hostile_name_is_borne(self):
        directory = self.work / "a,b:c\\d \n\x1b[31m'\"$(id)"
        directory.mkdir()
        for mode in ("overlay", "read-only", "read-write", "empty"):
            ended = self.sbx("--workspace", f".:{mode}", "--", "/bin/pwd", cwd=directory)
            self.exited(ended)
            self.assertEqual(ended.text, str(directory) + "\n")

    def test_current_directory_with_an_ordinary_name(self):
        ended = self.sbx("--workspace", ".:overlay", "--", "/bin/pwd")
        self.exited(ended)
        self.assertEqual(ended.text, f"{self.work}\n")

    def test_run_in_the_root_directory_gets_an_empty_workspace(self):
        ended = self.sbx("-p", "python", "--", "/bin/pwd", cwd="/")
        self.exited(ended)
        self.assertEqual(ended.text, "/work\n")

    def test_root_directory_named_as_workspace_is_an_error(self):
        self.could_not(self.sbx("--workspace", "/:overlay", "--", "/bin/pwd"))


if __name__ == "__main__":
    sbxtest.main()
