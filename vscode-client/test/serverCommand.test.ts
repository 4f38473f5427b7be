import assert from 'node:assert/strict';
import { test } from 'node:test';
import { basePythons, decide, parseVersion, versionsMatch, type Facts } from '../src/serverCommand';

const facts = (change: Partial<Facts> = {}): Facts => ({
  setting: '', settingRuns: false, onPath: null, privateProgram: null, version: '0.1.0', wheel: '/x/odyssey_lsp-0.1.0-py3-none-any.whl', ...change,
});
const onPath = { path: '/usr/bin/odyssey', versionText: 'odyssey 0.1.4\n' };

test('the setting decides alone', () => {
  const decision = decide(facts({ setting: '/opt/odyssey', settingRuns: true, onPath, privateProgram: '/p/odyssey' }));
  assert.deepEqual(decision, { kind: 'run', command: '/opt/odyssey', args: ['lsp', '--stdio'], origin: 'setting', note: null });
});

test('a setting that names nothing is said, and nothing else is tried', () => {
  const decision = decide(facts({ setting: '/opt/nothing', onPath, privateProgram: '/p/odyssey' }));
  assert.equal(decision.kind, 'cannot');
  assert.match(decision.kind === 'cannot' ? decision.message : '', /odyssey\.serverPath names \/opt\/nothing/);
});

test('odyssey on the PATH is taken when its version fits', () => {
  const decision = decide(facts({ onPath, privateProgram: '/p/odyssey' }));
  assert.equal(decision.kind === 'run' && decision.origin, 'path');
});

test('another minor version on the PATH is passed over, and said', () => {
  const decision = decide(facts({ onPath: { path: '/usr/bin/odyssey', versionText: 'odyssey 0.2.0' }, privateProgram: '/p/odyssey' }));
  assert.equal(decision.kind === 'run' && decision.origin, 'private');
  assert.match(decision.kind === 'run' ? decision.note ?? '' : '', /answers "odyssey 0\.2\.0"/);
});

test('a program of that name that is another thing is passed over', () => {
  const decision = decide(facts({ onPath: { path: '/usr/games/odyssey', versionText: '' } }));
  assert.equal(decision.kind, 'make');
});

test('without any, the private environment is made from the wheel, or it is said what to install', () => {
  assert.deepEqual(decide(facts()), { kind: 'make', wheel: '/x/odyssey_lsp-0.1.0-py3-none-any.whl', note: null });
  const decision = decide(facts({ wheel: null }));
  assert.match(decision.kind === 'cannot' ? decision.remedy : '', /pipx install odyssey-lsp/);
});

test('versions', () => {
  assert.deepEqual(parseVersion('odyssey 12.3.45 (x)'), [12, 3, 45]);
  assert.equal(parseVersion('odyssey'), null);
  assert.ok(versionsMatch('0.1.9', '0.1.0'));
  assert.ok(!versionsMatch('1.1.0', '0.1.0'));
});

test("the person's interpreter is the last to be the base of the private environment", () => {
  assert.equal(basePythons('/home/me/venv/bin/python', 'linux').at(-1), '/home/me/venv/bin/python');
  assert.equal(basePythons(null, 'win32')[0], 'py');
});
