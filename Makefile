# Two words: demo, check. Root or sudo is needed only while a Debian package
# is missing (tools/debian-packages.txt).
.PHONY: demo check check-all clean

demo:
	@tools/setup build
	@echo "demo: building into build/"
	@tools/build build
	@tools/demo

check:
	@tools/setup test
	@tools/check

check-all:
	@tools/setup test
	@tools/check --all

clean:
	rm -rf build build-check demo-out .cache .pytest_cache .mypy_cache .ruff_cache
