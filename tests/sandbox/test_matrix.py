"""A copy-on-write workspace full of unusual files, on each kind of file system and for each kind of caller: the host
stays unchanged, the changes are listed correctly, and applying them gives what the program saw."""

import json
import os
import pathlib
import subprocess
import sys

import sbxtest
from sbxtest import IS_ROOT, SBX, SbxTest

OTHER = 12345  # an ordinary user that root chooses

MAKE = """
import os, socket
os.makedirs('sub/deep'); os.mkdir('empty')
for name in ('plain', 'sub/inner', 'sub/deep/er', 'gone', 'suid', 'attr', 'same', 'via'): open(name, 'w').write(name + '\\n')
os.symlink('/etc/passwd', 'absolute'); os.symlink('nowhere', 'dangling'); os.symlink('loop', 'loop'); os.symlink('via', 'link')
os.link('plain', 'second'); os.link('plain', 'third'); os.mkfifo('fifo'); os.mkfifo('fifo-gone')
socket.socket(socket.AF_UNIX).bind('socket')
os.chmod('suid', 0o6755)
try: os.setxattr('attr', 'user.note', b'kept')
except OSError: pass
with open('sparse', 'w') as sparse: sparse.write('x'); sparse.truncate(100 << 30)
for name in (b'new\\nline', b'esc\\033[31m', b'\\xff\\xfe'): open(name, 'w').write('odd')
os.mkdir('closed'); open('closed/file', 'w').write('x'); os.chmod('closed', 0o000)
os.mkdir('search'); open('search/file', 'w').write('x'); os.chmod('search', 0o711)
"""

CHANGE = """
import os, shutil, socket
open('link', 'a').write('more'); open('second', 'a').write('more'); os.remove('third'); os.remove('gone'); os.remove('fifo-gone')
open('suid', 'a').write('more'); open('attr', 'a').write('more'); open('same', 'r+').write('same\\n')
os.remove('absolute'); os.symlink('/etc/group', 'absolute'); os.remove('dangling'); open('dangling', 'w').write('a file now')
os.remove('loop'); os.mkdir('loop'); shutil.move('sub', 'moved'); os.rmdir('empty'); open('empty', 'w')
with open('sparse', 'r+') as sparse: sparse.seek(50 << 30); sparse.write('y')
for name in (b'new\\nline', b'\\xff\\xfe'): open(name, 'a').write('more')
os.remove(b'esc\\033[31m'); open(b'made\\n\\xfe', 'w').write('odd'); os.mkfifo('made-fifo')
socket.socket(socket.AF_UNIX).bind('made-socket')
if os.path.exists('closed'):
    os.chmod('closed', 0o700); open('closed/made', 'w').write('x'); os.chmod('closed', 0o000)
open('search/made', 'w').write('x')
open('moved/deep/made', 'w').write('x'); os.chmod('moved/inner', 0o600)
"""

LISTED = {
    "via": "modified", "plain": "modified", "second": "modified", "third": "deleted", "gone": "deleted", "fifo-gone": "deleted", "suid": "modified", "attr": "modified",
    "absolute": "modified", "dangling": "modified", "loop": ["deleted", "created"], "empty": ["deleted", "created"], "sub": "deleted",
    "sub/inner": "deleted", "sub/deep": "deleted", "sub/deep/er": "deleted", "moved": "created", "moved/inner": "created", "moved/deep": "created",
    "moved/deep/er": "created", "moved/deep/made": "created", "sparse": "modified", "new\nline": "modified", "\ufffd\ufffd": "modified",
    "esc\x1b[31m": "deleted", "made\n\ufffd": "created", "made-fifo": "created", "made-socket": "created", "closed/made": "created",
    "search/made": "created",
}

LOOK = """
import json, os, stat, sys
seen = {}
for directory, directories, names in os.walk(b'.'):
    for name in directories + names:
        path = os.path.join(directory, name); facts = os.lstat(path); kind = stat.S_IFMT(facts.st_mode)
        entry = [oct(facts.st_mode), facts.st_size if kind == stat.S_IFREG else 0, facts.st_uid, facts.st_gid]
        if kind == stat.S_IFLNK: entry.append(os.fsencode(os.readlink(path)).decode('latin-1'))
        if kind == stat.S_IFREG and facts.st_size < 1000 and facts.st_mode & 0o400: entry.append(open(path, 'rb').read().decode('latin-1'))
        seen[path.decode('latin-1')] = entry
print(json.dumps(seen))
"""

