"""See ARCHITECTURE.md, section skills/agents."""
