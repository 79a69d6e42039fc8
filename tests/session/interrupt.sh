#!/usr/bin/env bash
# interrupt.sh BIN WRITER SCRATCH: rtrun on a model whose run takes hours: Ctrl-C, --time-limit, and the limit on iterations.
set -u
bin=$1 writer=$2 scratch=$3
rm -rf "$scratch" && mkdir -p "$scratch" && cd "$scratch" || exit 1

fail() {
  echo "interrupt.sh: $*" >&2
  exit 1
}

"$writer" --write long.rt 900000 && "$writer" --write short.rt 90 || fail "cannot write the models"

# CODE WORDS COMMAND...: the exit code, and words of the message.
expect() {
  local wanted=$1 words=$2
  "${@:3}" > out.txt 2> error.txt
  local code=$?
  [[ $code == "$wanted" ]] || fail "${*:3}: exit code $code, expected $wanted: $(cat error.txt)"
  grep -qF -- "$words" error.txt || fail "${*:3}: expected '$words', found: $(cat error.txt)"
}

expect 2 'iterations together' timeout 300 "$bin/rtrun" long.rt --random-input --backend cpu
expect 2 'time limit of 20 ms' timeout 300 "$bin/rtrun" long.rt --random-input --backend cpu --time-limit 0.02
expect 2 'a number above 0' "$bin/rtrun" long.rt --random-input --time-limit 0
expect 2 'a number above 0' "$bin/rtrun" long.rt --random-input --memory 0
"$bin/rtconvert" zoo:lenet5 -o lenet5.rt 2>/dev/null || fail "lenet5 is not written"
"$bin/rtrun" lenet5.rt --random-input --backend cpu --memory 64MiB >out.txt 2>error.txt || fail "a session in 64 MiB: $(cat error.txt)"
expect 3 'memory limit' "$bin/rtrun" lenet5.rt --random-input --backend cpu --memory 16KiB

# The first SIGINT cancels the run; the program says so and ends by itself. Runs within the default limit of a million iterations, which
# a fast machine completes before the signal, again and again. --foreground: without it, timeout sends the signal twice, and a second
# one ends the program at once.
for backend in cpu reference; do
  expect 130 'the run was cancelled' timeout --foreground --preserve-status -s INT 2 "$bin/rtrun" short.rt --random-input --repeat 1000000 --backend $backend
done
echo "rtrun is interrupted with exit code 130 and stops at its limits"
