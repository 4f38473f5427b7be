// Builds odyssey-VERSION.vsix: bundles, the Python wheel of this checkout, example kernels, licence. Fails above 5 MB.
import { execFileSync, spawnSync } from 'node:child_process';
import { cpSync, existsSync, mkdirSync, readdirSync, readFileSync, rmSync, statSync } from 'node:fs';
import { dirname, join, resolve } from 'node:path';
import { fileURLToPath } from 'node:url';

const client = resolve(dirname(fileURLToPath(import.meta.url)), '..');
const repository = resolve(client, '..');
const MOST_BYTES = 5_000_000;
const manifest = JSON.parse(readFileSync(join(client, 'package.json'), 'utf8'));
const python = [process.env.ODYSSEY_PYTHON, join(repository, '.venv/bin/python')].find((one) => one && existsSync(one)) ?? 'python3';

/** Quiet when it goes well; what it wrote comes with the error when it does not. */
const run = (program, args, cwd = client) => execFileSync(program, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'] });
const has = (module) => spawnSync(python, ['-c', `import ${module}`], { stdio: 'ignore' }).status === 0;

function buildWheel(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  // With hatchling at hand nothing is fetched; pip makes an environment for it otherwise.
  if (has('build') && has('hatchling')) { run(python, ['-m', 'build', '--wheel', '--no-isolation', '--outdir', folder, repository]); }
  else { run(python, ['-m', 'pip', 'wheel', '--quiet', '--no-deps', ...(has('hatchling') ? ['--no-build-isolation'] : []), '--wheel-dir', folder, repository]); }
  const wheel = readdirSync(folder).find((name) => name.endsWith('.whl'));
  if (!wheel?.includes(`-${manifest.version}-`)) { throw new Error(`the wheel ${wheel} is not of version ${manifest.version}: package.json and pyproject.toml must agree`); }
  return wheel;
}

/** Examples that run as they stand, without a package around them. */
function copyExamples(folder) {
  rmSync(folder, { recursive: true, force: true });
  mkdirSync(folder, { recursive: true });
  const source = join(repository, 'examples');
  const names = existsSync(source) ? readdirSync(source).filter((name) => /\.(py|cu|md)$/.test(name) && statSync(join(source, name)).isFile()) : [];
  for (const name of names) { cpSync(join(source, name), join(folder, name)); }
  return names.length;
}

const wheel = buildWheel(join(client, 'server'));
const examples = copyExamples(join(client, 'examples'));
cpSync(join(repository, 'LICENSE'), join(client, 'LICENSE'));
rmSync(join(client, 'dist'), { recursive: true, force: true });
run(process.execPath, ['esbuild.mjs']);
const out = process.argv[2] ? resolve(process.argv[2]) : join(client, `odyssey-${manifest.version}.vsix`);
mkdirSync(dirname(out), { recursive: true });
run(process.execPath, [join(client, 'node_modules/@vscode/vsce/vsce'), 'package', '--no-dependencies', '--allow-missing-repository', '-o', out]);
const bytes = statSync(out).size;
if (bytes > MOST_BYTES) { throw new Error(`${out} has ${bytes} bytes, more than ${MOST_BYTES}`); }
console.log(`${out}  ${(bytes / 1e6).toFixed(2)} MB, with ${wheel} and ${examples} examples`);