DISK, TMPFS, OVERLAY = "disk", "tmpfs", "overlay"
MOUNT = {
    DISK: ':',
    TMPFS: 'mount -t tmpfs -o mode=755 t "$PLACE"',
    OVERLAY: 'mount -t tmpfs -o mode=755 t "$PLACE"; mkdir "$PLACE/l" "$PLACE/u" "$PLACE/w" "$PLACE/m"; '
             'mount -t overlay o -o "${EXTRA}lowerdir=$PLACE/l,upperdir=$PLACE/u,workdir=$PLACE/w" "$PLACE/m"; PLACE=$PLACE/m',
}


class Place(SbxTest):
    """A shell in its own mount namespace, with a directory "work" and a home on one kind of file system."""

    def in_place(self, kind, script, user=None):
        """Runs a script as a user; returns its Ended."""
        place = self.tmp / "place"
        subprocess.run(["chmod", "-R", "u+rwx", place], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["rm", "-rf", place], check=True)
        place.mkdir()
        self.tmp.chmod(0o755)
        self.addCleanup(subprocess.run, ["chmod", "-R", "u+rwx", place], check=False, stderr=subprocess.DEVNULL)
        wrapper = ["unshare", "--mount"] if IS_ROOT else ["unshare", "--user", "--map-current-user", "--keep-caps", "--mount"]
        if kind == DISK:
            wrapper = []
        elif subprocess.run([*wrapper, "mount", "-t", "tmpfs", "t", str(place)], capture_output=True).returncode != 0:
            self.skipTest("mounts can't be made here")
        become = f'chown -R {user}:{user} "$PLACE"; exec setpriv --reuid {user} --regid {user} --clear-groups' if user else "exec"
        whole = f'set -e; {MOUNT[kind]}; mkdir "$PLACE/work" "$PLACE/home"; {become} env "HOME=$PLACE/home" sh -euc "$1" "$PLACE/work"'
        environment = self.environment({"PLACE": str(place), "SBX": SBX, "PYTHON": sys.executable, "EXTRA": "" if IS_ROOT else "userxattr,"})
        process = sbxtest.start([*wrapper, "sh", "-c", whole, "sh", 'cd "$0"\n' + script], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE,
                                stderr=subprocess.PIPE, env=environment, cwd=self.tmp)
        ended = self.finish(process, json_record=False, timeout=120)
        self.assertEqual(ended.status, 0, f"{ended}\n{(ended.out or b'').decode(errors='replace')[-20000:]}")
        return ended

    def python(self, code):
        path = self.write(f"code-{abs(hash(code))}.py", code, directory=self.tmp)
        return f'"$PYTHON" {path}'

    def sandboxed(self, code, *options):
        path = self.write(f"code-{abs(hash(code))}.py", code, directory=self.tmp)
        options = " ".join(options)
        return f'"$SBX" run --json --memory 2G --set \'limits.file_size="200G"\' --workspace .:overlay {options} --lang python {path}'


