# Thin: every target calls a script or meson. BUILD names the build directory, PREFIX where to install.
BUILD ?= build
PREFIX ?= /usr/local

.PHONY: all run test sanitize valgrind soak bench install clean
all: ; @tools/build.sh $(BUILD)
run: ; @tools/tour.sh $(BUILD)
test: ; @tools/test.sh $(BUILD)
sanitize: ; @tools/test.sh $(BUILD)-sanitize -Db_sanitize=address,undefined
valgrind: ; @tools/valgrind.sh $(BUILD)
soak: ; @ABX_SOAK_RUNS=200 PYTEST_ARGS='-k nothing_piles_up' tools/test.sh $(BUILD)
bench: ; @bench/run.sh $(BUILD)
install: all ; @meson install -C $(BUILD) --no-rebuild
clean: ; @rm -rf $(BUILD) $(BUILD)-*
