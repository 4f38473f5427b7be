// The part of the Python extension's interface that Odyssey uses: which interpreter is chosen, and that another one was.
const vscode = require('vscode');
let chosen = '/stub/bin/python';
const changed = new vscode.EventEmitter();
exports.activate = () => ({
  choose(path) { chosen = path; changed.fire({ path }); },
  environments: {
    getActiveEnvironmentPath: () => ({ path: chosen }),
    resolveEnvironment: async ({ path }) => ({ executable: { uri: vscode.Uri.file(path) } }),
    onDidChangeActiveEnvironmentPath: changed.event,
  },
});
