"""npm installs a small tree through the gateway, from the registry that npm's own configuration names."""

import json
import shutil
import subprocess
import urllib.parse

import sbxtest
from sbxtest import SbxTest

PACKAGE, BELOW = "is-odd", "is-number"  # the first depends on the second


class Npm(SbxTest):
    def setUp(self):
        super().setUp()
        if shutil.which("npm", path="/usr/local/bin:/usr/bin:/bin") is None:
            self.skipTest("not installed: npm")
        registry = urllib.parse.urlsplit(self.configured("registry"))
        self.host, self.port = registry.hostname, registry.port or (443 if registry.scheme == "https" else 80)
        self.cafile = self.configured("cafile")
        # Nothing to test if the registry can't be reached without sbx either.
        outside = subprocess.run(["npm", "view", PACKAGE, "name"], capture_output=True, check=False, env=self.environment(), cwd=self.work, timeout=120)
        if outside.returncode != 0:
            self.skipTest("no registry can be reached from here")
        self.write("package.json", json.dumps({"name": "tree", "version": "1.0.0", "dependencies": {PACKAGE: "3.0.1"}}))

    def configured(self, key):
        told = subprocess.run(["npm", "config", "get", key], capture_output=True, check=True, text=True, env=self.environment(), cwd=self.work).stdout
        return "" if told.strip() in ("null", "undefined") else told.strip()

    def install(self, *options):
        certificates = ["--read", self.cafile, "--env", f"NODE_EXTRA_CA_CERTS={self.cafile}", "--env", f"npm_config_cafile={self.cafile}"] if self.cafile else []
        return self.sbx("--policy", "node", "--set", "limits.wall_time=\"120s\"", *certificates, *options, "--out", self.tmp / "out", "--set",
                        'filesystem.outputs.collect=["node_modules/**"]', "--", "npm", "install", "--no-audit", "--no-fund", "--fetch-retries=0",
                        "--ignore-scripts", timeout=150)

    def allowed(self):
        return ["--allow-host", f"{self.host}:{self.port}"]

    def test_registry_alone_is_enough(self):
        ended = self.exited(self.install(*self.allowed(), "--set", "network.private=true"))
        for package in (PACKAGE, BELOW):
            self.assertTrue((self.tmp / "out" / "node_modules" / package / "package.json").is_file(), ended)
        self.assertEqual([use["rule"] for use in ended.record["network"]["used"]], [f"{self.host}:{self.port}"], ended)

    def test_registry_at_a_private_address_needs_private(self):
        ended = self.install(*self.allowed())
        if ended.outcome["success"]:
            return  # this registry is globally reachable
        self.assertRegex(" ".join(denial["rule"] for denial in ended.record["denials"]), "leads only to (private|refused) addresses", ended)
        self.assertIn("network.private = true", [denial["allow_with"] for denial in ended.record["denials"]], ended)

    def test_registry_that_is_left_out_is_named(self):
        ended = self.install("--allow-host", "example.org:443")
        self.assertNotEqual(ended.outcome["exit_code"], 0, ended)
        self.assertIn(f"name {self.host}", ended.denied, ended)


if __name__ == "__main__":
    sbxtest.main()
