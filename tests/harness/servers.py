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
daemon off; master_process off; error_log {folder}/nginx.log; pid {folder}/nginx.pid;
events {{ worker_connections 512; }}
http {{
  access_log off; default_type text/plain;
  client_body_temp_path {folder}/t1; proxy_temp_path {folder}/t2; fastcgi_temp_path {folder}/t3; uwsgi_temp_path {folder}/t4; scgi_temp_path {folder}/t5;
  ssl_certificate {folder}/server.crt; ssl_certificate_key {folder}/server.key;
  {sites}
}}
"""
SITE = """
  server {{
    listen {v4}:80; listen {v4}:443 ssl http2; listen [{v6}]:80; listen [{v6}]:443 ssl http2; server_name {name};
    root {folder}/www;
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


def start(command, folder, name, **options):
    with open(pathlib.Path(folder) / f"{name}.out", "wb") as log:
        _running.append(subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=log, stderr=log, preexec_fn=_die_with_parent, **options))
    return _running[-1]


def wait_for_port(process, address, port):
    """Waits until the server accepts connections: from outside there is no event to wait for."""
    deadline = time.monotonic() + HANG
    while True:
        try:
            socket.create_connection((address, port), 5).close()
            return
        except OSError:
            if process.poll() is not None or time.monotonic() > deadline:
                raise
            time.sleep(0.02)


def make_certificates(folder):
    """A certificate authority of the test, and one certificate for all names."""
    def openssl(*arguments):
        subprocess.run(["openssl", *map(str, arguments)], check=True, capture_output=True)

    folder = pathlib.Path(folder)
    names = ",".join(f"DNS:{name}" for name in TLS_NAMES)
    openssl("req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-days", "2", "-subj", "/CN=test authority",
            "-keyout", folder / "ca.key", "-out", folder / "ca.crt")
    openssl("req", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes", "-subj", "/CN=web.example.org",
            "-addext", f"subjectAltName={names}", "-keyout", folder / "server.key", "-out", folder / "server.csr")
    openssl("x509", "-req", "-in", folder / "server.csr", "-CA", folder / "ca.crt", "-CAkey", folder / "ca.key", "-days", "2",
            "-copy_extensions", "copy", "-out", folder / "server.crt")


def serve_names(names, folder):
    """dnsmasq with these names and no upstream server."""
    records = [f"--host-record={name},{','.join(addresses)}" for name, addresses in names.items() if addresses]
    names_server = start([program("dnsmasq"), "--keep-in-foreground", "--no-resolv", "--no-hosts", "--no-daemon", "--conf-file=/dev/null",
                          "--bind-interfaces", f"--listen-address={DNS_SERVER}", "--pid-file=", "--cache-size=0",
                          f"--user={os.environ.get('USER', 'root')}", *records], folder, "dnsmasq")
    wait_for_port(names_server, DNS_SERVER, 53)  # bound after its UDP port


def serve_web(folder):
    """Plain and over TLS, several names on one address; git's dumb protocol is files."""
    folder = pathlib.Path(folder)
    make_certificates(folder)
    sites = "".join(SITE.format(v4=PUBLIC, v6=PUBLIC6, name=name, folder=folder) for name in TLS_NAMES)
    (folder / "nginx.conf").write_text(NGINX.format(folder=folder, sites=sites))
    return start([program("nginx"), "-c", folder / "nginx.conf", "-e", folder / "nginx.log", "-p", folder], folder, "nginx")


def serve_redis(folder):
    return start([program("redis-server"), "--bind", PUBLIC, "--port", str(REDIS), "--save", "", "--protected-mode", "no", "--dir", folder], folder,
                 "redis")


def serve_postgres(folder):
    """It refuses to run as root, so root runs it as nobody."""
    data = pathlib.Path(folder) / "postgres"
    data.mkdir()
    be_nobody = []
    if os.geteuid() == 0:
        shutil.chown(data, "nobody", "nogroup")
        be_nobody = ["setpriv", "--reuid", "nobody", "--regid", "nogroup", "--clear-groups"]
    subprocess.run([*be_nobody, program("initdb"), "-D", data, "-U", "test", "-A", "trust", "--no-sync", "--locale=C"], check=True, capture_output=True,
                   cwd="/")
    with open(data / "pg_hba.conf", "a") as rules:
        rules.write("host all all 0.0.0.0/0 trust\n")
    return start([*be_nobody, program("postgres"), "-D", data, "-h", PUBLIC, "-p", str(POSTGRES), "-k", "", "-F"], folder, "postgres", cwd="/")


def serve(names, folder, wanted):
    """Starts those of "web", "redis" and "postgres" that are wanted, and DNS; called in the internet's namespace."""
    # An ordinary user's servers bind ports below 1024 in their own network namespace.
    pathlib.Path("/proc/sys/net/ipv4/ip_unprivileged_port_start").write_text("0")
    internet.serve_tcp(PRIVATE, 80, internet.Page)
    serve_names(names, folder)
    makers = {"web": (serve_web, HTTPS), "redis": (serve_redis, REDIS), "postgres": (serve_postgres, POSTGRES)}
    for name in wanted:
        make, port = makers[name]
        wait_for_port(make(folder), PUBLIC, port)
