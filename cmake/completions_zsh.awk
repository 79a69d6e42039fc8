# Completion for zsh. Input: command, names, kind, words, description (completions.sh).
function quoted(text) {
  gsub(/'/, "'\\''", text)
  return text
}
function plain(text) {  # in brackets, without what _arguments reads
  gsub(/\[|\]|:|\\|`|\$|"/, " ", text)
  return quoted(substr(text, 1, 90))
}
$2 == "-" { if (index($5, "zoo:NAME")) has_zoo[$1] = 1; seen[$1]; next }
{
  seen[$1]
  action = ""
  if ($3 == "words") action = ":value:(" quoted($4) ")"
  else if ($3 == "number") action = ":number: "
  else if ($3 == "text") action = ":value:_files"
  count = split($2, names, ",")
  for (i = 1; i <= count; i++)
    specs[$1] = specs[$1] " \\\n      '*" names[i] ($3 == "flag" || names[i] !~ /^--/ ? "" : "=") "[" plain($5) "]" action "'"
}
END {
  print "#compdef " name
  print "# zsh completion of " name ", generated from its options."
  print "_" name "_files() { _files }"
  print "_" name "_models() { compadd -- " zoo "; _files }"
  if (commands != "") print "_" name "_first() { compadd -- " commands "; _" name "_models }"
  print "_" name "() {"
  print "  local command="
  if (commands != "") {
    list = commands
    gsub(/ /, "|", list)
    print "  if (( CURRENT > 2 )); then case $words[2] in " list ") command=$words[2]; shift words; (( CURRENT-- )) ;; esac; fi"
  }
  print "  case $command in"
  for (command in seen) {
    rest = has_zoo[command] ? "_" name "_models" : "_" name "_files"
    print "    '" command "')\n    _arguments" specs[command] (command == "" && commands != "" ? " \\\n      '1:model or command:_" name "_first'" : "") " \\\n      '*:file:" rest "' ;;"
  }
  print "  esac\n}"
  print "_" name " \"$@\""
}
