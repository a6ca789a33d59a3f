"""A thousand runs in succession: afterwards the machine is as before."""

import os
import pathlib

import sbxtest
from sbxtest import PROBE, SbxTest
from test_groups import left, names_in

SHOW = ("--", "cat", "/proc/self/cgroup")
# Ways to end and mechanisms, in turn: each needs another clean-up.
KINDS = (
    (SHOW, 0),
    (("--lang", "python", "-c", "open('/tmp/f', 'w').write('x' * 4096)"), 0),
    (SHOW, 0),
    (("--timeout", "30ms", "--", "sleep", "60"), 124),
    (SHOW, 0),
    (("--allow-host", "host.sbx.internal:9", "--", "true"), 0),
    (SHOW, 0),
    (("--memory", "24M", "--", PROBE, "hold-anonymous", "64"), 137),
    (SHOW, 0),
    (("--", PROBE, "leave", "daemon", "3"), 0),
)


def listed(directory):
    """Names in a shared directory, without those of the tests."""
    try:
        return {f"{directory}/{name}" for name in os.listdir(directory) if not name.startswith("sbx-test-")}
    except OSError:
        return set()


def own_ipc():
    """Keys of System V objects of this user, by kind."""
    found = set()
    for kind, uid in (("shm", 7), ("sem", 4), ("msg", 7)):
        for line in pathlib.Path(f"/proc/sysvipc/{kind}").read_text().splitlines()[1:]:
            fields = line.split()
            if int(fields[uid]) == os.getuid():
                found.add((kind, fields[1]))
    return found


def interfaces():
    return {line.partition(":")[0].strip() for line in pathlib.Path("/proc/net/dev").read_text().splitlines()[2:]}


def of_sbx(entries):
    return sorted(entry for entry in entries if "sbx" in str(entry))


class Sequence(SbxTest):
    def snapshot(self):
        """What runs may leave on the machine, without processes and groups, which are identified by number and name."""
        inside = {str(path) for path in self.tmp.rglob("*")}
        return {"files of the caller": inside, "mounts": set(sbxtest.mounts().splitlines()), "System V objects": own_ipc(), "interfaces": interfaces(),
                **{directory: listed(directory) for directory in ("/dev/shm", "/tmp", "/var/tmp", "/run", f"/run/user/{os.getuid()}")}}

    def test_slow_thousand_leave_nothing(self):
        for options, _ in KINDS:  # data kept for the next run (the last record, a store) exists from now on
            self.sbx(*options)
        before = self.snapshot()
        groups = set()
        for turn in range(1000):
            options, status = KINDS[turn % len(KINDS)]
            ended = self.sbx(*options)  # which looks for processes
            self.assertEqual(ended.status, status, ended)
            groups |= names_in(ended.text or "")
        if ended.record["enforced"]["memory"] != "polled":
            self.assertEqual(len(groups), 500, "two runs had one group")
        self.assertEqual(left(groups), [])
        after = self.snapshot()
        # In a private mount namespace and in these directories only sbx is active; elsewhere others are too.
        self.assertEqual(after["files of the caller"], before["files of the caller"])
        self.assertEqual(after["System V objects"] - before["System V objects"], set())
        for what in ("mounts", "interfaces", "/dev/shm", "/tmp", "/var/tmp", "/run", f"/run/user/{os.getuid()}"):
            self.assertEqual(of_sbx(after[what] - before[what]), [], what)
        if sbxtest.IS_ROOT:
            self.assertEqual(after["mounts"], before["mounts"])
        self.assertEqual(sbxtest.orphans_after(sbxtest.GONE_WITHIN_SECONDS), [])

    def test_look_sees_what_is_left(self):
        """The comparison is worthless if it can't fail."""
        before = self.snapshot()
        (self.tmp / "left").touch()
        name = pathlib.Path(f"/dev/shm/sbx-left-{os.getpid()}")
        name.touch()
        self.addCleanup(name.unlink)
        after = self.snapshot()
        self.assertNotEqual(after["files of the caller"], before["files of the caller"])
        self.assertIn(str(name), of_sbx(after["/dev/shm"] - before["/dev/shm"]))


if __name__ == "__main__":
    sbxtest.main()
