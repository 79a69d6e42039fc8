#!/usr/bin/env bash
# browser.sh FOLDER FILE.html...: the reports in FOLDER in a real browser: they load without an error, ask for nothing from a
# network, and every chart has content, in light, dark and print form. Pictures of them are left in FOLDER.
# Exit code 77: there is no Chromium.
set -euo pipefail
folder=$1
shift
for name in chromium chromium-browser google-chrome; do
  if chromium=$(command -v "$name"); then break; fi
done
[[ -n ${chromium:-} ]] || { echo "SKIPPED: no Chromium is installed (Debian: chromium)"; exit 77; }
fail() { echo "browser.sh: $*"; exit 1; }

profile=$(mktemp -d)
trap 'rm -rf "$profile"' EXIT
# Containers and root have no sandbox; the pages are this build's own.
browser() {
  timeout 120 "$chromium" --headless=new --no-sandbox --disable-gpu --disable-dev-shm-usage --disable-extensions --no-first-run \
    --disable-background-networking --disable-component-update --user-data-dir="$profile" --hide-scrollbars \
    --enable-logging=stderr --v=0 "$@"
}

for file in "$@"; do
  page="file://$folder/$file"
  for theme in light dark; do
    options=(--virtual-time-budget=4000 --window-size=1280,1000)
    [[ $theme == dark ]] && options+=(--blink-settings=preferredColorScheme=0)
    # On a busy machine Chromium may end before the page has examined itself.
    for try in 1 2 3; do
      browser "${options[@]}" --dump-dom "$page#check" >"$folder/$file.dom" 2>"$folder/$file.log" || fail "$file: Chromium: $(tail -n 3 "$folder/$file.log")"
      grep -q '<html[^>]*data-check' "$folder/$file.dom" && break
    done
    grep -q CONSOLE "$folder/$file.log" && fail "$file, $theme: the console has: $(grep CONSOLE "$folder/$file.log")"
    found=$(grep -o '<html[^>]*>' "$folder/$file.dom" | head -n 1)
    expected=$(grep -o '<canvas data-chart' "$folder/$file" | wc -l || true)
    [[ $found == *'data-check="ok"'* ]] || fail "$file, $theme: $found"
    [[ $found == *"data-charts=\"$expected\""* ]] || fail "$file, $theme: expected $expected charts, found $found"
    [[ $file != example* ]] || ((expected > 10)) || fail "$file has $expected charts"
    browser "${options[@]}" --window-size=1280,9500 --screenshot="$folder/${file%.html}-$theme.png" "$page" >/dev/null 2>&1 || fail "$file, $theme: no picture"
    [[ -s $folder/${file%.html}-$theme.png ]] || fail "$file, $theme: the picture is empty"
  done
  browser --virtual-time-budget=4000 --no-pdf-header-footer --print-to-pdf="$folder/${file%.html}.pdf" "$page" >/dev/null 2>&1 || fail "$file: it cannot be printed"
  [[ $(head -c 5 "$folder/${file%.html}.pdf") == %PDF- ]] || fail "$file: the print is no PDF"
  echo "$file: $expected charts"
done
# The name of the hostile model has not become part of the page.
[[ -e $folder/hostile.html.dom ]] && grep -q '<title>taken' "$folder/hostile.html.dom" && fail "hostile.html: a script in a name has run"
exit 0
