#!/usr/bin/env bash
# first_hour.sh BIN SCRATCH: what rttrain refuses before its first step, what it chooses where options are left out, and what it
# prints.
set -euo pipefail
. "$(dirname "$0")/../support/programs.sh"
bin=$1 scratch=$2/first-hour
rm -rf "$scratch"
mkdir -p "$scratch"
cd "$scratch"

# 100 images from the bytes of a program; labels 0 to 9, of bytes and of other numbers.
{ printf '\0\0\x08\x03\0\0\0\x64\0\0\0\x1c\0\0\0\x1c'; head -c $((100 * 28 * 28)) "$bin/rtconvert"; } >images
{ printf '\0\0\x08\x01\0\0\0\x64'; for i in {1..100}; do printf "\\x0$((i * 7 % 10))"; done; } >labels
{ printf '\0\0\x08\x01\0\0\0\x64'; for i in {1..99}; do printf '\0'; done; printf '\x0a'; } >ten
{ printf '\0\0\x09\x01\0\0\0\x64'; for i in {1..99}; do printf '\0'; done; printf '\xff'; } >minus_one
"$bin/rtconvert" zoo:lenet5 -o net.rt --train --optimizer adam --accumulate >/dev/null
train() { "$bin/rttrain" net.rt --data images --labels labels --scale 0.00392157 --backend cpu --deterministic "$@"; }

# TEXT OPTION ..: exit code 2 and this text, before anything is printed.
refuses_options() {
  refuses 2 "$1" rttrain net.rt --data images --scale 0.00392157 --backend cpu "${@:2}"
  [[ ! -s out.txt ]] || fail "${*:2}: refused after an epoch: $(cat out.txt)"
}

echo "--- refused before the first step"
validated=(--labels labels --validate images --validate-labels labels)
refuses_options "sample 99: label 10, the model has 10 classes" --labels ten
refuses_options "sample 99: label -1, the model has 10 classes" --labels minus_one
refuses_options "--ignore-index -1" --labels minus_one
refuses_options "--target: there is no metric 'acuracy'; this model's are loss, accuracy, top5, f1_macro, perplexity" "${validated[@]}" --target acuracy=1
refuses_options "--monitor: there is no metric 'mse'" "${validated[@]}" --patience 2 --monitor mse
refuses_options "need --validate" --labels labels --monitor loss
refuses_options "--lr: expected a number of at least 0, found -0.1" --labels labels --lr -0.1
refuses_options "--epochs: expected a number above 0, found -1" --labels labels --epochs -1
for option in --steps --seed --patience --threads; do
  refuses_options "$option: expected a number of at least 0, found -1" --labels labels --epochs 1 $option -1
done
refuses_options "--checkpoint-every: expected a number of at least 0, found -1" --labels labels --epochs 1 --checkpoint x.ckpt --checkpoint-every -1
refuses_options "warmup shorter than the schedule's 8 steps" --labels labels --epochs 2 --batch 25 --schedule cosine,warmup=8
refuses_options "expected a divisor of --batch 32" --labels labels --micro-batch 10
"$bin/rtconvert" zoo:lenet5 -o ignoring.rt --train --ignore-index -1 >/dev/null
"$bin/rttrain" ignoring.rt --data images --labels minus_one --steps 1 --backend cpu >/dev/null 2>err || fail "the ignored label: $(cat err)"

echo "--- .npy files: the same training as from IDX files, of bytes and of f32"
python3 - <<'PYTHON'
import struct
def npy(path, descr, dims, data):
    header = f"{{'descr': '{descr}', 'fortran_order': False, 'shape': ({''.join(f'{extent}, ' for extent in dims)}), }}"
    header += " " * (63 - (10 + len(header)) % 64) + "\n"
    open(path, "wb").write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header.encode() + data)
