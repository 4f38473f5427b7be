"""See ARCHITECTURE.md, section skills/search."""
