"""How to make a kernel faster: knowledge as data, agents, search, memory."""
