"""Real servers of the small internet: dnsmasq, nginx with TLS, redis, PostgreSQL. Each is started in the internet's
namespaces and dies with the process that started it."""

import ctypes
import glob
import os
import pathlib
import shutil
import signal
import socket
import subprocess
import time

import internet
from harness import HANG
from internet import DNS_SERVER, PRIVATE, PUBLIC, PUBLIC6

REDIS, POSTGRES, HTTPS = 6379, 5432, 443
TLS_NAMES = ("web.example.org", "same.example.org", "six.example.org")
_running = []  # as long as this process lives

_libc = ctypes.CDLL(None, use_errno=True)

NGINX = """
daemon off; master_process off; error_log {directory}/nginx.log; pid {directory}/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type text/plain;
  client_body_temp_path {directory}/t1; proxy_temp_path {directory}/t2; fastcgi_temp_path {directory}/t3; uwsgi_temp_path {directory}/t4; scgi_temp_path {directory}/t5;
  ssl_certificate {directory}/server.crt; ssl_certificate_key {directory}/server.key;
  {sites}
}}
"""
SITE = """
  server {{
    listen {v4}:80; listen {v4}:443 ssl http2; listen [{v6}]:80; listen [{v6}]:443 ssl http2; server_name {name};
    root {directory}/www;
    location = / {{ return 200 "page of {name}\\n"; }}
  }}
"""


def program(name):
    """The path of a server's program; None if its package is not installed."""
    found = shutil.which(name, path="/usr/sbin:/usr/bin:/sbin:/bin")
    if found is None:
        found = next(iter(sorted(glob.glob(f"/usr/lib/postgresql/*/bin/{name}"), reverse=True)), None)
    return found


def _die_with_parent():
    _libc.prctl(1, signal.SIGKILL, 0, 0, 0)  # PR_SET_PDEATHSIG


def start(command, directory, name, **options):
    with open(pathlib.Path(directory) / f"{name}.out", "wb") as log:
        _running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent, **options))
    return _running[-1]


def wait_for_port(process, address, port):
    """Waits until the server accepts connections: from outside there is no event to wait for."""
    deadline = time.monotonic() + HANG
    while True:
        try:
            socket.create_connection((address, port), 5).close()
            # PostgreSQL accepts connections while it still starts up, and refuses what they ask for.
            if port == POSTGRES:
                subprocess.run([program("pg_isready"), "-q", "-h", address, "-p", str(port)], check=True, cwd="/")
            return
        except (OSError, subprocess.CalledProcessError):
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def make_certificates(directory):
    """A certificate authority of the test, and one certificate for all names."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    directory = pathlib.Path(directory)
    names = ",".join(f"DNS:{name}" for name in TLS_NAMES)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", directory / "ca.key", "-out", directory / "ca.crt")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=web.example.org",
            "-addext", f"subjectAltName={names}", "-keyout", directory / "server.key", "-out", directory / "server.csr")
    openssl("x509", "-req", "-in", directory / "server.csr", "-CA", directory / "ca.crt", "-CAkey", directory / "ca.key", "-days", "2",
            "-copy_extensions", "copy", "-out", directory / "server.crt")


def serve_names(names, directory):
    """dnsmasq with these names and no upstream server."""
    records = [f"--host-record={name},{','.join(addresses)}" for name, addresses in names.items() if addresses]
    names_server = start([program("dnsmasq"), "--keep-in-foreground", "--no-resolv", "--no-hosts", "--no-daemon", "--conf-file=/dev/null",
                          "--bind-interfaces", f"--listen-address={DNS_SERVER}", "--pid-file=", "--cache-size=0",
                          f"--user={os.environ.get('USER', 'root')}", *records], directory, "dnsmasq")
    wait_for_port(names_server, DNS_SERVER, 53)  # bound after its UDP port


def serve_web(directory):
    """Plain and over TLS, several names on one address; git's dumb protocol is files."""
    directory = pathlib.Path(directory)
    make_certificates(directory)
    sites = "".join(SITE.format(v4=PUBLIC, v6=PUBLIC6, name=name, directory=directory) for name in TLS_NAMES)
    (directory / "nginx.conf").write_text(NGINX.format(directory=directory, sites=sites))
    return start([program("nginx"), "-c", directory / "nginx.conf", "-e", directory / "nginx.log", "-p", directory], directory, "nginx")


def serve_redis(directory):
    return start([program("redis-server"), "--bind", PUBLIC, "--port", str(REDIS), "--save", "", "--protected-mode", "no", "--dir", directory], directory,
                 "redis")


def serve_postgres(directory):
    """It refuses to run as root, so root runs it as nobody."""
    data = pathlib.Path(directory) / "postgres"
    data.mkdir()
    be_nobody = []
    if os.geteuid() == 0:
        shutil.chown(data, "nobody", "nogroup")
        be_nobody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    subprocess.run([*be_nobody, program("initdb"), "-D", data, "-U", "test", "-A", "trust", "--no-sync", "--locale=C"], check=True, capture_output=True,
                   cwd="/")
    with open(data / "pg_hba.conf", "a") as rules:
        rules.write("host all all 0.0.0.0/0 trust\n")
    return start([*be_nobody, program("postgres"), "-D", data, "-h", PUBLIC, "-p", str(POSTGRES), "-k", "", "-F",
                  # Killed at the end of the test, it would leave files in /dev/shm.
                  "-c", "dynamic_shared_memory_type=mmap"], directory, "postgres", cwd="/")


def serve(names, directory, wanted):
    """Starts those of "web", "redis" and "postgres" that are wanted, and DNS; called in the internet's namespace."""
    # An ordinary user's servers bind ports below 1024 in their own network namespace.
    pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    internet.serve_tcp(PRIVATE, 80, internet.Page)
    serve_names(names, directory)
    makers = {"web": (serve_web, HTTPS), "redis": (serve_redis, REDIS), "postgres": (serve_postgres, POSTGRES)}
    for name in wanted:
        make, port = makers[name]
        wait_for_port(make(directory), PUBLIC, port)
