"""The main job on real input: the real server, an example opened as an editor would, and what the editor then shows.

Opens examples/softmax.py, waits for the first verdict, makes two edits (one breaks the tail mask, one speeds it up),
saves each, and prints the verdict after each, then the rows of the ledger. Nothing is scripted but the edits.
"""

from __future__ import annotations

import asyncio
import os
import shutil
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

from lsprotocol import types as lsp
from pygls.lsp.client import LanguageClient

ROOT = Path(__file__).resolve().parent.parent
COLOUR = sys.stdout.isatty() or os.environ.get("FORCE_COLOR") == "1"
KERNEL = "softmax_kernel"
EXAMPLE = "softmax.py"
BREAK = ("mask = columns < n_cols", "mask = columns < n_cols - 3")
SPEED_UP = ("num_warps=8", "num_warps=16")
WAIT_S = 120.0
WITHOUT_A_CARD = """No CUDA device here: Triton's interpreter judged right or wrong, live, and no time is shown,
because none was measured. The same command on a machine with an NVIDIA card shows them.
"""


def paint(code: str, text: str) -> str:
    """ANSI colour where somebody sees it."""
    return f"\033[{code}m{text}\033[0m" if COLOUR else text


class Editor:
    """The few things an editor does: open, change, save, and keep what the server says."""

    def __init__(self) -> None:
        self.client = LanguageClient("odyssey-demo", "1")
        self.diagnostics: dict[str, list[lsp.Diagnostic]] = {}
        self.status: Any = None
        self.changed = asyncio.Event()
        self.version = 0

        @self.client.feature(lsp.TEXT_DOCUMENT_PUBLISH_DIAGNOSTICS)
        def _published(params: lsp.PublishDiagnosticsParams) -> None:
            self.diagnostics[params.uri] = list(params.diagnostics)
            self.changed.set()

        @self.client.feature("odyssey/status")
        def _status(params: Any) -> None:
            self.status = params
            self.changed.set()

        @self.client.feature("odyssey/ledgerAppended")
        def _appended(_params: Any) -> None:
            self.changed.set()

        for name in (lsp.WORKSPACE_INLAY_HINT_REFRESH, lsp.WORKSPACE_CODE_LENS_REFRESH):
            self.client.feature(name)(lambda *_: None)

        @self.client.feature(lsp.WINDOW_WORK_DONE_PROGRESS_CREATE)
        def _progress(_params: Any) -> None:
            return None

    async def start(self, workspace: Path) -> None:
        """Start the real server on stdio and introduce ourselves."""
        environment = {**os.environ, "VIRTUAL_ENV": str(Path(sys.executable).parent.parent)}
        await self.client.start_io(sys.executable, "-I", "-m", "server", "lsp", "--stdio", env=environment)
        capabilities = lsp.ClientCapabilities(
            workspace=lsp.WorkspaceClientCapabilities(configuration=False),
            window=lsp.WindowClientCapabilities(work_done_progress=True),
        )
        await self.client.initialize_async(
            lsp.InitializeParams(
                capabilities=capabilities,
                root_uri=workspace.as_uri(),
                workspace_folders=[lsp.WorkspaceFolder(uri=workspace.as_uri(), name=workspace.name)],
                initialization_options={"trusted": True},
            )
        )
        self.client.initialized(lsp.InitializedParams())

    def open(self, path: Path) -> None:
        """Open a document."""
        item = lsp.TextDocumentItem(uri=path.as_uri(), language_id="python", version=0, text=path.read_text("utf-8"))
        self.client.text_document_did_open(lsp.DidOpenTextDocumentParams(text_document=item))

    def save(self, path: Path, text: str) -> None:
        """Type the whole text and save."""
        self.version += 1
        identifier = lsp.VersionedTextDocumentIdentifier(uri=path.as_uri(), version=self.version)
        change = lsp.TextDocumentContentChangeWholeDocument(text=text)
        self.client.text_document_did_change(
            lsp.DidChangeTextDocumentParams(text_document=identifier, content_changes=[change])
        )
        path.write_text(text, "utf-8")
        document = lsp.TextDocumentIdentifier(uri=path.as_uri())
        self.client.text_document_did_save(lsp.DidSaveTextDocumentParams(text_document=document, text=text))

    async def hints(self, path: Path, lines: int) -> list[lsp.InlayHint]:
        """The inlay hints of a document."""
        span = lsp.Range(lsp.Position(0, 0), lsp.Position(lines, 0))
        document = lsp.TextDocumentIdentifier(uri=path.as_uri())
        return list(
            await self.client.text_document_inlay_hint_async(lsp.InlayHintParams(text_document=document, range=span))
            or []
        )

    async def lenses(self, path: Path) -> list[lsp.CodeLens]:
        """The code lenses of a document."""
        document = lsp.TextDocumentIdentifier(uri=path.as_uri())
        return list(await self.client.text_document_code_lens_async(lsp.CodeLensParams(text_document=document)) or [])

    async def rows(self, path: Path) -> list[Any]:
        """The ledger's rows of a document."""
        answer = await self.client.protocol.send_request_async(
            "odyssey/ledgerRows", {"uri": path.as_uri(), "limit": 20}
        )
        return list(answer.rows)

    async def verdict(self, path: Path, known: int) -> Any:
        """Wait for a ledger row more than `known`; return the newest."""
        deadline = time.monotonic() + WAIT_S
        started = time.monotonic()
        while time.monotonic() < deadline:
            rows = await self.rows(path)
            if len(rows) > known:
                await asyncio.sleep(0.3)  # the hint and the diagnostics of the row follow it
                return max(rows, key=lambda row: row.seq)
            self.changed.clear()
            waited = time.monotonic() - started
            text = getattr(self.status, "text", "starting") if self.status else "starting"
            if COLOUR:
                print(f"\r  {paint('2', f'{waited:5.1f} s  {text}')}\033[K", end="", flush=True)
            try:
                await asyncio.wait_for(self.changed.wait(), 0.5)
            except asyncio.TimeoutError:
                continue
        raise SystemExit(f"no verdict within {WAIT_S:.0f} s; run `odyssey doctor` to see what is missing")


