// Owns where the panel stands: the view in the activity bar and the tab beside the editor, which comes back after a reload.
import * as vscode from 'vscode';
import type { Connection } from '../connection';
import type { Target } from '../target';
import type { Actions } from './actions';
import { pageHtml } from './html';
import type { Tab } from './messages';
import { Session } from './session';

const VIEW = 'odyssey.panel';
const EDITOR_PANEL = 'odyssey.editorPanel';

export class Panel implements vscode.WebviewViewProvider, vscode.WebviewPanelSerializer, vscode.Disposable {
  private side: Session | null = null;
  private beside: { panel: vscode.WebviewPanel; session: Session } | null = null;
  private wanted: { tab: Tab; target?: Target } | null = null;
  private readonly registrations: vscode.Disposable;

  constructor(private readonly extension: vscode.Uri, private readonly connection: Connection, private readonly actions: Actions) {
    this.registrations = vscode.Disposable.from(
      vscode.window.registerWebviewViewProvider(VIEW, this, { webviewOptions: { retainContextWhenHidden: true } }),
      vscode.window.registerWebviewPanelSerializer(EDITOR_PANEL, this),
    );
  }

  resolveWebviewView(view: vscode.WebviewView, context: vscode.WebviewViewResolveContext): void {
    const session = this.fill(view.webview, 'side', context.state);
    this.side = session;
    if (this.wanted) { session.show(this.wanted.tab, this.wanted.target); this.wanted = null; }
    view.onDidDispose(() => { session.dispose(); this.side = null; });
  }

  deserializeWebviewPanel(panel: vscode.WebviewPanel, state: unknown): Promise<void> {
    this.adopt(panel, state);
    return Promise.resolve();
  }

  /** Show a tab of the panel: in the side bar, unless the one beside the editor is there already. */
  async show(tab: Tab, target?: Target): Promise<void> {
    if (this.beside) {
      this.beside.panel.reveal(undefined, true);
      this.beside.session.show(tab, target);
      return;
    }
    this.wanted = { tab, ...(target ? { target } : {}) };
    await vscode.commands.executeCommand(`${VIEW}.focus`);
    if (this.side && this.wanted) { this.side.show(tab, target); this.wanted = null; }
  }

  openBeside(): void {
    if (this.beside) { this.beside.panel.reveal(); return; }
    const panel = vscode.window.createWebviewPanel(EDITOR_PANEL, 'Odyssey', { viewColumn: vscode.ViewColumn.Beside, preserveFocus: false },
      { retainContextWhenHidden: true, ...this.options() });
    this.adopt(panel, undefined);
  }

  async reload(): Promise<void> {
    await Promise.all([this.side?.reload(), this.beside?.session.reload()]);
  }

  private adopt(panel: vscode.WebviewPanel, state: unknown): void {
    const icon = (theme: string): vscode.Uri => vscode.Uri.joinPath(this.extension, 'media', `tab-${theme}.svg`);
    panel.iconPath = { light: icon('light'), dark: icon('dark') };
    const session = this.fill(panel.webview, 'beside', state);
    this.beside = { panel, session };
    panel.onDidDispose(() => { session.dispose(); this.beside = null; });
  }

  private options(): vscode.WebviewOptions {
    return { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(this.extension, 'dist', 'panel')] };
  }

  private fill(webview: vscode.Webview, where: 'side' | 'beside', state: unknown): Session {
    webview.options = this.options();
    const file = (name: string): string => webview.asWebviewUri(vscode.Uri.joinPath(this.extension, 'dist', 'panel', name)).toString();
    webview.html = pageHtml({ cspSource: webview.cspSource, script: file('main.js'), style: file('panel.css'), where });
    return new Session(webview, this.connection, this.actions, state);
  }

  dispose(): void {
    this.side?.dispose();
    this.beside?.session.dispose();
    this.registrations.dispose();
  }
}
