# Machines that refuse: settings, a chroot, a container's filter, a masked /proc.
. /src/tests/vm/guest.sh
tests root vm/inside/test_refusals.py
finish
