import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import * as path from 'node:path';
import { test } from 'node:test';
import { METHODS, SERVER_COMMANDS } from '../src/protocol';

const root = path.resolve(__dirname, '../../..');
const read = (...parts: string[]): string => readFileSync(path.join(root, ...parts), 'utf8');
interface Manifest {
  version: string;
  contributes: { commands: { command: string; title: string }[]; configuration: { properties: Record<string, { description?: string; markdownDescription?: string; enum?: string[]; enumDescriptions?: string[] }> }; keybindings: { command: string }[] };
}
const manifest = JSON.parse(read('vscode-client', 'package.json')) as Manifest;
const strings = (text: string, pattern: RegExp): string[] => [...text.matchAll(pattern)].map((found) => found[1]!).sort();

test('every command of the manifest is registered, and every server command is in the manifest', () => {
  const registered = strings(read('vscode-client', 'src', 'commands.ts'), /^ {4}'(odyssey\.\w+)':/gm);
  assert.deepEqual(registered, manifest.contributes.commands.map(({ command }) => command).sort());
  for (const command of SERVER_COMMANDS) { assert.ok(registered.includes(command), command); }
  for (const { command } of manifest.contributes.keybindings) { assert.ok(registered.includes(command), command); }
});

test('every setting is described, each choice too', () => {
  for (const [name, setting] of Object.entries(manifest.contributes.configuration.properties)) {
    assert.ok(setting.description ?? setting.markdownDescription, name);
    if (setting.enum) { assert.equal(setting.enumDescriptions?.length, setting.enum.length, name); }
  }
});

test("settings are the server's, and those that only the client reads", () => {
  const server = strings(read('server', 'config.py'), /Field\("(\w+)"/g).map((key) => `odyssey.${key}`);
  const client = ['odyssey.serverPath', 'odyssey.gutterMarks'];
  assert.deepEqual(Object.keys(manifest.contributes.configuration.properties).sort(), [...server, ...client].sort());
});

test("messages are the server's", () => {
  assert.deepEqual(Object.values(METHODS).sort(), strings(read('server', 'lsp', 'ext.py'), /^[A-Z_]+ = "(odyssey\/\w+)"/gm));
});

test('the versions of extension and distribution agree', () => {
  assert.equal(strings(read('pyproject.toml'), /^version = "([^"]+)"/gm)[0], manifest.version);
});

test('files that the manifest names are there', () => {
  for (const file of strings(JSON.stringify(manifest), /"(media\/[^"]+)"/g)) { assert.ok(existsSync(path.join(root, 'vscode-client', file)), file); }
});
