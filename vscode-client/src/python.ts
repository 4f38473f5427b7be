// Owns asking the Python extension which interpreter the person chose. Never chooses one itself.
import * as vscode from 'vscode';

/** The part of ms-python.python's API that is used here. */
interface PythonApi {
  environments: {
    getActiveEnvironmentPath(resource?: vscode.Uri): { path: string };
    resolveEnvironment(environment: { path: string }): Promise<{ executable: { uri?: vscode.Uri } } | undefined>;
    onDidChangeActiveEnvironmentPath: vscode.Event<unknown>;
  };
}

const ID = 'ms-python.python';

async function api(): Promise<PythonApi | null> {
  const extension = vscode.extensions.getExtension<PythonApi>(ID);
  if (!extension) { return null; }
  try {
    const exported = extension.isActive ? extension.exports : await extension.activate();
    return exported?.environments ? exported : null;
  } catch {
    return null; // The Python extension failed to start: the server looks for an interpreter itself.
  }
}

/** Absolute path of the interpreter chosen in the Python extension, or null. In a folder that is not trusted: null. */
export async function activeInterpreter(resource?: vscode.Uri): Promise<string | null> {
  if (!vscode.workspace.isTrusted) { return null; }
  const python = await api();
  if (!python) { return null; }
  const chosen = python.environments.getActiveEnvironmentPath(resource);
  const resolved = await python.environments.resolveEnvironment(chosen);
  return resolved?.executable.uri?.fsPath ?? null;
}

/** Call `changed` whenever another interpreter is chosen. */
export async function watchInterpreter(changed: () => void): Promise<vscode.Disposable> {
  const python = await api();
  return python ? python.environments.onDidChangeActiveEnvironmentPath(changed) : new vscode.Disposable(() => undefined);
}

/** Let the person choose: by the Python extension where it is, else by a file dialog into the setting. */
export async function chooseInterpreter(): Promise<void> {
  if (vscode.extensions.getExtension(ID)) {
    await vscode.commands.executeCommand('python.setInterpreter');
    return;
  }
  const picked = await vscode.window.showOpenDialog({
    title: 'The Python that has your torch and triton', canSelectMany: false, openLabel: 'Use This Python',
  });
  const file = picked?.[0];
  if (!file) { return; }
  const target = vscode.workspace.workspaceFolders ? vscode.ConfigurationTarget.Workspace : vscode.ConfigurationTarget.Global;
  await vscode.workspace.getConfiguration('odyssey').update('python', file.fsPath, target);
}
