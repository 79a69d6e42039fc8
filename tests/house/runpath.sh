#!/usr/bin/env bash
# runpath.sh FOLDER...: no program or library in the folders has an empty or relative entry in its RUNPATH: such an entry means the
# current directory, which others may fill. $ORIGIN is fine. Folders that do not exist are left out, except the first.
set -euo pipefail
command -v readelf >/dev/null || { echo "readelf (binutils) is not installed"; exit 77; }
[[ -d $1 ]] || { echo "runpath.sh: there is no folder $1"; exit 1; }

status=0
files=0
while IFS= read -r -d '' file; do
  [[ $(head -c 4 "$file" | tr -d '\0') == $'\x7fELF' ]] || continue
  files=$((files + 1))
  while IFS= read -r path; do
    case ":$path:" in
    *::*) echo "$file: RUNPATH '$path' has an empty entry"; status=1 ;;
    esac
    IFS=: read -ra entries <<<"$path"
    for entry in "${entries[@]}"; do
      [[ -z $entry || $entry == /* || $entry == '$ORIGIN' || $entry == '$ORIGIN/'* ]] ||
        { echo "$file: RUNPATH '$path' has the relative entry '$entry'"; status=1; }
    done
  done < <(readelf -d "$file" 2>/dev/null | sed -nE 's/.*\((RUNPATH|RPATH)\)[^[]*\[(.*)\]$/\2/p')
done < <(for folder in "$@"; do [[ ! -d $folder ]] || find "$folder" -type f -print0; done)
((files > 0)) || { echo "runpath.sh: no program or library in $*"; exit 1; }
exit $status
