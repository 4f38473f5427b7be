"""Text to findings: kernel outline and lint rules over tree-sitter trees."""
