#!/usr/bin/env bash
# report.sh BIN SCRATCH SOURCES: every form of the report of a small study, the stored studies, compare and view.
set -euo pipefail
bin=$1 scratch=$2 sources=$3
. "$(dirname "$0")/rtbench.sh"
study=(study zoo:lenet5 --backend cpu --precision fp32,bf16 --budget 4s)
chart_js=1
"$bin/rtbench" "${study[@]}" --html /nonexistent/x.html 2>&1 | grep -q 'without Chart.js' && chart_js=

echo "--- what is refused, before anything is measured"
start=$SECONDS
refuses 2 "--markdown: there is no folder nowhere" rtbench "${study[@]}" --markdown nowhere/report.md
refuses 2 "--csv: expected a file, found the folder $scratch" rtbench "${study[@]}" --csv "$scratch"
refuses 2 "choose one" rtbench "${study[@]}" --json --csv -
: >plain
for option in --html --markdown --csv; do
  [[ $option != --html || -n $chart_js ]] || continue
  refuses 2 "$option: there is no folder nowhere" rtbench "${study[@]}" "$option" nowhere/x
  refuses 2 "$option: expected a file, found the folder $scratch" rtbench "${study[@]}" "$option" "$scratch"
  refuses 2 "$option: expected a value, found an empty one" rtbench "${study[@]}" "$option" ""
  refuses 2 "$option: there is no folder plain" rtbench "${study[@]}" "$option" plain/x
done
refuses 2 "--save: expected a folder, found the file $scratch/plain" rtbench "${study[@]}" --save plain
refuses 2 "--save: expected a folder, found the file $scratch/plain" rtbench "${study[@]}" --save plain/below/it
refuses 2 "--save: expected a folder, found the file /dev/full" rtbench "${study[@]}" --save /dev/full
refuses 2 "--save: expected a value, found an empty one" rtbench "${study[@]}" --save ""
refuses 2 "--price: expected a value, found an empty one" rtbench "${study[@]}" --price ""
refuses 2 "--electricity: expected a value, found an empty one" rtbench "${study[@]}" --electricity ""
refuses 2 "--markdown: there is no folder nowhere" rtbench study matmul --markdown nowhere/x
mkdir read_only && chmod 555 read_only
if [[ ! -w read_only ]]; then  # root may write anywhere
  for option in --markdown --csv; do
    refuses 2 "$option: the folder read_only cannot be written: Permission denied" rtbench "${study[@]}" "$option" read_only/x
  done
  refuses 2 "--save: the folder $scratch/read_only cannot be written" rtbench "${study[@]}" --save read_only/x
else
  echo "skipped: folders that cannot be written: this user may write anywhere"
fi
refuses 2 "--save and --no-save exclude each other" rtbench "${study[@]}" --save data --no-save
refuses 2 "--tolerance: expected a share such as 5% or 0.05, found 'much'" rtbench compare a b --tolerance much
refuses 2 "absent.json: " rtbench compare absent.json absent.json
refuses 2 "absent.json: " rtbench view absent.json
((SECONDS - start < 10)) || fail "refusals took $((SECONDS - start)) s"