pixels, labels = open("images", "rb").read()[16:], open("labels", "rb").read()[8:]
npy("images.npy", "|u1", (100, 28, 28), pixels)
npy("first.npy", "<f4", (60, 28, 28), struct.pack(f"<{60 * 784}f", *pixels[: 60 * 784]))
npy("rest.npy", "<f4", (40, 28, 28), struct.pack(f"<{40 * 784}f", *pixels[60 * 784 :]))
npy("labels.npy", "<i8", (100,), struct.pack("<100q", *labels))
npy("number.npy", "<f4", (), struct.pack("<f", 1))
npy("none.npy", "|u1", (100, 0, 28), b"")
npy("halves.npy", "<f4", (100,), struct.pack("<100f", *(label + 0.5 for label in labels)))
PYTHON
train --epochs 1 --batch 25 --json >idx.json 2>/dev/null
loss_of_epoch() { grep -o '"loss":[0-9.e-]*' "$1" | head -n 1; }
for data in "images.npy --labels labels.npy" "images --labels labels.npy" "images.npy --labels labels" \
  "first.npy rest.npy --labels labels.npy"; do
  # shellcheck disable=SC2086
  "$bin/rttrain" net.rt --data $data --scale 0.00392157 --backend cpu --deterministic --epochs 1 --batch 25 --json >npy.json 2>err ||
    fail "$data: $(cat err)"
  [[ -n $(loss_of_epoch npy.json) && $(loss_of_epoch npy.json) == "$(loss_of_epoch idx.json)" ]] ||
    fail "$data: $(loss_of_epoch npy.json), expected $(loss_of_epoch idx.json)"
done
refuses 2 "hold no labels; name the file that does with --labels" rttrain net.rt --data images.npy --backend cpu
refuses 2 "number.npy: expected an array whose first axis counts samples, found a single number" rttrain net.rt --data number.npy --labels labels.npy --backend cpu
refuses 2 "expects samples of" rttrain net.rt --data none.npy --labels labels.npy --backend cpu
refuses 2 "rest.npy: expected samples of u8 [28,28] as in the other files, found f32" rttrain net.rt --data images.npy rest.npy --labels labels.npy --backend cpu
refuses 2 "expected a whole number" rttrain net.rt --data images.npy --labels halves.npy --backend cpu
refuses 2 "net.rt: expected an IDX file" rttrain net.rt --data images.npy --labels net.rt --backend cpu

echo "--- what is left out"
train --epochs 2 --batch 25 >/dev/null 2>default.err
grep -q 'learning rate 0.001, the default for adam; --lr' default.err || fail "no learning rate: $(cat default.err)"
rates() { sed -n 's/.*"kind":"step".*"learning_rate":\([0-9.e-]*\).*/\1/p' "$1"; }
train --epochs 2 --batch 25 --schedule linear --log chosen.jsonl --log-every 1 >/dev/null 2>&1
train --epochs 2 --batch 25 --lr 0.001 --schedule linear,steps=8 --log given.jsonl --log-every 1 >/dev/null 2>&1
[[ $(rates chosen.jsonl | wc -l) == 8 && $(rates chosen.jsonl) == "$(rates given.jsonl)" ]] || fail "a schedule without steps: $(rates chosen.jsonl)"

echo "--- a last batch that is no multiple of the micro-batch: the same step"
loss() { tail -n 1 "$1" | sed 's/.*"loss":\([0-9.e-]*\).*/\1/'; }
train --epochs 2 --batch 32 --json >whole.json 2>/dev/null                    # 32, 32, 32, 4
train --epochs 2 --batch 32 --micro-batch 8 --json >micro.json 2>micro.err || fail "micro-batches: $(cat micro.err)"
awk -v a="$(loss whole.json)" -v b="$(loss micro.json)" 'BEGIN { d = a - b; exit d < 1e-4 && d > -1e-4 && a > 0 ? 0 : 1 }' ||
  fail "the loss is $(loss whole.json), with micro-batches $(loss micro.json)"
grep -q '"learning_rate":0.001.*"total_seconds":' micro.json || fail "fields of --json: $(cat micro.json)"

