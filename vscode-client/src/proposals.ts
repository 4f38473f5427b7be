// Owns the person's side of a proposal: the diff with the verdict in its title, accept, reject with a reason.
// Never edits a file: the server applies the edit, guarded by document version and sha.
import * as vscode from 'vscode';
import type { Connection } from './connection';
import type { ProposalReady } from './protocol';
import { SCHEME, type Texts } from './texts';

const OPEN = 'odyssey.proposalOpen';
/** The diff of a proposal is what the person looks at: only there stand the buttons. */
const ACTIVE = 'odyssey.proposalActive';

export class Proposals implements vscode.Disposable {
  /** Waiting for a decision, by the address of the read-only side of its diff. */
  private readonly waiting = new Map<string, ProposalReady>();
  private readonly subscriptions: vscode.Disposable;

  constructor(private readonly connection: Connection, private readonly texts: Texts) {
    this.subscriptions = vscode.Disposable.from(
      connection.onProposal((proposal) => void this.show(proposal)),
      // A server that ended forgot its proposals; every candidate stands in the ledger.
      connection.onLink((link) => { if (link !== 'running') { void this.forgetAll(); } }),
      vscode.window.tabGroups.onDidChangeTabs(() => void this.updateContext()),
      vscode.window.tabGroups.onDidChangeTabGroups(() => void this.updateContext()),
    );
  }

  private async show(proposal: ProposalReady): Promise<void> {
    const file = vscode.Uri.parse(proposal.uri);
    const right = this.texts.put(proposal.new_text, file.path, `proposal ${proposal.candidate_sha.slice(0, 7)}`);
    this.waiting.set(right.toString(), proposal);
    await this.updateContext();
    await vscode.commands.executeCommand('vscode.diff', file, right, proposal.title, { preview: false });
    const choice = await vscode.window.showInformationMessage(proposal.title, { detail: proposal.change }, 'Accept', 'Reject', 'Show');
    if (choice === 'Accept') { await this.accept(right); }
    if (choice === 'Reject') { await this.reject(right); }
    if (choice === 'Show') { await vscode.commands.executeCommand('vscode.diff', file, right, proposal.title, { preview: false }); }
  }

  async accept(chosen?: vscode.Uri): Promise<void> {
    const found = this.find(chosen);
    if (!found) { void vscode.window.showInformationMessage('Odyssey: there is no open proposal.'); return; }
    const [key, proposal] = found;
    await this.connection.execute('odyssey.accept', { proposal_id: proposal.proposal_id });
    await this.close(key);
    await vscode.window.showTextDocument(vscode.Uri.parse(proposal.uri), { preview: false });
  }

  async reject(chosen?: vscode.Uri): Promise<void> {
    const found = this.find(chosen);
    if (!found) { void vscode.window.showInformationMessage('Odyssey: there is no open proposal.'); return; }
    const [key, proposal] = found;
    const reason = await vscode.window.showInputBox({
      title: 'Reject the proposal', prompt: 'Why? It is kept with the candidate on the map. May be left empty.', ignoreFocusOut: true,
    });
    if (reason === undefined) { return; }
    await this.connection.execute('odyssey.reject', { proposal_id: proposal.proposal_id, ...(reason ? { reason } : {}) });
    await this.close(key);
  }

  /** The proposal of `chosen`, of the active diff, or the only one. */
  private find(chosen?: vscode.Uri): [string, ProposalReady] | null {
    for (const key of [chosen?.scheme === SCHEME ? chosen.toString() : undefined, this.active()]) {
      const proposal = key === undefined ? undefined : this.waiting.get(key);
      if (key !== undefined && proposal) { return [key, proposal]; }
    }
    const [only] = this.waiting.size === 1 ? this.waiting : [];
    return only ?? null;
  }

  /** The right side of the active tab, when that is a diff. */
  private active(): string | undefined {
    const shown = vscode.window.tabGroups.activeTabGroup.activeTab?.input;
    return shown instanceof vscode.TabInputTextDiff ? shown.modified.toString() : undefined;
  }

  private async close(key: string): Promise<void> {
    this.waiting.delete(key);
    await this.updateContext();
    const tabs = vscode.window.tabGroups.all.flatMap((group) => group.tabs)
      .filter((tab) => tab.input instanceof vscode.TabInputTextDiff && tab.input.modified.toString() === key);
    await vscode.window.tabGroups.close(tabs);
  }

  private async forgetAll(): Promise<void> {
    for (const key of [...this.waiting.keys()]) { await this.close(key); }
  }

  private async updateContext(): Promise<void> {
    await vscode.commands.executeCommand('setContext', OPEN, this.waiting.size > 0);
    await vscode.commands.executeCommand('setContext', ACTIVE, this.waiting.has(this.active() ?? ''));
  }

  dispose(): void { this.subscriptions.dispose(); }
}
