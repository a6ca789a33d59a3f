"""Unmodified programs through the gateway: the same bytes as outside where it is allowed, an immediate error
elsewhere."""

import subprocess
import unittest

import internet
import sbxtest
import servers
from internet import Internet
from sbxtest import SbxTest

ALLOWED, REFUSED = "web.example.org", "same.example.org"
PATIENCE = "600"  # seconds that the clients would wait: longer than a run may last, so one that exits was told at once
URLLIB = "import sys, urllib.request as r; sys.stdout.write(r.urlopen(sys.argv[1], timeout=600).read().decode())"
REQUESTS = "import sys, requests; sys.stdout.write(requests.get(sys.argv[1], timeout=600).text)"
FETCH = "fetch(process.argv[1]).then(r => r.text()).then(t => process.stdout.write(t)).catch(e => { console.error(e.cause.code); process.exit(3) })"
STATIC_CLIENT = r"""
#include <arpa/inet.h>
#include <netdb.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
int main(int argc, char** argv) {
  struct addrinfo hints = {.ai_socktype = SOCK_STREAM}, *found;
  if (argc < 3 || getaddrinfo(argv[1], argv[2], &hints, &found) != 0) return 2;
  int s = socket(found->ai_family, SOCK_STREAM, 0);
  if (connect(s, found->ai_addr, found->ai_addrlen) != 0) return perror("connect"), 3;
  char text[4096];
  int n = snprintf(text, sizeof text, "GET / HTTP/1.0\r\nHost: %s\r\n\r\n", argv[1]);
  if (write(s, text, (size_t)n) != n) return 4;
  size_t all = 0;
  for (ssize_t got; (got = read(s, text + all, sizeof text - 1 - all)) > 0;) all += (size_t)got;
  text[all] = 0;
  char* body = strstr(text, "\r\n\r\n");
  return body == NULL ? 5 : fputs(body + 4, stdout) < 0;
}
"""


def needs(*programs):
    missing = [name for name in programs if servers.program(name) is None]
    return unittest.skipIf(missing, f"not installed: {' '.join(missing)}")