class Matrix(Place):
    def rows(self, kind, user=None, foreign=""):
        script = "\n".join([self.python(MAKE), foreign, self.python(LOOK), self.sandboxed(CHANGE), self.python(LOOK),
                            self.sandboxed(CHANGE + "\nif os.path.exists('closed'): os.chmod('closed', 0o700)", "--apply", "--yes"), self.python(LOOK)])
        ended = self.in_place(kind, script, user)
        before, record, after, applying, applied = map(json.loads, ended.out.splitlines())
        self.assertEqual(before, after)
        listed = {}
        for each in record["changes"]:
            path, change = each["path"], each["change"]
            listed[path] = [listed[path], change] if path in listed else change
        # Directories that the caller can't list are hidden: the program could chmod them. Root, and callers with its
        # privileges, can list them.
        is_shut_out = "./closed/file" not in before
        self.assertEqual(listed, {path: change for path, change in LISTED.items() if path != "closed/made" or not is_shut_out})
        self.judge(before, applying, applied)
        return record

    def judge(self, before, applying, now):
        """After --apply the host has what the program left, except what must not leave."""
        self.assertEqual((applying["applied"]["conflicts"], {each["path"] for each in applying["applied"]["left"]}), ([], {"made-fifo", "made-socket"}))
        text = lambda name: now[f"./{name}"][-1]
        for name in ("gone", "third", "fifo-gone", "sub", "sub/inner", "esc\x1b[31m", "made-fifo", "made-socket"):
            self.assertNotIn(f"./{name}", now)
        self.assertEqual([text(name) for name in ("via", "second", "plain", "same", "absolute", "dangling", "moved/deep/er", "search/made", "new\nline")],
                         ["via\nmore", "plain\nmore", "plain\nmore", "same\n", "/etc/group", "a file now", "sub/deep/er\n", "x", "oddmore"])
        self.assertEqual([now[f"./{name}"][0] for name in ("suid", "moved/inner", "search", "loop", "empty", "fifo", "socket")],
                         ["0o100755", "0o100600", "0o40711", "0o40755", "0o100644", before["./fifo"][0], before["./socket"][0]])
        self.assertEqual(now["./sparse"][1], 100 << 30)
        self.assertEqual(now["./closed"][0], "0o40700" if "./closed/made" in now else "0o40000")
        owners = {tuple(entry[2:4]) for entry in now.values()}
        self.assertLessEqual(owners, {tuple(entry[2:4]) for entry in before.values()})

    def callers(self):
        return (None, OTHER) if IS_ROOT else (None,)

    def test_rows_on_the_disk(self):
        for user in self.callers():
            self.rows(DISK, user)

    def test_rows_on_tmpfs(self):
        for user in self.callers():
            self.rows(TMPFS, user)

    def test_rows_on_an_overlay(self):
        for user in self.callers():
            record = self.rows(OVERLAY, user)
            if IS_ROOT and user is None:  # overlayfs has no idmapped mounts
                self.assertIn("filesystem.workspace.mode", [each["what"] for each in record["degraded"]])

    def test_rows_of_a_copy_for_a_foreign_group(self):
        if not IS_ROOT:
            self.skipTest("giving a file to a group that one is not in needs root")
        for kind in (DISK, TMPFS, OVERLAY):
            record = self.rows(kind, foreign="chgrp 70000 same")
            self.assertIn("filesystem.workspace.mode", [each["what"] for each in record["degraded"]], kind)


class Large(Place):
    def test_slow_half_a_gigabyte_is_appended_to(self):
        script = "\n".join(["head -c 500000000 /dev/urandom > big; cp big same; sha256sum big | cut -c1-64",
                            self.sandboxed("open('big', 'a').write('more'); open('same', 'r+').write('')", "--apply", "--yes", "--memory 3G", "--disk 2G"),
                            "tail -c 4 big; stat -c ' %s' big; head -c 500000000 big | sha256sum | cut -c1-64"])
        before, record, tail, after = self.in_place(DISK, script).out.decode().splitlines()
        self.assertEqual([(each["path"], each["change"], each["bytes"]) for each in json.loads(record)["changes"]], [("big", "modified", 500000004)])
        self.assertEqual((tail, after), ("more 500000004", before))


class Planted(Place):
    """A link left by an earlier run where sbx will create a mount point."""

    def test_it_leads_nowhere(self):
        elsewhere = self.tmp / "elsewhere"
        elsewhere.mkdir()
        data = self.write("data", "x", directory=self.tmp)
        script = "\n".join([self.sandboxed(f"import os; os.symlink('{elsewhere}', 'in')", "--apply", "--yes"), "test -L in",
                            *(f'"$SBX" run --workspace .:{mode} --read "{data}:$PWD/in/{name}" true && echo ran || echo "status $?"'
                              for mode in ("overlay", "read-write", "read-only") for name in ("data", "deep/data"))])
        for kind in (DISK, TMPFS, OVERLAY):
            ended = self.in_place(kind, script)
            self.assertEqual(ended.out.decode().splitlines()[1:], ["status 125"] * 6, ended)
            self.assertEqual(os.listdir(elsewhere), [], kind)


if __name__ == "__main__":
    sbxtest.main()
