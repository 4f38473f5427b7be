// The UI suite: what a person does, in order, in the real workbench with the packaged extension.
// Run through run.sh, which prepares the workbench and names the .vsix. Ordered by these imports.
import './ui/line.mjs';
import './ui/panel.mjs';
import './ui/proposal.mjs';
import './ui/themes.mjs';
import './ui/trouble.mjs';
import './ui/real.mjs';