class Clients(SbxTest):
    def begin(self, *wanted):
        """A small internet with real servers."""
        if servers.program("dnsmasq") is None:
            self.skipTest("not installed: dnsmasq")
        self.net = self.tmp / "net"
        self.net.mkdir()
        self.net.chmod(0o755)
        self.tmp.chmod(0o755)
        if "web" in wanted:
            self.make_repository(self.net / "www" / "project.git")
        sbxtest.known_children().add(Internet(serve=lambda names: servers.serve(names, self.net, wanted)).pid)
        internet.use_files(self.tmp)

    def make_repository(self, path):
        path.parent.mkdir()
        source = self.tmp / "source"
        identity = ["-c", "user.name=test", "-c", "user.email=test@example.org"]
        for command in (["init", "-q", source], ["-C", source, *identity, "commit", "-q", "--allow-empty", "-m", "first"],
                        ["clone", "-q", "--bare", source, path], ["-C", path, "update-server-info"]):
            subprocess.run(["git", *command], check=True, env=self.environment())

    def through(self, command, *rules, options=()):
        words = [word for rule in rules for word in ("--allow-host", rule)]
        return self.sbx(*words, "--policy", "default", "--read", self.net, *options, "--", *command)

    def same_as_outside(self, command, *rules, env=None):
        """Runs a command outside and inside; returns the record."""
        outside = subprocess.run(list(map(str, command)), capture_output=True, check=False, cwd=self.work,
                                 env=self.environment(env))
        self.assertEqual(outside.returncode, 0, outside)
        options = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        ended = self.exited(self.through(command, *rules, options=options))
        self.assertEqual(ended.text.encode(), outside.stdout, ended)
        self.assertEqual(ended.record["denials"], [], ended)
        return ended

    def fails_at_once(self, command, *rules, what=f"name {REFUSED}", env=None):
        options = [word for name, value in (env or {}).items() for word in ("--env", f"{name}={value}")]
        ended = self.through(command, *rules, options=options)
        self.assertEqual(ended.outcome["status"], "exited", ended)
        self.assertNotEqual(ended.outcome["exit_code"], 0, ended)
        self.assertIn(what, ended.denied, ended)

    def both(self, command, port, env=None):
        """`command` takes the name of a server."""
        self.same_as_outside(command(ALLOWED), f"{ALLOWED}:{port}", env=env)
        self.fails_at_once(command(REFUSED), f"{ALLOWED}:{port}", env=env)

    @needs("nginx", "curl")
    def test_curl(self):
        self.begin("web")
        self.both(lambda name: ["curl", "-sS", "-m", PATIENCE, f"http://{name}/"], 80)
        self.both(lambda name: ["curl", "-sS", "-m", PATIENCE, "--cacert", self.net / "ca.crt", f"https://{name}/"], 443)
        self.both(lambda name: ["curl", "-sS", "-m", PATIENCE, "--http2", "--cacert", self.net / "ca.crt", f"https://{name}/"], 443)
        self.same_as_outside(["curl", "-sS", "-m", PATIENCE, "http://six.example.org/"], "six.example.org:80")  # IPv6 upstream

    @needs("nginx", "wget")
    def test_wget(self):
        self.begin("web")
        self.both(lambda name: ["wget", "-q", "-T", PATIENCE, "-t", "1", "-O", "-", f"http://{name}/"], 80)

    @needs("nginx", "python3")
    def test_python(self):
        self.begin("web")
        self.both(lambda name: ["/usr/bin/python3", "-c", URLLIB, f"http://{name}/"], 80)
        self.both(lambda name: ["/usr/bin/python3", "-c", URLLIB, f"https://{name}/"], 443, env={"SSL_CERT_FILE": self.net / "ca.crt"})

    @needs("nginx", "python3")
    def test_python_requests(self):
        if subprocess.run(["/usr/bin/python3", "-c", "import requests"], capture_output=True, check=False).returncode != 0:
            self.skipTest("not installed: python3-requests")
        self.begin("web")
        self.both(lambda name: ["/usr/bin/python3", "-c", REQUESTS, f"https://{name}/"], 443, env={"REQUESTS_CA_BUNDLE": self.net / "ca.crt"})

    @needs("nginx", "node")
    def test_node_fetch(self):
        self.begin("web")
        self.both(lambda name: ["node", "--no-warnings", "-e", FETCH, f"https://{name}/"], 443, env={"NODE_EXTRA_CA_CERTS": self.net / "ca.crt"})

    @needs("nginx", "git")
    def test_git_over_http(self):
        self.begin("web")
        self.both(lambda name: ["git", "ls-remote", f"http://{name}/project.git"], 80)

    @needs("nginx", "cc")
    def test_static_program(self):
        self.begin("web")
        (self.tmp / "client.c").write_text(STATIC_CLIENT)
        subprocess.run(["cc", "-O1", "-static", "-w", "-o", self.net / "client", self.tmp / "client.c"], check=True, capture_output=True)
        self.both(lambda name: [self.net / "client", name, "80"], 80)

    @needs("redis-server", "redis-cli")
    def test_redis(self):
        self.begin("redis")
        self.same_as_outside(["redis-cli", "-h", ALLOWED, "set", "key", "value"], f"{ALLOWED}:{servers.REDIS}")
        self.same_as_outside(["redis-cli", "-h", ALLOWED, "get", "key"], f"{ALLOWED}:{servers.REDIS}")
        self.fails_at_once(["redis-cli", "-h", ALLOWED, "get", "key"], f"{ALLOWED}:80", what=f"tcp {ALLOWED}:{servers.REDIS}")

    @needs("postgres", "psql")
    def test_postgres(self):
        self.begin("postgres")
        query = ["psql", "-h", ALLOWED, "-U", "test", "-d", "postgres", "-Atc", "select 6*7"]
        self.same_as_outside(query, f"{ALLOWED}:{servers.POSTGRES}")
        self.fails_at_once(query, f"{ALLOWED}:80", what=f"tcp {ALLOWED}:{servers.POSTGRES}")

    @needs("nginx", "openssl")
    def test_name_in_tls_is_the_name_that_was_dialled(self):
        self.begin("web")
        rule = f"{ALLOWED}:443"

        def hello(*options):
            return ["sh", "-c", "printf 'GET / HTTP/1.0\\r\\nHost: web.example.org\\r\\n\\r\\n' | openssl s_client -quiet -verify_quiet "
                    f"-CAfile {self.net}/ca.crt -connect {ALLOWED}:443 {' '.join(options)}"]

        self.assertIn("page of", self.exited(self.through(hello("-servername", ALLOWED), rule)).text)
        for options in (("-servername", REFUSED), ("-noservername",)):
            with self.subTest(options=options):
                ended = self.through(hello(*options), rule)
                self.assertNotIn("page of", ended.text, ended)
                self.assertIn(f"{ALLOWED}:443", " ".join(ended.denied), ended)
                ended = self.through(hello(*options), rule, options=["--set", "network.match_sni=false"])
                self.assertIn("page of", ended.text, ended)
        ended = self.through(["sh", "-c", f"printf 'GET / HTTP/1.0\\r\\n\\r\\n' | curl -sS -m {PATIENCE} telnet://{ALLOWED}:443"], rule)
        self.assertIn(f"no TLS at {ALLOWED}:443", ended.denied, ended)


if __name__ == "__main__":
    sbxtest.main()
