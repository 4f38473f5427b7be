# make demo   the main job on real input, as an editor would do it
# make test   every suite, with the time each took
.PHONY: setup demo test test-full lint vsix demo-vscode bench clean
PY := .venv/bin/python

setup:
	@bash scripts/setup.sh

demo: setup
	@$(PY) scripts/demo.py

test: setup
	@$(PY) scripts/run_suites.py

test-full: setup
	@$(PY) scripts/run_suites.py --full

lint: setup
	@$(PY) scripts/run_suites.py lint types architecture

vsix: setup
	@bash scripts/vsix.sh

demo-vscode: setup
	@bash scripts/demo_vscode.sh

bench: setup
	@$(PY) benchmarks/latency.py --out benchmarks/results/latency-cpu.json

clean:
	rm -rf .venv build dist .mypy_cache .ruff_cache .pytest_cache .import_linter_cache
