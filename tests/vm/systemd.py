"""A guest with systemd and a user manager: debootstrap creates the disk once; the job runs as a service of it.

Creating the disk needs root (debootstrap unpacks packages with their owners), running it does not."""

import os
import pathlib
import shutil
import subprocess

import directories
from kernels import Missing

PACKAGES = ("systemd", "systemd-sysv", "dbus", "dbus-user-session", "libpam-systemd", "python3", "libstdc++6", "util-linux", "procps")

JOB_UNIT = """[Unit]
After=multi-user.target user@1000.service
Wants=user@1000.service

[Service]
Type=oneshot
ExecStart=/bin/sh -c 'echo "@@BOOTED $(uname -r) $(cut -d" " -f1 /proc/uptime)"; sh /run/job/job; echo "@@EXIT $?"'
ExecStopPost=/usr/bin/systemctl poweroff --force --force
StandardOutput=tty
StandardError=tty
TTYPath=/dev/ttyS0

[Install]
WantedBy=default.target
"""
# The guest needs none of these, and each costs a second under emulation.
MASKED = ("systemd-timesyncd.service", "apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer",
          "systemd-update-utmp.service", "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-journal-flush.service", "e2scrub_reap.service",
          "systemd-random-seed.service", "systemd-pstore.service", "motd-news.timer", "systemd-udevd.service", "systemd-udev-trigger.service")


def disk(cache):
    """The disk's file, created if missing. Raises Missing."""
    target = pathlib.Path(cache) / "systemd.ext4"
    if target.exists():
        return target
    if os.geteuid() != 0:
        raise Missing("its disk is made by root (debootstrap), and was not made yet")
    if not shutil.which("debootstrap"):
        raise Missing("debootstrap is not installed (package debootstrap)")
    with directories.own(cache) as (directory, mark):
        root = directory / "root"
        try:
            subprocess.run(["debootstrap", "--variant=minbase", "--include=" + ",".join(PACKAGES), "bookworm", root], check=True,
                           stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, pass_fds=(mark,))
        except subprocess.CalledProcessError as error:
            raise Missing(f"debootstrap: {error.stderr.decode(errors='replace')[-300:]}") from error
        _configure(root)
        partial = directory / "disk"
        with open(partial, "wb") as file:
            file.truncate(1 << 30)
        subprocess.run(["mke2fs", "-q", "-t", "ext4", "-d", root, partial], check=True)
        os.replace(partial, target)
    return target


def _configure(root):
    for name in ("var/cache/apt", "var/lib/apt/lists", "usr/share/doc", "usr/share/locale", "usr/share/man"):
        shutil.rmtree(root / name, ignore_errors=True)
    with open(root / "etc/passwd", "a", encoding="ascii") as passwd, open(root / "etc/shadow", "a", encoding="ascii") as shadow, \
            open(root / "etc/group", "a", encoding="ascii") as group:
        passwd.write("tester:x:1000:1000::/home/tester:/bin/sh\n")
        shadow.write("tester:*:19000:0:99999:7:::\n")  # pam_systemd needs an entry
        group.write("tester:x:1000:\n")
    (root / "home/tester").mkdir()
    os.chown(root / "home/tester", 1000, 1000)
    for name in ("t", "src"):
        (root / name).symlink_to(f"run/job/{name}")
    (root / "etc/hostname").write_text("guest\n")
    (root / "etc/fstab").write_text("")
    linger = root / "var/lib/systemd/linger"
    linger.mkdir(parents=True, exist_ok=True)
    (linger / "tester").touch()  # its manager runs without a login
    units = root / "etc/systemd/system"
    (units / "job.service").write_text(JOB_UNIT)
    wants = units / "multi-user.target.wants"
    wants.mkdir(exist_ok=True)
    (wants / "job.service").symlink_to("../job.service")
    for name in MASKED:
        (units / name).unlink(missing_ok=True)
        (units / name).symlink_to("/dev/null")
