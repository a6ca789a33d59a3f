# A machine with systemd and a user's manager (cgroup v2, scopes by D-Bus).
# root: systemd
. /src/tests/vm/guest.sh
in_group stay
tests root vm/inside/test_scope.py
finish
