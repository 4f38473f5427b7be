"""Owns filling prompt templates: strict about missing and unused keys. Reads only skills/prompts."""

from __future__ import annotations

import re
from importlib.resources import files

PLACE = re.compile(r"\{([a-z_]+)\}")


def fill(template: str, **values: str) -> str:
    """The template `prompts/<template>.md` with every {name} replaced. Raises KeyError naming a key that is off."""
    text = files("skills").joinpath("prompts", f"{template}.md").read_text("utf-8")
    wanted = set(PLACE.findall(text))
    if wanted != set(values):
        raise KeyError(f"{template}: the template wants {sorted(wanted)}, given were {sorted(values)}")
    return PLACE.sub(lambda match: values[match[1]], text)
