"""Lists that must agree: methods, commands and settings in the server, in the documents and in the VS Code client."""

from __future__ import annotations

import json
import re
from pathlib import Path

from handlers.registry import COMMANDS, FEATURES
from server.config import FIELDS
from server.lsp import ext

ROOT = Path(__file__).resolve().parents[3]
PROTOCOL = (ROOT / "docs" / "protocol.md").read_text(encoding="utf-8")
SETTINGS = (ROOT / "docs" / "settings.md").read_text(encoding="utf-8")
MANIFEST = json.loads((ROOT / "vscode-client" / "package.json").read_text(encoding="utf-8"))
MIRROR = (ROOT / "vscode-client" / "src" / "protocol.ts").read_text(encoding="utf-8")

CLIENT_ONLY = {"serverPath", "gutterMarks"}
"""Settings that the VS Code client keeps to itself."""


def methods() -> set[str]:
    """Every custom method that ext.py names."""
    return {value for name, value in vars(ext).items() if isinstance(value, str) and value.startswith("odyssey/")}


def test_each_command_has_a_handler_an_argument_and_a_line_in_the_document():
    names = {name for name, _ in COMMANDS}
    assert names == set(ext.ARGUMENTS)
    assert names == set(re.findall(r"^\| `(odyssey\.\w+)`", PROTOCOL, re.MULTILINE))


def test_each_method_is_documented_and_known_to_the_client():
    assert methods() == set(re.findall(r"`(odyssey/\w+)` ?[`{t]?", PROTOCOL)) & methods()
    assert methods() == set(re.findall(r"'(odyssey/\w+)'", MIRROR))


def test_each_request_of_a_client_has_a_handler_and_a_type():
    handled = {method for method, _, _ in FEATURES if method.startswith("odyssey/")}
    assert handled == set(ext.PARAMS)


def test_the_clients_commands_exist_on_the_server():
    called = set(re.findall(r"'(odyssey\.\w+)'", MIRROR))
    assert called == {name for name, _ in COMMANDS}


def test_settings_of_server_and_manifest_agree():
    properties = MANIFEST["contributes"]["configuration"]["properties"]
    declared = {name.removeprefix("odyssey.") for name in properties}
    assert declared - CLIENT_ONLY == {field.key for field in FIELDS}
    documented = set(re.findall(r"^\| `odyssey\.(\w+)`", SETTINGS, re.MULTILINE))
    assert documented == {field.key for field in FIELDS}
    assert all(f"`odyssey.{name}`" in SETTINGS for name in CLIENT_ONLY)
    for field in FIELDS:
        if field.choices:
            assert tuple(properties[f"odyssey.{field.key}"]["enum"]) == field.choices
