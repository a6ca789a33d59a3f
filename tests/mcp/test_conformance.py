#!/usr/bin/env python3
"""The protocol's own inspector and conformance suite against `sbx mcp`, in both eras: npm's packages, which are kept in the build
directory; a visible skip without it."""

import json
import os
import re
import signal
import socket
import subprocess

import sbxtest
from harness import HANG, wait_until
from mcptest import LEGACY, MODERN, McpTest
from npm import installed
from sbxtest import SBX

PACKAGES = ("node@22", "@modelcontextprotocol/inspector@2.12.0", "@modelcontextprotocol/conformance@0.2.0-alpha.12", "supergateway@4.0.0")
# By scenario: the eras, and the checks that fail because this server does not have what they try: tools of the suite's own, prompts
# and resources.
SCENARIOS = {
    "server-initialize": ((LEGACY,), set()),
    "ping": ((LEGACY,), set()),
    "tools-list": ((LEGACY, MODERN), set()),
    "server-stateless": ((MODERN,), {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400",
                                     "sep-2575-http-server-no-independent-requests-on-stream", "sep-2575-server-no-log-without-loglevel"}),
    "caching": ((MODERN,), {"sep-2549-prompts-list-caching-hints", "sep-2549-resources-list-caching-hints",
                            "sep-2549-resources-templates-list-caching-hints"}),
}


def free_port():
    with socket.socket() as one:
        one.bind(("127.0.0.1", 0))
        return one.getsockname()[1]


def listens(port):
    with socket.socket() as one:
        return one.connect_ex(("127.0.0.1", port)) == 0


class Conformance(McpTest):
    def setUp(self):
        super().setUp()
        self.programs = installed("mcp-conformance", *PACKAGES) / "node_modules/.bin"

    def node_environment(self):
        environment = self.environment()
        return {**environment, "PATH": f"{self.programs}:{environment.get('PATH', os.environ['PATH'])}"}

    def run_program(self, name, *arguments):
        ran = subprocess.run([self.programs / name, *map(str, arguments)], env=self.node_environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                             capture_output=True, text=True, timeout=HANG, check=False)
        return ran.returncode, re.sub(r"\x1b\[[0-9;]*m", "", ran.stdout + ran.stderr)

    def test_slow_the_inspector_lists_the_tools_in_each_era(self):
        listed = {}
        for era in ("legacy", "modern", "auto"):
            status, said = self.run_program("mcp-inspector", "--cli", SBX, "mcp", "--protocol-era", era, "--method", "tools/list", "--strict")
            self.assertEqual(status, 0, said)
            listed[era] = [each["name"] for each in json.loads(said[said.index("{"):said.rindex("}") + 1])["tools"]]
        self.assertIn("run_code", listed["legacy"])
        self.assertEqual(listed["legacy"], listed["modern"])
        self.assertEqual(listed["legacy"], listed["auto"])
        self.nothing_is_left()

    def test_slow_the_conformance_suite_passes_what_a_server_of_tools_has(self):
        port = free_port()
        bridge = sbxtest.start([self.programs / "supergateway", "--stdio", f"{SBX} mcp", "--outputTransport", "streamableHttp", "--port", str(port),
                                "--streamableHttpPath", "/mcp"], env=self.node_environment(), cwd=self.work, stdin=subprocess.DEVNULL,
                               stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        self.addCleanup(bridge.wait)
        self.addCleanup(os.killpg, bridge.pid, signal.SIGTERM)
        wait_until(lambda: listens(port), "the bridge listens")
        for scenario, (eras, lacking) in SCENARIOS.items():
            for era in eras:
                with self.subTest(scenario=scenario, era=era):
                    _, said = self.run_program("conformance", "server", "--url", f"http://localhost:{port}/mcp", "--scenario", scenario, "--spec-version", era)
                    self.assertIn(" SUCCESS ", said)
                    self.assertEqual(set(re.findall(r"\[(\S+) *\] FAILURE", said)), lacking, said)


if __name__ == "__main__":
    sbxtest.main()
