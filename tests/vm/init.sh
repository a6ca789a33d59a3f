#!/busybox sh
# The first process of the guest: mounts the usual file systems, then runs /job as root and prints its status. Each
# line that begins with @@ is for tests/vm/machine.py, which reads the serial line.
export PATH=/usr/sbin:/usr/bin:/applets

load_modules() {
  while read -r module; do
    insmod "/modules/$module" || echo "@@NOTE module $module was not loaded"
  done </modules/order
  # The disk may appear after its module was loaded; nothing here tells when.
  for turn in 1 2 3 4 5 6 7 8 9 10 11 12 13 14 15 16 17 18 19 20; do
    [ -e /dev/vda ] || sleep 1
  done
}

# A guest with its own init on its disk finds the job, the binary and the tests in /run/job.
if [ "$(cat /disk-is-root 2>/dev/null)" = yes ]; then
  mount -t devtmpfs devtmpfs /dev
  load_modules
  mount -t ext4 /dev/vda /newroot
  mount -t tmpfs -o mode=0755 tmpfs /newroot/run
  mkdir /newroot/run/job
  cp -a /t /src /job /newroot/run/job/
  exec switch_root /newroot /sbin/init
fi

# The root that the kernel unpacks can't be pivoted away from, pivot_root(2); a bind mount of it on top can.
if [ "$1" != again ]; then
  mount --bind / /newroot
  cd /newroot
  mount --move . /
  exec chroot . /init again
fi

chmod 755 /
mount -t proc -o nosuid,nodev,noexec proc /proc
mount -t sysfs -o nosuid,nodev,noexec sysfs /sys
mount -t devtmpfs -o mode=0755 devtmpfs /dev
mkdir -p /dev/pts /dev/shm
mount -t devpts -o mode=620,ptmxmode=666 devpts /dev/pts
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
mount -t tmpfs -o mode=0755 tmpfs /run
[ -e /dev/fd ] || ln -s /proc/self/fd /dev/fd
load_modules
mount -t cgroup2 -o nosuid,nodev,noexec cgroup2 /sys/fs/cgroup
mount -t securityfs securityfs /sys/kernel/security 2>/dev/null
# A disk like that of a real machine: idmapped mounts and user.* attributes work on it with every kernel.
mount -t ext4 /dev/vda /disk && mkdir -m 1777 -p /disk/tmp && mount --bind /disk/tmp /tmp
ip link set lo up
hostname guest

echo "@@BOOTED $(uname -r) $(cut -d' ' -f1 /proc/uptime)"
/bin/sh /job
echo "@@EXIT $?"
poweroff -f
