"""limits.disk in a live grant, where no kernel counter exists: each way in which a process could write there unseen."""

import json
import subprocess

import sbxtest
from sbxtest import PROBE, SbxTest

MIB = 1 << 20
UNREADABLE = "import ctypes\nprint(ctypes.CDLL(None, use_errno=True).prctl(4, 0, 0, 0, 0), ctypes.get_errno())"
SET_ASIDE = "import ctypes, os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\n" \
            "print(ctypes.CDLL(None, use_errno=True).fallocate(f, 0, ctypes.c_long(0), ctypes.c_long(8 << 20)), ctypes.get_errno())\n" \
            "print(os.fstat(f).st_blocks >> 11)"
# FS_IOC_RESVSP64 with a struct space_resv: the same through ioctl(2).
SET_ASIDE_BY_IOCTL = "import errno, fcntl, os, struct\nf = os.open('f', os.O_CREAT | os.O_RDWR)\n" \
                     "try: fcntl.ioctl(f, 0x4030582a, struct.pack('hhxxxxqqiI16x', 0, 0, 0, 8 << 20, 0, 0))\n" \
                     "except OSError as error: print(error.errno)\nprint(os.fstat(f).st_blocks >> 11)"
POSIX_SET_ASIDE = "import os\nf = os.open('f', os.O_CREAT | os.O_RDWR)\nos.posix_fallocate(f, 0, int(os.environ['MIB']) << 20)\n" \
                  "print(os.fstat(f).st_blocks >> 11)"
# A copy that it may execute but not read: only the host's root can read what such a program writes.
RUN_ONLY = "cp \"$1\" /tmp/p; chmod 111 /tmp/p; shift; exec /tmp/p \"$@\""


class LiveDisk(SbxTest):
    def setUp(self):
        super().setUp()
        self.limits = ["--read", PROBE, "--disk", "16M", "--set", 'limits.file_size="1G"']
        self.live = ["--workspace", f"{self.work}:read-write", *self.limits]
        self.copy = ["--workspace", f"{self.work}:overlay", *self.limits]

    def stopped(self, ended):
        self.assertEqual((ended.verdict, ended.status), (("over-budget", "disk"), 153), ended)
        return ended

    def test_a_process_whose_first_thread_left_is_counted(self):
        ended = self.stopped(self.sbx(*self.live, PROBE, "fill-without-first", "f", "400"))
        self.assertEqual([met["limit"] for met in ended.record["limits_met"]], ["disk"])
        self.assertGreater(ended.record["usage"]["written_bytes"], 16 * MIB)
        self.exited(self.sbx(*self.live, PROBE, "fill-without-first", "f", "4"))

    def test_space_is_not_set_aside_without_a_count(self):
        self.assertEqual(self.exited(self.python(SET_ASIDE, options=self.live)).text, "-1 95\n0\n")
        for allowed in (self.copy, [*self.live, "--set", 'syscalls.allow=["fallocate"]']):
            self.assertEqual(self.exited(self.python(SET_ASIDE, options=allowed)).text, "0 0\n8\n")

    def test_space_is_not_set_aside_by_ioctl(self):
        self.assertEqual(self.exited(self.python(SET_ASIDE_BY_IOCTL, options=self.live)).text, "95\n0\n")
        self.assertEqual(self.exited(self.python(SET_ASIDE_BY_IOCTL, options=self.copy)).text, "8\n")

    def test_space_that_the_c_library_sets_aside_by_writing_is_counted(self):
        self.assertEqual(self.exited(self.python(POSIX_SET_ASIDE, options=[*self.live, "--set", 'environment.set={MIB="4"}'])).text, "4\n")
        self.stopped(self.python(POSIX_SET_ASIDE, options=[*self.live, "--set", 'environment.set={MIB="1600"}']))

    def test_no_process_makes_itself_unreadable(self):
        ended = self.exited(self.python(UNREADABLE, options=self.live))
        self.assertEqual(ended.text, "-1 1\n")
        [denial] = [each for each in ended.record["denials"] if each["what"] == "prctl(PR_SET_DUMPABLE)"]
        self.assertIn("limits.disk", denial["rule"])
        option = denial["allow_with"].replace("syscalls.rule = ", "syscalls.rule=")
        # For an ordinary user such a process can't be measured: when it is stopped depends on the poll.
        for allowed in (self.copy, *([[*self.live, "--set", option]] if sbxtest.IS_ROOT else [])):
            self.assertEqual(self.exited(self.python(UNREADABLE, options=allowed)).text, "0 0\n")

    def test_a_program_that_it_may_not_read_is_stopped_where_it_cannot_be_counted(self):
        run = ["--", "sh", "-c", RUN_ONLY, "sh", PROBE, "sleep"]
        soon = ["--timeout", "300ms"]
        self.assertEqual(self.sbx(*self.copy, *soon, *run).verdict, ("over-budget", "wall_time"))
        ended = self.sbx(*self.live, *(soon if sbxtest.IS_ROOT else ["--timeout", "60s"]), *run)
        if sbxtest.IS_ROOT:  # root can read its counters
            self.assertEqual(ended.verdict, ("over-budget", "wall_time"), ended)
            return
        self.assertIn("can't be counted", self.stopped(ended).outcome["detail"])
        self.assertEqual(ended.record["limits_met"], [])

    def test_a_program_that_it_may_not_read_is_stopped_amid_its_flood(self):
        self.stopped(self.sbx(*self.live, "--set", 'limits.file_size="100G"', "--", "sh", "-c", RUN_ONLY, "sh", PROBE, "fill", "f", str(20_000 * MIB)))