echo "--- early stopping, the table and the time"
train --epochs 50 --batch 25 --lr 0 --validate-fraction 0.2 --patience 3 >stop.out 2>stop.err
[[ $(grep -c '^epoch ' stop.out) == 4 ]] || fail "patience 3 at a constant loss: $(cat stop.out)"
grep -q 'stopped after epoch 4: no better validation loss in 3 epochs (--patience)' stop.err || fail "no reason: $(cat stop.err)"
grep -Eq 'the best epoch is 1: validation loss [0-9.]+$' stop.err || fail "no best epoch: $(cat stop.err)"
grep -Eq '^rttrain: 16 steps, total time [0-9.]+ s$' stop.err || fail "no time: $(cat stop.err)"
[[ $(grep -A 4 '^ epoch  *loss  *validation loss  *validation accuracy  *learning rate  *samples/s  *time$' stop.err |
  grep -cE '^ +[1-4] +[0-9.]+ +[0-9.]+ +[0-9.]+ +0 +[0-9]+ +[0-9.]+ s( \*)?$') == 4 ]] || fail "no table: $(cat stop.err)"
[[ $(grep -c ' \*$' stop.err) == 1 ]] || fail "one best epoch: $(cat stop.err)"
train --epochs 9 --batch 25 --validate-fraction 0.2 --target loss=1000 >target.out 2>target.err
grep -q 'stopped after epoch 1: the target loss=1000 is reached' target.err || fail "no reason: $(cat target.err)"

echo "--- a limit on time"
refuses_options "--time-limit: expected a number above 0, found 0" --labels labels --time-limit 0
refuses_options "after step 0: the run has taken longer than its time limit of 1 ms" --labels labels --time-limit 0.001
train --epochs 2 --batch 25 --time-limit 3600 --checkpoint limited.ckpt >/dev/null 2>&1
train --epochs 2 --batch 25 --checkpoint free.ckpt >/dev/null 2>&1
cmp limited.ckpt free.ckpt || fail "a limit that is not reached changes the training"
code=0
for micro in "" "--micro-batch 5"; do
  # shellcheck disable=SC2086  # words of an option
  train --epochs 3 --batch 25 --time-limit 0.001 --checkpoint limited.ckpt --resume $micro >limit.out 2>limit.err || code=$?
  [[ $code == 2 ]] || fail "a limit that is reached: exit code $code: $(cat limit.err)"
  grep -q 'after step 8: the run has taken longer than its time limit of 1 ms;.*; limited.ckpt holds step 8$' limit.err || fail "$(cat limit.err)"
  cmp limited.ckpt free.ckpt || fail "a step beyond the limit was saved"
done

echo "--- models that fix the batch"
"$bin/rtconvert" zoo:lenet5 --dim batch=5 -o fixed.rt --train --optimizer sgd --accumulate >/dev/null
fixed() { "$bin/rttrain" fixed.rt --data images --labels labels --scale 0.00392157 --backend cpu --epochs 1 --lr 0.1 --checkpoint fixed.ckpt --overwrite "$@"; }
fixed --batch 10 >fixed.out 2>fixed.err || fail "batches of 10: $(cat fixed.err)"
fixed --drop-last >fixed.out 2>fixed.err || fail "the model's batch: $(cat fixed.err)"
grep -q -- "--batch 5, as the model's inputs fix" fixed.err || fail "$(cat fixed.err)"
code=0
fixed --batch 12 >fixed.out 2>fixed.err || code=$?
[[ $code == 2 ]] || fail "a batch that does not fit: exit code $code: $(cat fixed.err)"
grep -q -- "--batch 12 .*the model takes 5 samples at once" fixed.err || fail "$(cat fixed.err)"

echo "--- progress stays on its line"
command -v python3 >/dev/null || { echo "skipped: there is no python3"; exit 77; }
python3 - "$bin/rttrain" net.rt --data images --labels labels --scale 0.00392157 --backend cpu --batch 1 --epochs 10 <<'END'
import fcntl, os, pty, re, struct, sys, termios
pid, terminal = pty.fork()
if pid == 0:
    fcntl.ioctl(2, termios.TIOCSWINSZ, struct.pack("HHHH", 24, 40, 0, 0))
    os.dup2(os.open("/dev/null", os.O_WRONLY), 1)
    os.execv(sys.argv[1], sys.argv[1:])
output = b""
while True:
    try:
        output += os.read(terminal, 4096)
    except OSError:
        break
lines = re.findall(r"\r\x1b\[K(epoch [^\r]*)", output.decode())
assert os.waitpid(pid, 0)[1] == 0, output
assert lines and max(map(len, lines)) == 39, (lines, output)
END
echo "all of it"
