"""Numbers of the system calls that tests make by hand or look for, from each architecture's asm/unistd.h. They don't come from the
table in src/plan/filter, which these tests test. No other file of tests names a call by its number (repo.call_numbers_are_in_one_place)."""

import platform

# Name: its number on x86-64 and on aarch64; None where C libraries make another call.
_NUMBERS = {
    "acct": (163, 89), "add_key": (248, 217), "bpf": (321, 280), "chmod": (90, None), "chown": (92, None),
    "chroot": (161, 51), "clock_settime": (227, 112), "clone": (56, 220), "clone3": (435, 435),
    "copy_file_range": (326, 285), "creat": (85, None), "delete_module": (176, 106), "fallocate": (285, 47),
    "fanotify_init": (300, 262), "fchmod": (91, 52), "fchmodat": (268, 53), "fchmodat2": (452, 452),
    "fchown": (93, 55), "fchownat": (260, 54), "finit_module": (313, 273), "fsconfig": (431, 431),
    "fsmount": (432, 432), "fsopen": (430, 430), "fspick": (433, 433), "ftruncate": (77, 46),
    "get_mempolicy": (239, 236), "get_robust_list": (274, 100), "getpid": (39, 172), "init_module": (175, 105),
    "io_uring_enter": (426, 426), "io_uring_register": (427, 427), "io_uring_setup": (425, 425),
    "ioperm": (173, None), "iopl": (172, None), "ioprio_set": (251, 30), "kcmp": (312, 272),
    "kexec_file_load": (320, 294), "kexec_load": (246, 104), "keyctl": (250, 219),
    "landlock_create_ruleset": (444, 444), "lchown": (94, None), "link": (86, None), "linkat": (265, 37),
    "listmount": (458, 458), "lookup_dcookie": (212, 18), "memfd_secret": (447, 447), "migrate_pages": (256, 238),
    "mkdir": (83, None), "mkdirat": (258, 34), "mknod": (133, None), "mknodat": (259, 33),
    "modify_ldt": (154, None), "mount": (165, 40), "mount_setattr": (442, 442), "move_mount": (429, 429),
    "move_pages": (279, 239), "name_to_handle_at": (303, 264), "open": (2, None), "open_by_handle_at": (304, 265),
    "open_tree": (428, 428), "openat": (257, 56), "openat2": (437, 437), "perf_event_open": (298, 241),
    "personality": (135, 92), "pidfd_getfd": (438, 438), "pidfd_open": (434, 434), "pidfd_send_signal": (424, 424),
    "pivot_root": (155, 41), "process_madvise": (440, 440), "process_mrelease": (448, 448),
    "process_vm_readv": (310, 270), "process_vm_writev": (311, 271), "ptrace": (101, 117), "pwrite64": (18, 68),
    "quotactl": (179, 60), "reboot": (169, 142), "rename": (82, None), "renameat": (264, 38),
    "renameat2": (316, 276), "request_key": (249, 218), "rmdir": (84, None), "sched_getattr": (315, 275),
    "seccomp": (317, 277), "sendfile": (40, 71), "setdomainname": (171, 162), "sethostname": (170, 161),
    "setns": (308, 268), "settimeofday": (164, 170), "setxattr": (188, 5), "splice": (275, 76),
    "swapon": (167, 224), "symlink": (88, None), "symlinkat": (266, 36), "syslog": (103, 116),
    "timer_create": (222, 107), "timer_settime": (223, 110), "truncate": (76, 45), "umount2": (166, 39),
    "unlink": (87, None), "unlinkat": (263, 35), "unshare": (272, 97), "userfaultfd": (323, 282),
    "utimensat": (280, 88), "vmsplice": (278, 75), "write": (1, 64),
}
_COLUMN = {"x86_64": 0, "aarch64": 1}[platform.machine()]
# The calls of this machine.
SYSCALLS = {name: numbers[_COLUMN] for name, numbers in _NUMBERS.items() if numbers[_COLUMN] is not None}