def plain(label: Any) -> str:
    """An inlay hint's label as text."""
    return label if isinstance(label, str) else "".join(part.value for part in label)


async def show(editor: Editor, path: Path, *, around: str) -> None:
    """Print the kernel's lines as an editor draws them: lens above, hint at line end, diagnostics below."""
    lines = path.read_text("utf-8").split("\n")
    hints: dict[int, list[str]] = {}
    for hint in await editor.hints(path, len(lines)):
        hints.setdefault(hint.position.line, []).append(plain(hint.label))
    lenses: dict[int, list[str]] = {}
    for lens in await editor.lenses(path):
        if lens.command:
            lenses.setdefault(lens.range.start.line, []).append(lens.command.title)
    problems: dict[int, list[lsp.Diagnostic]] = {}
    for item in editor.diagnostics.get(path.as_uri(), []):
        problems.setdefault(item.range.start.line, []).append(item)
    first = next(i for i, line in enumerate(lines) if f"def {KERNEL}" in line) - 1
    wanted = list(range(first, first + 9)) + [i for i in problems if not first <= i < first + 9]
    wanted += [i for i, line in enumerate(lines) if around in line]
    if COLOUR:
        print("\r\033[K", end="")
    for i in sorted(set(wanted)):
        if i in lenses:
            print("       " + paint("2", " | ".join(lenses[i])))
        hint = "   " + paint("36", "  ".join(hints[i])) if i in hints else ""
        print(f"  {paint('2', f'{i + 1:3d}')}  {lines[i]}{hint}")
        for item in problems.get(i, []):
            code = {lsp.DiagnosticSeverity.Error: "31", lsp.DiagnosticSeverity.Warning: "33"}.get(item.severity, "34")
            pad = " " * (7 + item.range.start.character)
            first_line = item.message.splitlines()[0]
            print(pad + paint(code, f"^ {first_line}"))
    print()


def edits_for(text: str) -> list[tuple[str, str]]:
    """The two edits as (what a person does, new text)."""
    broken = text.replace(*BREAK, 1)
    assert broken != text, "the example no longer has the mask that the demo breaks"
    return [("break the tail mask", broken), ("mend it, and give each row more warps", text.replace(*SPEED_UP, 1))]


async def main() -> int:
    """The whole demo."""
    started = time.monotonic()
    workspace = Path(tempfile.mkdtemp(prefix="odyssey-demo-"))
    path = workspace / EXAMPLE
    shutil.copy(ROOT / "examples" / EXAMPLE, path)
    text = path.read_text("utf-8")
    print(paint("1", f"Odyssey demo: {EXAMPLE}, a row softmax in Triton, bound to torch by the check in the file\n"))
    editor = Editor()
    try:
        await editor.start(workspace)
        print(paint("1", "1. open the file and save it"))
        editor.open(path)
        editor.save(path, text)
        row = await editor.verdict(path, 0)
        await show(editor, path, around="numerator /")
        seen = 1
        for number, (what, new_text) in enumerate(edits_for(text), start=2):
            print(paint("1", f"{number}. {what}, save"))
            before = time.monotonic()
            editor.save(path, new_text)
            row = await editor.verdict(path, seen)
            seen = len(await editor.rows(path))
            await show(editor, path, around="num_warps=")
            print(paint("2", f"     save to verdict: {time.monotonic() - before:.2f} s\n"))
        if not row.card:
            print(paint("33", WITHOUT_A_CARD))
        print(paint("1", "The ledger (append-only, .odyssey/ledger.db):"))
        for row in sorted(await editor.rows(path), key=lambda r: r.seq):
            figures = f"{row.speedup_words or ''}  {row.device_words or ''}"
            print(f"  #{row.seq}  {row.sha_short}  {row.verdict_words}  {figures}")
        await editor.client.shutdown_async(None)
        editor.client.exit(None)
    finally:
        await editor.client.stop()
        shutil.rmtree(workspace, ignore_errors=True)
    took = f"{time.monotonic() - started:.0f} s in all"
    print(paint("2", f"\n{took}. Next: odyssey eval examples/layer_norm.py, or make demo-vscode"))
    return 0


if __name__ == "__main__":
    raise SystemExit(asyncio.run(main()))
