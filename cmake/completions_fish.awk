# Completion for fish. Input: command, names, kind, words, description (completions.sh).
function quoted(text) {
  gsub(/\\/, "\\\\", text)
  gsub(/'/, "\\'", text)
  return "'" text "'"
}
function when(command) {
  if (commands == "") return ""
  return command == "" ? " -n 'not __fish_seen_subcommand_from " commands "'" : " -n '__fish_seen_subcommand_from " command "'"
}
BEGIN {
  print "# fish completion of " name ", generated from its options."
  if (commands != "") print "complete -c " name " -n __fish_is_first_arg -a " quoted(commands)
}
$2 == "-" { if (index($5, "zoo:NAME")) print "complete -c " name when($1) " -a " quoted(zoo); next }
{
  count = split($2, names, ",")
  text = "complete -c " name when($1)
  for (i = 1; i <= count; i++) text = text (names[i] ~ /^--/ ? " -l " substr(names[i], 3) : " -s " substr(names[i], 2))
  if ($3 == "words") text = text " -x -a " quoted($4)
  else if ($3 == "number") text = text " -x"
  else if ($3 == "text") text = text " -r -F"
  print text " -d " quoted(substr($5, 1, 90))
}
