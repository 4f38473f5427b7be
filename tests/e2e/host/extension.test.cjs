// The extension through the editor's own interface, with the scripted server: what other extensions and keys would reach.
const assert = require('node:assert/strict');
const vscode = require('vscode');

const until = async (work, ms = 20_000) => {
  for (const end = Date.now() + ms; ;) {
    const value = await work();
    if (value) { return value; }
    if (Date.now() > end) { throw new Error(`timeout: ${work}`); }
    await new Promise((ok) => setTimeout(ok, 50));
  }
};
const textOf = async (pattern) => (await until(() => vscode.workspace.textDocuments.find((one) => pattern.test(one.uri.path)))).getText();

describe('Odyssey in the extension host', () => {
  let document;
  let api;

  before(async () => {
    const [uri] = await vscode.workspace.findFiles('softmax.py');
    document = await vscode.workspace.openTextDocument(uri);
    await vscode.window.showTextDocument(document);
    api = await vscode.extensions.getExtension('odyssey.odyssey').activate();
    await until(() => api.connection.link === 'running');
  });

  const lenses = async () => (await vscode.commands.executeCommand('vscode.executeCodeLensProvider', document.uri, 50)).filter((one) => one.command?.command.startsWith('odyssey.'));
  const edit = async (line, text) => {
    const change = new vscode.WorkspaceEdit();
    change.replace(document.uri, document.lineAt(line).range, text);
    assert.ok(await vscode.workspace.applyEdit(change));
  };

  it('activates within 150 ms, without waiting for the server', () => { assert.ok(api.activationMs < 150, `${api.activationMs} ms`); });

  it('registers every command of its manifest', async () => {
    const known = await vscode.commands.getCommands(true);
    for (const { command } of vscode.extensions.getExtension('odyssey.odyssey').packageJSON.contributes.commands) { assert.ok(known.includes(command), command); }
  });

  it('runs on the side of the workspace', () => { assert.deepEqual(vscode.extensions.getExtension('odyssey.odyssey').packageJSON.extensionKind, ['workspace']); });

  it('lenses carry their kernel', async () => {
    const found = await until(async () => { const all = await lenses(); return all.length >= 3 && all; });
    assert.deepEqual(found[0].command.arguments[0], { uri: document.uri.toString(), kernel: 'softmax_kernel' });
  });

  it('evaluates the kernel at the cursor and shows the hint', async () => {
    await vscode.commands.executeCommand('odyssey.evaluate');
    const hints = await until(async () => {
      const all = await vscode.commands.executeCommand('vscode.executeInlayHintProvider', document.uri, new vscode.Range(0, 0, document.lineCount, 0));
      return all.length && all;
    });
    assert.match(hints[0].label, /right 5\/5/);
  });

  it('the hover is no trusted Markdown', async () => {
    const [hover] = await vscode.commands.executeCommand('vscode.executeHoverProvider', document.uri, new vscode.Position(6, 6));
    assert.ok(!hover.contents[0].isTrusted && !hover.contents[0].supportHtml);
  });

  it('diagnostics come with a quick fix that applies', async () => {
    await edit(8, '    offsets = tl.arange(0, 96)');
    const [found] = await until(() => { const all = vscode.languages.getDiagnostics(document.uri); return all.length && all; });
    const actions = await vscode.commands.executeCommand('vscode.executeCodeActionProvider', document.uri, found.range, vscode.CodeActionKind.QuickFix.value);
    const fix = actions.find((one) => one.title.includes('128'));
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    await until(() => vscode.languages.getDiagnostics(document.uri).length === 0);
    assert.match(document.getText(), /arange\(0, 128\)/);
  });

  it('takes the interpreter of the Python extension, and follows a change', async () => {
    await vscode.commands.executeCommand('odyssey.doctor');
    assert.match(await textOf(/odyssey doctor/), /editor python: \/stub\/bin\/python/);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
    vscode.extensions.getExtension('ms-python.python').exports.choose('/stub/other/python');
    await until(async () => {
      await vscode.commands.executeCommand('odyssey.doctor');
      const found = /editor python: \/stub\/other\/python/.test(await textOf(/odyssey doctor/));
      await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
      return found;
    });
  });

  it('texts of the ledger are read-only documents of their own scheme', async () => {
    const { rows } = await api.connection.ledgerRows({ limit: 1 });
    const { text } = await api.connection.candidate(rows[0].sha);
    assert.ok(text.length > 0);
    await vscode.commands.executeCommand('odyssey.doctor');
    const { document: shown } = vscode.window.activeTextEditor;
    assert.equal(shown.uri.scheme, 'odyssey');
    const before = shown.getText();
    await vscode.commands.executeCommand('type', { text: 'x' });
    assert.equal(shown.getText(), before);
    await vscode.commands.executeCommand('workbench.action.closeActiveEditor');
  });

  it('opens a writable copy of an example', async () => {
    await vscode.commands.executeCommand('odyssey.openExample');
    const { document: example } = vscode.window.activeTextEditor;
    assert.match(example.uri.path, /globalStorage.*\/softmax\.py$/);
    assert.match(example.getText(), /@triton\.jit/);
  });

  it('a restart of the server brings it back', async () => {
    await vscode.commands.executeCommand('odyssey.restartServer');
    assert.equal(api.connection.link, 'running');
    await vscode.window.showTextDocument(document);
    await until(async () => (await lenses()).length >= 3);
  });

  it('another server path takes effect at once, and a wrong one is said', async () => {
    const section = vscode.workspace.getConfiguration('odyssey');
    const before = section.get('serverPath');
    await section.update('serverPath', '/no/such/odyssey', vscode.ConfigurationTarget.Workspace);
    await until(() => api.connection.link === 'failed');
    assert.match(api.connection.failure, /\/no\/such\/odyssey/);
    await section.update('serverPath', before, vscode.ConfigurationTarget.Workspace);
    await until(() => api.connection.link === 'running');
  });
});
