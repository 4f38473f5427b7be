// Starts the workbench for a person: demo.mjs VSIX EXAMPLES BIN PORT. Used by scripts/demo_vscode.sh.
import * as fs from 'node:fs';
import * as os from 'node:os';
import * as path from 'node:path';
import { startServer } from './workbench.mjs';

const [vsix, examples, bin, port] = process.argv.slice(2);
const root = fs.mkdtempSync(path.join(os.tmpdir(), 'odyssey-demo-'));
const folder = path.join(root, 'kernels');
fs.cpSync(examples, folder, { recursive: true, filter: (file) => !/__pycache__|\.odyssey/.test(file) });

const server = await startServer({
  root, vsix, port: Number(port), onPath: bin,
  settings: { 'odyssey.python': path.join(bin, 'python'), 'workbench.colorTheme': 'Dark Modern', 'editor.fontFamily': 'monospace' },
});
const remote = `vscode-remote://127.0.0.1:${server.port}${path.join(folder, 'softmax.py')}`;
const query = new URLSearchParams({ folder, payload: JSON.stringify([['openFile', remote]]) });
console.log(`\nOpen this in a browser on this machine:\n\n  ${server.url}/?${query}\n`);
console.log('Then save softmax.py (Ctrl+S): the verdict appears at the end of the kernel\'s line. Ctrl+C here ends the demo.');

async function end() {
  await server.stop();
  fs.rmSync(root, { recursive: true, force: true, maxRetries: 3 });
  process.exit(0);
}
process.on('SIGINT', () => void end());
process.on('SIGTERM', () => void end());
