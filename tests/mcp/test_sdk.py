#!/usr/bin/env python3
"""The official SDK of the protocol as the client of `sbx mcp`: npm's package, which is kept in the build directory; a visible skip
without it."""

import json
import shutil
import subprocess

import sbxtest
from harness import HANG
from mcptest import SDK, McpTest
from npm import installed
from sbxtest import SBX

CLIENT = """
import {Client} from '@modelcontextprotocol/sdk/client/index.js'
import {StdioClientTransport} from '@modelcontextprotocol/sdk/client/stdio.js'
const [sbx, cwd, home] = process.argv.slice(2)
const client = new Client({name: 'test', version: '1'})
const transport = new StdioClientTransport({command: sbx, args: ['mcp', '--log', home + '/log'], cwd, env: {HOME: home, PATH: process.env.PATH}})
await client.connect(transport)
const said = {server: client.getServerVersion().name, tools: (await client.listTools()).tools.map(each => each.name)}
const call = (name, args, options) => client.callTool({name, arguments: args}, undefined, options)
const text = result => result.content[0].text
const begun = text(await call('run_code', {code: 'x = 0'}))
const context_id = begun.match(/context_id (\\S+)/)[1]
let right = 0
const worker = async () => { for (let i = 0; i < 25; i++) if (text(await call('run_code', {code: '6 * 7', context_id})).includes('result:\\n42\\n')) right++ }
await Promise.all(Array.from({length: 8}, worker))
said.right = right
const aborter = new AbortController()
const loop = 'import pathlib\\npathlib.Path("/tmp/begun").touch()\\nwhile True: pass'
const aborted = call('run_code', {code: loop}, {signal: aborter.signal}).catch(error => String(error))
await call('run_command', {command: 'until test -e /tmp/begun; do :; done'})
aborter.abort('the user')
said.aborted = (await aborted).includes('the user')
said.late = await call('run_code', {code: 'while True: pass'}, {timeout: 500}).catch(error => error.code)
const progress = []
let release
await call('run_command', {command: 'echo hi; while ! test -e /tmp/go; do :; done'}, {onprogress: each => {
  progress.push(each)
  release ??= call('run_command', {command: 'touch /tmp/go'})
}})
await release  // its answer may come after that of the command which it lets go
said.progress = progress.map(each => each.message)
said.after = text(await call('run_code', {code: 'x + 1', context_id})).includes('result:\\n1\\n')
await client.close()
console.log(JSON.stringify(said))
"""


class Sdk(McpTest):
    def test_the_official_client_calls_cancels_waits_and_ends(self):
        modules = self.tmp / "node_modules"
        modules.symlink_to(installed("mcp-sdk", SDK) / "node_modules")
        script = self.write("client.mjs", CLIENT, directory=self.tmp)
        client = sbxtest.start([shutil.which("node"), "--preserve-symlinks-main", script, SBX, self.work, self.home], env=self.environment(), cwd=self.tmp, stdin=subprocess.DEVNULL,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        out, err = client.communicate(timeout=HANG)
        self.assertEqual(client.returncode, 0, err.decode())
        said = json.loads(out)
        self.assertEqual((said["server"], said["right"], said["aborted"], said["late"], said["after"]), ("sbx", 200, True, -32001, True), said)
        self.assertIn("run_code", said["tools"])
        self.assertRegex(said["progress"][0], r"^\d+ s, 3 bytes of output$")
        self.assertGreaterEqual(len((self.home / "log").read_text().splitlines()), 204)
        self.nothing_is_left()


if __name__ == "__main__":
    sbxtest.main()
