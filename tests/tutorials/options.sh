#!/usr/bin/env bash
# options.sh BIN ROOT: every option that README.md, CONTRIBUTING.md, docs/ and examples/ give to one of the programs is one that it has.
set -euo pipefail
bin=$1
declare -A known
for program in rtconvert rtrun rtbench rttrain; do
  help=--help
  [[ $program == rtconvert ]] && help=--help-all
  known[$program]=" $("$bin/$program" "$help" | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u | tr '\n' ' ')"
done
# Those of rtbench's commands, which its help lists as "rtbench NAME ...".
for command in $("$bin/rtbench" --help | sed -nE 's/^ *rtbench ([a-z-]+) \.\.\..*/\1/p'); do
  known[rtbench]+="$("$bin/rtbench" "$command" --help | grep -oE -- '--[a-z][a-z0-9-]*' | sort -u | tr '\n' ' ')"
done
cd "$2"
status=0 count=0
# A line for each program and option of a command, which ends at a quote, a pipe, a separator or the next program.
while read -r file program option; do
  count=$((count + 1))
  [[ ${known[$program]} == *" $option "* ]] && continue
  echo "$file: $program has no option $option"
  status=1
done < <(git ls-files README.md CONTRIBUTING.md 'docs/*.md' 'examples/*.md' ':!docs/decisions.md' | while read -r file; do
  sed -e ':join; /\\$/ { N; s/\\\n//; b join }' "$file" |
    awk -v file="$file" '{
      while (match($0, /(^|[^A-Za-z0-9_\/-])(rtconvert|rtrun|rtbench|rttrain) [^`|;)&#"]*/)) {
        command = substr($0, RSTART, RLENGTH)
        $0 = substr($0, RSTART + RLENGTH)
        sub(/^[^r]/, "", command)
        words = split(command, word, / +/)
        program = word[1]
        for (i = 2; i <= words; ++i) {
          if (word[i] ~ /^(rtconvert|rtrun|rtbench|rttrain)$/) program = word[i]
          if (match(word[i], /^--[a-z][a-z0-9-]*/)) print file, program, substr(word[i], RSTART, RLENGTH)
        }
      }
    }'
done)
((count > 100)) || { echo "only $count options were found in the documents"; exit 1; }
exit $status
