# Completion for bash. Input: command, names, kind, words, description (completions.sh).
BEGIN { has_zoo[""] = 0 }
$2 == "-" { if (index($5, "zoo:NAME")) has_zoo[$1] = 1; next }
{
  count = split($2, names, ",")
  pattern = ""
  for (i = 1; i <= count; i++) {
    pattern = pattern (i > 1 ? "|" : "") "\"" $1 " " names[i] "\""
    if (names[i] ~ /^--/) options[$1] = options[$1] " " names[i]
  }
  if ($3 == "flag") cases = cases "    " pattern ") kind=flag ;;\n"
  else if ($3 == "words") cases = cases "    " pattern ") kind=words words=\"" $4 "\" ;;\n"
  else if ($3 == "number") cases = cases "    " pattern ") kind=number ;;\n"
  else cases = cases "    " pattern ") kind=file ;;\n"
}
END {
  print "# bash completion of " name ", generated from its options.\n"
  print "_" name "() {"
  print "  local line=${COMP_LINE:0:COMP_POINT} command= option= value kind=none words= options= prefix= models= found"
  print "  local -a parts"
  print "  read -ra parts <<<\"$line\""
  print "  [[ $line != *[[:space:]] ]] || parts+=(\"\")"
  print "  local count=${#parts[@]}"
  print "  local current=${parts[count - 1]}"
  if (commands != "") {
    list = commands
    gsub(/ /, "|", list)
    print "  if ((count > 2)); then case ${parts[1]} in " list ") command=${parts[1]} ;; esac; fi"
  }
  print "  case $command in"
  for (command in options)
    print "    \"" command "\") options=\"" substr(options[command], 2) "\"" (has_zoo[command] ? " models=\"" zoo "\"" : "") " ;;"
  print "  esac"
  if (commands != "") print "  ((count != 2)) || models+=\" " commands "\""
  print "  value=$current"
  print "  if [[ $current == --*=* ]]; then"
  print "    option=${current%%=*} value=${current#*=}"
  print "  elif ((count > 2)) && [[ ${parts[count - 2]} == -* ]]; then"
  print "    option=${parts[count - 2]}"
  print "  fi"
  print "  case \"$command $option\" in"
  printf "%s", cases
  print "  esac"
  print "  COMPREPLY=()"
  print "  case $kind in"
  print "    words) # perhaps several, with commas"
  print "      [[ $value != *,* ]] || prefix=${value%,*},"
  print "      mapfile -t COMPREPLY < <(compgen -P \"$prefix\" -W \"$words\" -- \"${value#\"$prefix\"}\") ;;"
  print "    file) # or NAME=FILE"
  print "      [[ $value != *=* ]] || value=${value##*=}"
  print "      compopt -o filenames 2>/dev/null"
  print "      mapfile -t COMPREPLY < <(compgen -f -- \"$value\")"
  print "      return ;;"
  print "    number) ;;"
  print "    *)"
  print "      if [[ $current == -* ]]; then"
  print "        mapfile -t COMPREPLY < <(compgen -W \"$options\" -- \"$current\")"
  print "      else"
  print "        compopt -o filenames 2>/dev/null"
  print "        mapfile -t COMPREPLY < <(compgen -W \"$models\" -- \"$current\"; compgen -f -- \"$current\")"
  print "      fi ;;"
  print "  esac"
  print "  # Readline replaces only what follows the last of these."
  print "  found=$value"
  print "  [[ $COMP_WORDBREAKS != *:* || $found != *:* ]] || COMPREPLY=(\"${COMPREPLY[@]#\"${found%:*}\":}\")"
  print "}"
  print "complete -F _" name " " name
}