echo "--- all forms at once"
html=()
[[ -n $chart_js ]] && html=(--html report.html)
"$bin/rtbench" "${study[@]}" --json --markdown report.md --csv report.csv "${html[@]}" >study.json 2>messages.txt || fail "exit code $?: $(cat messages.txt)"
has 'wrote report.md' messages.txt
has "kept as $scratch/data/librt/studies/[0-9TZ]+-lenet5-[0-9a-f]{8}.json" messages.txt
has '^# lenet5: rtbench study' report.md
has '^\| cpu:0 \| fp32 \| 1 \|' report.md
has '^lenet5,[0-9a-f]+,cpu:0,' report.csv
python3 "$sources/tests/rtbench/schema.py" "$sources/schema/study.schema.json" study.json || [[ $? == 77 ]] || fail "the JSON does not follow its schema"
kept=$(echo data/librt/studies/*.json)
cmp -s "$kept" study.json || fail "the stored study differs from --json"
[[ $(stat -c %a "$kept") == 600 ]] || fail "the stored study may be read by others"
if [[ -n $chart_js ]]; then
  has 'Content-Security-Policy' report.html
  for part in verdict overview inference energy cost time memory machine; do has "id=\"$part\"" report.html; done
fi

echo "--- the stored studies"
"$bin/rtbench" history >history.txt
has "lenet5  [0-9a-f]{12}  cpu:0" history.txt
has "$kept" history.txt
"$bin/rtbench" history --model other | grep -q 'no studies of other' || fail "--model filters nothing"
echo '{' >data/librt/studies/broken.json
"$bin/rtbench" history 2>&1 >/dev/null | grep -q 'left out: .*broken.json: expected the result of a study' || fail "a broken file is not named"
rm data/librt/studies/broken.json
"$bin/rtbench" "${study[@]}" --no-save --csv - >csv.txt 2>/dev/null
has '^model,hash,device,' csv.txt
[[ $(ls data/librt/studies | wc -l) == 1 ]] || fail "--no-save keeps the study"
"$bin/rtbench" "${study[@]}" --save kept >text.txt 2>/dev/null
has '^study of lenet5' text.txt
[[ $(ls kept | wc -l) == 1 ]] || fail "--save DIR keeps nothing there"
"$bin/rtbench" history --save kept | grep -q "$scratch/kept/" || fail "history --save"
"$bin/rtbench" --clear-cache >/dev/null
[[ -e $kept ]] || fail "--clear-cache deletes studies"
XDG_DATA_HOME=relative HOME=relative "$bin/rtbench" "${study[@]}" >/dev/null 2>messages.txt || fail "without a data folder: $?"
has 'the study is not kept: neither XDG_DATA_HOME nor HOME' messages.txt

echo "--- no space: an error, and no half of a file"
forms=(--markdown --csv)
[[ -n $chart_js ]] && forms+=(--html)
for form in "${forms[@]}"; do
  refuses 3 "/dev/full: cannot write: No space left" rtbench study zoo:lenet5 --backend cpu --precision fp32 --budget 1s "$form" /dev/full --no-save
done
refuses 3 "/dev/full: cannot write: No space left" rtbench study matmul --backend cpu --budget 1s --markdown /dev/full
for arguments in "study zoo:lenet5 --backend cpu --precision fp32 --budget 1s --no-save --json" "study --list" "--catalogue" \
  "zoo:lenet5 --backend cpu --time 0.01 --json" "zoo:lenet5 --backend cpu --what-if l4 --json"; do
  code=0
  # shellcheck disable=SC2086  # words of a command line
  "$bin/rtbench" $arguments >/dev/full 2>error.txt || code=$?
  [[ $code == 3 ]] && grep -q 'cannot be written to stdout' error.txt || fail "rtbench $arguments >/dev/full: exit code $code: $(cat error.txt)"
done
# A limit of the size of files instead of a full disk: a file would be cut in the middle.
"$bin/rtconvert" zoo:lenet5 -o lenet.rt >/dev/null  # models in memory count as files
echo old >cut.md
code=0
(ulimit -f 1; "$bin/rtbench" study lenet.rt --backend cpu --precision fp32 --budget 2s --no-tuning --markdown cut.md --save cut >out.txt 2>error.txt) || code=$?
[[ $code == 3 ]] && grep -q 'File too large' error.txt || fail "a full disk: exit code $code: $(cat error.txt)"
[[ $(cat cut.md) == old ]] || fail "cut.md was changed"
[[ -z $(ls cut) ]] || fail "half of a study stayed: $(ls cut)"

echo "--- compare: the same twice, then with a slower and a faster device, then what only one has"
"$bin/rtbench" compare study.json study.json >same.txt || fail "a study differs from itself: $(cat same.txt)"
has 'No time changed by more than the tolerance of 5 %' same.txt
python3 - <<'PYTHON'
import json
def write(name, change):
    study = json.load(open("study.json"))
    change(study)
    json.dump(study, open(name, "w"))
def scale(study, factor):
    for series in study["series"]:
        for point in series["points"]:
            timing = point["timing"]
            median = timing["median_ms"] = timing["median_ms"] * factor
            timing["interval_ms"] = {"low": median * 0.99, "high": median * 1.01}
write("base.json", lambda study: scale(study, 1))
write("slower.json", lambda study: scale(study, 1.2))
write("faster.json", lambda study: scale(study, 0.8))
write("renamed.json", lambda study: [series.update(precision="fp32x") for series in study["series"][1:]])
write("other.json", lambda study: study["model"].update(name="other", hash="0"))
write("newer.json", lambda study: study.update(schema_version=99))
PYTHON
code=0
"$bin/rtbench" compare base.json slower.json >slower.txt || code=$?
[[ $code == 1 ]] || fail "a regression: exit code $code: $(cat slower.txt)"
has 'SLOWER' slower.txt
"$bin/rtbench" compare base.json slower.json --tolerance 30% >/dev/null || fail "--tolerance 30% and 20 % slower: $?"
"$bin/rtbench" compare base.json faster.json --json >faster.json.txt || fail "faster is no regression: $?"
has '"change": "faster"' faster.json.txt
"$bin/rtbench" compare study.json renamed.json >renamed.txt || fail "renamed: $?"
has 'Only in the new study:' renamed.txt
has 'cpu:0 fp32x' renamed.txt
refuses 2 "the studies are of different models: lenet5 and other" rtbench compare study.json other.json
refuses 2 "newer.json: /schema_version: expected 1" rtbench compare study.json newer.json
refuses 2 "expected the result of a study" rtbench compare study.json report.csv

echo "--- how often compare is wrong: that the program for it reads today's studies"
python3 "$sources/tools/dev/compare_trials" --build "$(dirname "$bin")" --trials 1 --budget 1s --slowdown 3 zoo:lenet5 \
  --backend cpu --precision fp32 >trials.txt 2>&1 || fail "compare_trials: exit code $?: $(cat trials.txt)"
has 'the slowdown was found in 1 of 1' trials.txt

echo "--- view"
"$bin/rtbench" zoo:lenet5 --backend cpu --batch 1 --time 0.02 --trace trace.json >/dev/null 2>&1
"$bin/rtbench" view trace.json --top 3 >view.txt 2>messages.txt
has '^rtbench, lenet5 cpu batch 1: [0-9]+ nodes' view.txt
has 'and [0-9]+ more: ' view.txt
has 'ui.perfetto.dev' messages.txt
refuses 2 "study.json: expected a Chrome trace, found JSON without" rtbench view study.json

[[ -n $chart_js ]] || exit 0
echo "--- the report in a browser"
"$sources/tests/rtbench/browser.sh" "$scratch" report.html || [[ $? == 77 ]]
