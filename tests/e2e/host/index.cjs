// Runs inside the real extension host: `vscode` is the real interface.
const Mocha = require('mocha');
const path = require('node:path');

exports.run = () => new Promise((done, fail) => {
  const mocha = new Mocha({ ui: 'bdd', color: false, timeout: 30_000, reporter: 'spec' });
  mocha.addFile(path.join(__dirname, 'extension.test.cjs'));
  const runner = mocha.run((failures) => {
    const { passes, pending } = runner.stats;
    console.log(`host tests: ${passes} passed, ${failures} failed, ${pending} skipped`);
    return failures ? fail(new Error(`${failures} tests failed`)) : done();
  });
});