# Each way to write a file on a tmpfs that needs no extra permission.
WAYS = ("write", "map", "populate", "splice", "send", "copy", "children")
# Mounted where nobody else writes, so that all growth is the program's.
ON_OWN_TMPFS = 'mount -t tmpfs -o size=2g,mode=777 t "$0" && {}cd "$0" && exec setpriv --inh-caps=-all --ambient-caps=-all "$@"'
ON_OVERLAY = 'mkdir -m 777 upper work lower top && mount -t overlay -o "lowerdir=$0/lower,upperdir=$0/upper,workdir=$0/work" t top && '


class InMemory(SbxTest):
    """A live grant on a tmpfs of the host: in no process's count, so its growth counts."""

    WRAPPER = ["unshare", "--mount"] if sbxtest.IS_ROOT else ["unshare", "--user", "--map-current-user", "--mount", "--keep-caps"]

    def setUp(self):
        super().setUp()
        if subprocess.run([*self.WRAPPER, "true"], capture_output=True).returncode != 0:
            self.skipTest("mounts can't be made here")
        if sbxtest.IS_ROOT and not sbxtest.tmpfs_takes_id_maps():
            self.skipTest("this kernel can't grant a tmpfs live to callers with root's rights")

    def overlays_take_nameless_files(self):
        """Whether an overlay can be tested with unnamed files; asked of the kernel: 6.1 has none there."""
        attempt = ["/usr/bin/python3", "-c", "import os; os.open('top', os.O_TMPFILE | os.O_WRONLY, 0o600)"]
        return subprocess.run([*self.WRAPPER, "sh", "-c", ON_OWN_TMPFS.format('cd "$0" && ' + ON_OVERLAY), str(self.work), *attempt],
                              cwd=self.work, capture_output=True).returncode == 0

    def on_tmpfs(self, *command, before="", grant=None, disk="16M", options=()):
        live = ["--workspace", f"{grant or self.work}:read-write", "--read", PROBE, "--disk", disk, "--memory", "4G", "--set", 'limits.file_size="2G"']
        process = sbxtest.start([*self.WRAPPER, "sh", "-c", ON_OWN_TMPFS.format(before), str(self.work), *self.command(*live, *options, "--", *command)],
                                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=self.environment(), cwd=self.work)
        return self.finish(process, command)

    def stopped(self, ended):
        self.assertEqual((ended.verdict, ended.status), (("over-budget", "disk"), 153), ended)
        self.assertEqual([met["limit"] for met in ended.record["limits_met"]], ["disk"], ended)
        self.assertGreater(ended.record["usage"]["written_bytes"], 16 * MIB, ended)
        self.assertIn("by the growth of a file system in memory", ended.outcome["detail"])
        return ended

    def test_each_way_of_writing_is_counted(self):
        for way in WAYS:
            with self.subTest(way):
                self.stopped(self.on_tmpfs(PROBE, "fill-by", way, ".", "64", "stay"))
                ended = self.exited(self.on_tmpfs(PROBE, "fill-by", way, ".", "8"))
                self.assertEqual(ended.record["limits_met"], [], ended)

    def test_extended_attributes_are_counted(self):
        within = self.on_tmpfs(PROBE, "fill-by", "attributes", ".", "8")
        if "EOPNOTSUPP" in within.text:
            self.skipTest("this kernel's tmpfs has no extended attributes for users")
        self.assertEqual(self.exited(within).record["limits_met"], [], within)
        self.assertGreaterEqual(within.record["usage"]["written_bytes"], 8 * MIB)
        self.stopped(self.on_tmpfs(PROBE, "fill-by", "attributes", ".", "64", "stay"))

    def test_files_without_content_are_counted(self):
        stay = '"$@"; exec sleep 100'
        self.stopped(self.on_tmpfs("sh", "-c", stay, "sh", PROBE, "make-files", ".", "20000"))
        self.assertEqual(self.exited(self.on_tmpfs(PROBE, "make-files", ".", "8000")).record["limits_met"], [])

    def test_a_file_without_a_name_is_counted(self):
        for way in ("write", "map"):
            with self.subTest(way):
                self.stopped(self.on_tmpfs(PROBE, "fill-by", way, ".", "64", "nameless", "stay"))
                self.exited(self.on_tmpfs(PROBE, "fill-by", way, ".", "8", "nameless"))

    def test_space_that_is_set_aside_is_counted_where_that_is_allowed(self):
        self.assertIn("EOPNOTSUPP", self.on_tmpfs(PROBE, "fill-by", "set-aside", ".", "64").text)
        allowed = ["--set", 'syscalls.allow=["fallocate"]']
        self.stopped(self.on_tmpfs(PROBE, "fill-by", "set-aside", ".", "64", "stay", options=allowed))
        self.exited(self.on_tmpfs(PROBE, "fill-by", "set-aside", ".", "8", options=allowed))

    def test_the_same_bytes_again_are_no_growth(self):
        self.exited(self.on_tmpfs(PROBE, "fill-by", "overwrite", ".", "400"))

    def test_what_is_deleted_makes_no_room(self):
        old = 'head -c 104857600 /dev/zero > "$0/old" && '
        # Repeatedly: on a busy machine there may be no look while usage is lower.
        for_ever = 'rm old; while :; do sleep 0.1; "$@"; rm write; done'
        self.stopped(self.on_tmpfs("sh", "-c", for_ever, "sh", PROBE, "fill-by", "write", ".", "90", before=old))
        self.exited(self.on_tmpfs("sh", "-c", 'rm old; sleep 0.1; "$@"', "sh", PROBE, "fill-by", "write", ".", "8", before=old))

    def test_a_mount_in_a_granted_directory_is_counted(self):
        inner = 'mkdir deep && mount -t tmpfs -o size=2g,mode=777 t deep && '
        self.stopped(self.on_tmpfs(PROBE, "fill-by", "map", "deep", "64", "stay", before='cd "$0" && ' + inner))
        self.exited(self.on_tmpfs(PROBE, "fill-by", "map", "deep", "8", before='cd "$0" && ' + inner))

    def test_an_overlay_on_a_tmpfs_is_counted(self):
        checks = ((("64", "stay"), self.stopped), (("8",), self.exited))
        if sbxtest.IS_ROOT:  # root's grants need idmapped mounts, which overlayfs lacks
            checks = ((("8",), lambda ended: self.could_not(ended, "idmapped mounts")),)
        for amount, check in checks:
            check(self.on_tmpfs(PROBE, "fill-by", "write", ".", *amount, before='cd "$0" && ' + ON_OVERLAY, grant=self.work / "top"))

    def test_an_overlay_whose_upper_layer_is_out_of_sight_is_tried(self):
        hidden = ON_OVERLAY + 'mkdir "$0/../on" && mount -n --move top "$0/../on" && umount -n -l "$0" && '
        top = self.tmp / "on"
        can_be_tried = self.overlays_take_nameless_files()
        for amount, check in ((("64", "stay"), self.stopped), (("8",), self.exited))[0 if can_be_tried else 1:]:
            ended = self.on_tmpfs(PROBE, "fill-by", "write", str(top), *amount, before='cd "$0" && ' + hidden, grant=top)
            if sbxtest.IS_ROOT:  # root's grants need idmapped mounts, which overlayfs lacks
                self.could_not(ended, "idmapped mounts")
            else:
                said = "is an overlay that lies in memory" if can_be_tried else "whether it lies in memory can't be tried"
                self.assertIn(said, json.dumps(check(ended).record["degraded"]))
            top.rmdir()

    def test_an_overlay_on_a_disk_is_not_taken_for_memory(self):
        if sbxtest.IS_ROOT:
            self.skipTest("an overlay can't be granted live to callers with root's rights")
        if subprocess.run(["stat", "-f", "-c", "%T", self.tmp], capture_output=True, text=True, check=True).stdout.strip() == "tmpfs":
            self.skipTest("the temporary directory lies in memory itself")
        ended = self.exited(self.on_tmpfs(PROBE, "fill-by", "write", "top", "8", before='umount -n "$0" && cd "$0" && ' + ON_OVERLAY))
        self.assertNotIn("that lies in memory", json.dumps(ended.record["degraded"]))
        self.assertGreaterEqual(ended.record["usage"]["written_bytes"], 8 * MIB)

    def test_what_another_program_writes_there_counts_too(self):
        wait = 'timeout 100 sh -c \'while [ ! -e "$0/begun" ]; do :; done\' "$0"'  # ends whatever happens to sbx
        other = '{ (' + wait + '; head -c 33554432 /dev/zero > "$0/other") > /dev/null 2>&1 & } && '
        ended = self.stopped(self.on_tmpfs("sh", "-c", "echo > begun; exec sleep 60", before=other))
        self.assertIn("whoever wrote there", ended.outcome["detail"])

    def test_it_is_said_that_others_count_too(self):
        ended = self.exited(self.on_tmpfs("true"))
        [said] = [each for each in ended.record["degraded"] if each["what"] == "limits.disk" and "lies in memory" in each["why"]]
        self.assertIn(str(self.work), said["why"])
        self.assertIn("other programs", said["instead"])
        copied = self.exited(self.on_tmpfs("true", options=["--workspace", f"{self.work}:overlay"]))
        self.assertNotIn("lies in memory", json.dumps(copied.record["degraded"]))

    def test_memory_that_does_not_count_what_it_holds_is_refused(self):
        for without, said in (("size=0", "does not count"), ("nr_inodes=0", "mount it with nr_inodes")):
            unlimited = f'mkdir deep && mount -t tmpfs -o {without},mode=777 t deep && '
            for mode, check in (("read-write", lambda ended: self.could_not(ended, "limits.disk", said)), ("overlay", self.exited)):
                with self.subTest(without, mode=mode):
                    check(self.on_tmpfs("true", before='cd "$0" && ' + unlimited, options=["--workspace", f"{self.work}/deep:{mode}"]))


if __name__ == "__main__":
    sbxtest.main()
